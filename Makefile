# Every target works on a machine with Go, git and make. Other tools are installed into .tools in pinned versions; what
# cannot be installed is named.

.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

TOOLS := $(CURDIR)/.tools
GOLANGCI_LINT_VERSION := v2.15.0
GOVULNCHECK_VERSION := v1.9.0
GOTESTSUM_VERSION := v1.13.0
GOLANGCI_LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)
KUBERNETES := $(TOOLS)/kubernetes-v1.34.4
GOVULNCHECK := $(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION)
GOTESTSUM := $(TOOLS)/gotestsum-$(GOTESTSUM_VERSION)

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
CLI := github.com/ralph-pool/ralph/internal/cli
LDFLAGS := -s -w -X $(CLI).version=$(VERSION) -X $(CLI).commit=$(COMMIT)
# Flags for everything without the race detector, the same everywhere, so that dependencies are compiled once. With -trimpath
# the build cache works for every clone.
PLAIN := CGO_ENABLED=0 GOFLAGS='$(strip $(GOFLAGS) -trimpath)'
BUILD := $(PLAIN) go build -ldflags '$(LDFLAGS)'

# Time for each fuzz target.
FUZZTIME ?= 10s
# '1 3' fuzzes every third package, starting with the first.
FUZZPART ?=
# Flags that `make test` passes on, such as -run or -count.
TESTFLAGS ?=
# Flags that `make bench` passes on, such as '-only issues -rounds 10'.
BENCHFLAGS ?=
# Number of random faults in `make soak`, and the seed of their places and times. SOAK_ONLY=N repeats one of them.
SOAK_FAULTS ?= 300
SOAK_SEED := $(or $(SOAK_SEED),$(shell date +%s))
SOAK_ONLY ?=
# Number of issues that the fleet of `make soak` works while its machines and its database die.
FLEET_ISSUES ?= 200

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## Build bin/ralph, static
	$(BUILD) -o bin/ralph ./cmd/ralph

.PHONY: install
install: ## Build ralph into Go's bin folder
	$(PLAIN) go install -ldflags '$(LDFLAGS)' ./cmd/ralph
	@bin=$$(go env GOBIN); : "$${bin:=$$(go env GOPATH | cut -d: -f1)/bin}"; \
	case ":$$PATH:" in *":$$bin:"*) ;; *) echo "ralph is in $$bin, which is not in PATH; add it: export PATH=\"\$$PATH:$$bin\"" ;; esac

.PHONY: demo
demo: ## Watch ralph empty a small backlog (no key; the build alone may need the network)
	@GOFLAGS=-mod=readonly GOPROXY=off go list -deps ./cmd/ralph ./e2e/demo >/dev/null 2>&1 || \
	  echo "The build downloads Go modules first, about 130 MB, and compiles them, which takes some minutes. Later ones do not."
	@$(MAKE) --no-print-directory build
	@GOPROXY=off go run ./e2e/demo -ralph bin/ralph

# VETTED=1 skips vet, because `make lint` includes it.
VETTED ?=
# AGAIN=1 repeats a failed test once at the end, alone, unless it had a data race. UNSTEADY lists tests that then pass.
AGAIN ?= 0
UNSTEADY := $(TOOLS)/unsteady

.PHONY: test
test: cc agents $(GOTESTSUM) ## Vet and test everything, nearly all with the race detector
	test -n '$(VETTED)' || $(PLAIN) go vet ./...
	rm -f $(UNSTEADY)*
	e2e/engines/with.sh $(TOOLS)/engines $(MAKE) --no-print-directory tests

# The tests in e2e start ralph hundreds of times. The race detector doubles their time, so it is used only for those that start
# each command once and those in which several ralph processes work together. Tests of other packages cover the rest with it.
RACED := ^Test(Scripts|TwoSweepsOnOneBacklog|ThreeClonesOfOneRemote|CleanWhileWorking|Interrupt.*)$$
GO_TEST = $(GOTESTSUM) --format pkgname-and-test-fails --format-icons text --hide-summary skipped --rerun-fails=$(AGAIN) --rerun-fails-run-root-test \
  --rerun-fails-abort-on-data-race --rerun-fails-report=$(UNSTEADY).$@
# MEMORY=DIR is a folder in memory for the tests' files, which saves a quarter of the time. The tests in e2e use the disk,
# and so do tests that need a file system with exact change times.
MEMORY ?=
ONDISK := /pool/workspace$$
# GOGC, if set, is only for the compilers. Vet has run already; see test. Nobody debugs these programs, and without debug
# information each of the hundred is linked in half the time.
TEST_FLAGS = -vet=off -trimpath -ldflags='-s -w' -shuffle=on -timeout 60m -exec 'env -u GOGC $(IN_MEMORY)' $(TESTFLAGS)
tests-packages tests-plain tests-large: IN_MEMORY := $(if $(MEMORY),TMPDIR=$(MEMORY))
# By default a program with the race detector waits a second before it exits.
export GORACE ?= atexit_sleep_ms=0
# The slowest packages start first, so that none of them runs alone at the end.
LONGEST := ./sandboxes/container ./pool
# These packages start no goroutines, so the race detector would only make them ten times slower. Packages that start
# goroutines use some of them with it.
PURE := internal/arch|internal/leak|internal/meter|worktree/message
# Tests of whole commands. RACED covers these with the race detector.
COMMANDS := internal/cli
PLAIN_IN := /($(COMMANDS)|$(PURE))$$
UNRACED := /e2e$$|$(PLAIN_IN)

# These tests process much data, run many rounds or drive other programs. Smaller tests of their packages cover the same
# concurrency, so the race detector would only make them several times slower.
LARGE := Test(AsOrdinaryUser|CommitLimits|CountTime|Costs|DeathAtEverySave|DeathInABatch|ForgeLarge|LongBacklog|LogIsSearched|NothingEscapes.*|StrangersLongTexts|TableOfTricks|TrackerFailsAtEveryCall|WhatCommitsDoToTheirChecks)
LARGE_IN = $$(git grep -lE '^func $(LARGE)\(' -- '*_test.go' | xargs -n 1 dirname | sort -u | sed 's,^,./,' | tr '\n' ' ')

.PHONY: tests
tests:
	@failed=0; \
	for part in packages disk plain large raced e2e; do $(MAKE) --no-print-directory tests-$$part || failed=1; done; \
	if [ -n "$$(cat $(UNSTEADY).* 2>/dev/null)" ]; then echo "failed, or passed at the second time only:"; cat $(UNSTEADY).*; fi; \
	exit $$failed

.PHONY: tests-packages tests-disk tests-plain tests-large tests-raced tests-e2e
tests-packages:
	CGO_ENABLED=1 $(GO_TEST) --packages "$(LONGEST) $$(go list ./... | grep -vE '$(UNRACED)|$(ONDISK)' | tr '\n' ' ')" -- -race -skip '^$(LARGE)$$' $(TEST_FLAGS)
tests-disk:
	CGO_ENABLED=1 $(GO_TEST) --packages "$$(go list ./... | grep -E '$(ONDISK)')" -- -race -skip '^$(LARGE)$$' $(TEST_FLAGS)
tests-plain:
	$(PLAIN) $(GO_TEST) --packages "$$(go list ./... | grep -E '$(PLAIN_IN)' | tr '\n' ' ')" -- -skip '^$(LARGE)$$' $(TEST_FLAGS)
tests-large:
	$(PLAIN) $(GO_TEST) --packages "$(LARGE_IN)" -- -run '^$(LARGE)$$' $(TEST_FLAGS)
tests-raced:
	CGO_ENABLED=1 $(GO_TEST) --packages ./e2e -- -race -run '$(RACED)' $(TEST_FLAGS)
tests-e2e:
	$(PLAIN) $(GO_TEST) --packages ./e2e -- -parallel 4 -skip '$(RACED)' $(TEST_FLAGS)

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Check format, floors and style
	@unformatted=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not formatted, run gofmt -w:"; echo "$$unformatted"; exit 1; fi
	$(PLAIN) $(GOLANGCI_LINT) run ./...

.PHONY: vuln
vuln: $(GOVULNCHECK) ## Look for known vulnerabilities in what is used
	$(GOVULNCHECK) ./...

PLATFORMS := darwin/arm64 darwin/amd64 linux/arm64

.PHONY: cross
cross: ## Check types for the other platforms
	$(PLAIN) go run ./e2e/typecheck $(PLATFORMS)

.PHONY: platforms
platforms: cross ## Compile for the other platforms
	set -e; for target in $(PLATFORMS); do \
	  echo "$$target"; GOOS=$${target%/*} GOARCH=$${target#*/} $(PLAIN) go build -o /dev/null ./cmd/ralph; \
	done

.PHONY: bench
bench: build ## Measure ralph against the bare floor, side by side
	go run ./e2e/bench -ralph bin/ralph $(BENCHFLAGS)
	go test -run '^$$' -bench . -benchtime 20x -timeout 30m ./worktree ./internal/proc
	go test -run '^$$' -bench . -benchtime 20x ./pool/gateway
	go test -run '^$$' -bench . -benchtime 1000x ./pool/fleet
	go test -run '^$$' -bench . -benchtime 1x -timeout 30m ./tracker/github ./tracker/gitlab ./sandboxes/...

.PHONY: soak
soak: build platforms cc agents $(KUBERNETES) ## Let random faults happen to sweeps, then test every case, with the race detector
	RALPH_TEST_PROGRAM=$(CURDIR)/bin/ralph SOAK_FAULTS=$(SOAK_FAULTS) SOAK_SEED=$(SOAK_SEED) SOAK_ONLY=$(SOAK_ONLY) \
	  go test -count=1 -timeout 6h -run '^TestSoak(Rules)?$$' ./e2e
	test -n '$(SOAK_ONLY)' || RALPH_TEST_POSTGRES=1 FLEET_ISSUES=$(FLEET_ISSUES) CGO_ENABLED=0 \
	  go test -count=1 -timeout 2h -run '^TestFleetSoak$$' ./e2e
	test -n '$(SOAK_ONLY)' || RALPH_TEST_KUBERNETES=$(KUBERNETES) go test -count=1 ./deploy
	test -n '$(SOAK_ONLY)' || CGO_ENABLED=1 RALPH_TEST_EVERYTHING=1 RALPH_TEST_POSTGRES=1 RALPH_ENGINES=all e2e/engines/with.sh $(TOOLS)/engines \
	  go test -race -count=1 -timeout 6h -skip '^TestSoak(Rules)?$$' ./e2e ./pool ./sandboxes/... ./internal/suite ./internal/cli

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (10s)
	@$(PLAIN) .ci/fuzz $(FUZZTIME) $(FUZZPART)

.PHONY: example
example: ## Write config.example.yaml anew from the table of keys
	go test ./internal/cli/config -run '^TestExampleFile$$' -update

.PHONY: clean
clean: ## Remove what these targets made
	rm -rf bin .tools

# The race detector needs a C compiler; the program does not.
.PHONY: cc
cc:
	@command -v "$${CC:-gcc}" >/dev/null || command -v cc >/dev/null || \
	  { echo "make test needs a C compiler for the race detector: apt-get install gcc libc6-dev, or xcode-select --install"; exit 1; }

# The real agents, which the tests drive against a scripted model.
.PHONY: agents
agents:
	@e2e/agents/install.sh $(TOOLS)/npm

# Without this version the server reports v0.0.0. The build takes some minutes.
KUBERNETES_VERSION := k8s.io/component-base/version
$(KUBERNETES): e2e/kubernetes/main.go e2e/kubernetes/go.mod
	cd e2e/kubernetes && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X $(KUBERNETES_VERSION).gitVersion=v1.34.4 \
	  -X $(KUBERNETES_VERSION).gitMajor=1 -X $(KUBERNETES_VERSION).gitMinor=34' -o $@ .

$(GOLANGCI_LINT):
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	mv $(TOOLS)/golangci-lint $@

$(GOTESTSUM):
	GOBIN=$(TOOLS) go install gotest.tools/gotestsum@$(GOTESTSUM_VERSION)
	mv $(TOOLS)/gotestsum $@

$(GOVULNCHECK):
	GOBIN=$(TOOLS) go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
	mv $(TOOLS)/govulncheck $@
