# The image holds the router alone: remote servers work as they are, stdio servers need an image of
# their own that adds what they run on (COPY --from=… /nexus).
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG COMMIT
RUN make build BINARY=/nexus COMMIT="${COMMIT}"
RUN mkdir -p -m 0700 /var/lib/nexus

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /nexus /nexus
COPY LICENSE /
# What outlives a restart. Mount a volume here for it to outlive the container too.
COPY --from=build --chown=65532:65532 /var/lib/nexus /var/lib/nexus
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
