GO      ?= go
BINARY  ?= bin/nexus
COMMIT  ?= $(shell TZ=UTC git log -1 --date=format-local:%FT%TZ --format='%H, %cd')
FUZZTIME ?= 10s
SCHEDULES ?= 100000
REPLICAS_SCHEDULES ?= 2000
RUNS ?= 100
SEED ?= 1
MUTANTS ?= 20
SOAK_DURATION ?= 10m
SOAK_CALLERS ?= 16

.PHONY: all help build test race property lint fuzz fuzz-night faults attacks poison kills mutate soak cluster cluster-soak cluster-bench bench eval ci release image clean

all: build test

help: ## what the targets do
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' Makefile

build: ## the static binary bin/nexus, or for another GOOS and GOARCH
	CGO_ENABLED=0 $(GO) build -buildvcs=false -trimpath -ldflags "-s -w -X 'main.commit=$(COMMIT)'" -o $(BINARY) ./cmd/nexus

test: ## all tests
	$(GO) test ./...

race: ## all tests with the race detector, in random order
	$(GO) test -race -shuffle=on ./...

property: ## SCHEDULES random interleavings through the proxy, and REPLICAS_SCHEDULES through replicas, against a model
	PROXY_SCHEDULES=$(SCHEDULES) REPLICAS_SCHEDULES=$(REPLICAS_SCHEDULES) $(GO) test -race -count=1 -timeout 0 -run TestInterleavings -v ./router/proxy

lint: ## golangci-lint, of the version that .ci/run names: formatting, vet, staticcheck and more
	$(GO) run $$(sed -n 's/^linter=//p' .ci/run) run

fuzz: ## every fuzz test for FUZZTIME
	@grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do \
		for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' "$$file"); do \
			$(GO) test "$$(dirname "$$file")" -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) || exit 1; \
		done; \
	done

fuzz-night: ## every fuzz test for 15 minutes
	$(MAKE) fuzz FUZZTIME=15m

faults: ## the fault suite, each fault RUNS times; logs outcomes and the longest times
	$(GO) test -count=1 -timeout 0 -run TestFaults -v ./tests/faults -args -runs $(RUNS)

attacks: ## the attacks on a router by one of ten callers, in full size; the p99 of the others is logged
	$(GO) test -count=1 -timeout 0 -run TestAttacks -v ./tests/faults -args -attacks

poison: ## servers that lie and a model that obeys them, in all variants; prints the figures
	cd tests/poison && $(GO) test -count=1 -timeout 0 -args -poison

kills: ## RUNS batches that are killed at random points and resumed
	BATCH_KILLS=$(RUNS) $(GO) test -count=1 -timeout 0 -run TestBatchKill -v ./tests

mutate: ## which of a sample of wrong expressions the tests notice, in PACKAGES or in all; SEED chooses, MUTANTS a package
	@SEED=$(SEED) MUTANTS=$(MUTANTS) bash tests/mutate.sh $(PACKAGES)

soak: ## a router under mixed load, restarts and faults for SOAK_DURATION with SOAK_CALLERS callers
	SOAK_DURATION=$(SOAK_DURATION) SOAK_CALLERS=$(SOAK_CALLERS) $(GO) test -count=1 -timeout 0 -run TestSoak -v ./tests/soak

cluster: build ## a NATS server, three replicas and a load balancer on this machine, until Ctrl-C
	$(GO) run ./tests/clustertest/run bin/nexus

cluster-soak: ## three replicas under load, killed and restarted RUNS times, and NATS disturbed; prints the figures
	CLUSTER_RUNS=$(RUNS) $(GO) test -count=1 -timeout 0 -run TestClusterSoak -v ./tests

cluster-bench: ## what a call costs at the home of its session, through another replica and without a cluster
	CLUSTER_BENCH=1 $(GO) test -count=1 -timeout 0 -run TestClusterBench -v ./tests

bench: ## all benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

eval: ## the figures of docs/evaluation.md, from the data and scorer in the folder EVAL
	@test -f "$(EVAL)/score.py" || { echo "usage: make eval EVAL=FOLDER (with score.py, retrieval/, planning/ and dag/)"; exit 2; }
	@mkdir -p bin/eval && $(GO) build -o bin/eval/eval ./tests/eval
	@for queries in $(EVAL)/retrieval/*.queries.*.jsonl; do \
		set=$$(basename "$$queries"); set=$${set%%.queries.*}; catalog=$(EVAL)/retrieval/$$set.catalog.jsonl; \
		[ -f "$$catalog" ] || catalog=$(EVAL)/retrieval/$${set%%_*}.catalog.jsonl; \
		printf 'retrieval %-24s ' "$$set"; \
		bin/eval/eval retrieval --catalog "$$catalog" --queries "$$queries" --out bin/eval/out.jsonl 2>/dev/null >bin/eval/table || exit 1; \
		grep _ms bin/eval/table | tr -s ' \n' ' '; \
		python3 $(EVAL)/score.py retrieval "$$queries" bin/eval/out.jsonl --json || exit 1; \
	done
	@for kind in planning dag; do for tasks in $(EVAL)/$$kind/*.dev.jsonl; do \
		[ $$kind = planning ] || grep -q '"nodes"' "$$tasks" || continue; \
		bin/eval/eval $$kind --tasks "$$tasks" --out bin/eval/out.jsonl >/dev/null 2>&1 || exit 1; \
		printf "$$kind %-24s " "$$(basename "$$tasks" .dev.jsonl)"; \
		python3 $(EVAL)/score.py $$kind "$$tasks" bin/eval/out.jsonl --json || exit 1; \
	done; done

ci: ## what continuous integration runs
	bash .ci/run

release: ## all files of a release, in dist/
	deploy/release.sh

image: ## the container images
	docker build -t agenticnexus .
	docker build -t agenticnexus:servers --build-arg IMAGE=servers .

clean:
	rm -rf bin dist .ci/work
