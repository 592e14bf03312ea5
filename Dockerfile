# Two images with the program of this commit; make image makes both:
#   IMAGE=router    the router alone. Remote servers work as they are.
#   IMAGE=servers   with Node and uv, for servers that npx and uvx start.
ARG IMAGE=router

FROM golang:1.26 AS build
WORKDIR /src
COPY . .
RUN make build && mkdir -p -m 0700 /var/lib/nexus

FROM node:22-bookworm-slim AS servers
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=ghcr.io/astral-sh/uv:0.9 /uv /uvx /usr/local/bin/
RUN mkdir -p -m 0700 /var/lib/nexus && chown 65532:65532 /var/lib/nexus
# npx and uvx keep what they download beside the state.
ENV HOME=/var/lib/nexus

FROM scratch AS router
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build --chown=65532:65532 /var/lib/nexus /var/lib/nexus

FROM ${IMAGE}
COPY --from=build /src/bin/nexus /nexus
COPY LICENSE /
# What outlives a restart. Mount a volume here for it to outlive the container too.
ENV NEXUS_STATE=/var/lib/nexus
# Configuration is read from /app/config, if it is mounted.
WORKDIR /app
USER 65532:65532
# Beyond loopback the router starts only with an API key: pass NEXUS_API_KEY.
ENV NEXUS_LISTEN=0.0.0.0:8002
EXPOSE 8002
# The check takes the key from the container's NEXUS_API_KEY, as the router does.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
	CMD ["/nexus", "health", "--remote", "http://127.0.0.1:8002"]
ENTRYPOINT ["/nexus"]
CMD ["serve"]
