# Every target works on a machine with Go, git and make; what else it needs it installs, pinned, into .tools, or names.

.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

TOOLS := $(CURDIR)/.tools
GOLANGCI_LINT_VERSION := v2.15.0
GOVULNCHECK_VERSION := v1.9.0
GOLANGCI_LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)
GOVULNCHECK := $(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION)

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
CLI := github.com/ralph-pool/ralph/internal/cli
LDFLAGS := -s -w -X $(CLI).version=$(VERSION) -X $(CLI).commit=$(COMMIT)
BUILD := CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)'

# Time each fuzz target gets.
FUZZTIME ?= 10s
# What `make test` passes on, such as -run or -count.
TESTFLAGS ?=
# What `make bench` passes on, such as '-only issues -rounds 10'.
BENCHFLAGS ?=

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## Build bin/ralph, static
	$(BUILD) -o bin/ralph ./cmd/ralph

.PHONY: install
install: ## Build ralph into Go's bin folder
	CGO_ENABLED=0 go install -trimpath -ldflags '$(LDFLAGS)' ./cmd/ralph

.PHONY: demo
demo: build ## Watch ralph empty a small backlog (no key, no network)
	@go run ./e2e/demo -ralph bin/ralph

.PHONY: test
test: cc agents ## Vet and test everything, with the race detector
	go vet ./...
	CGO_ENABLED=1 e2e/engines/with.sh $(TOOLS)/engines go test -race -shuffle=on -timeout 60m $(TESTFLAGS) ./...

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Check format, floors and style
	@unformatted=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not formatted, run gofmt -w:"; echo "$$unformatted"; exit 1; fi
	$(GOLANGCI_LINT) run ./...

.PHONY: vuln
vuln: $(GOVULNCHECK) ## Look for known vulnerabilities in what is used
	$(GOVULNCHECK) ./...

.PHONY: cross
cross: ## Build and vet for the other platforms
	set -e; for target in darwin/arm64 darwin/amd64 linux/arm64; do \
	  echo "$$target"; \
	  export GOOS=$${target%/*} GOARCH=$${target#*/} CGO_ENABLED=0; \
	  go build -o /dev/null ./cmd/ralph; \
	done
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 go vet ./...

.PHONY: bench
bench: build ## Measure ralph against the bare floor, side by side
	go run ./e2e/bench -ralph bin/ralph $(BENCHFLAGS)
	go test -run '^$$' -bench . -benchtime 20x -timeout 30m ./worktree ./internal/proc
	go test -run '^$$' -bench . -benchtime 1x -timeout 30m ./tracker/github ./tracker/gitlab ./sandboxes/...

.PHONY: fuzz
# On a busy machine go test may take the end of FUZZTIME itself for a failure, without an input that fails: once more then.
fuzz: ## Run every fuzz target for FUZZTIME (10s)
	@set -e; found=$$(grep -rlE '^func Fuzz' --include='*_test.go' . | sort); \
	for file in $$found; do \
	  for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$$file"); do \
	    echo "== $$(dirname "$$file") $$target"; \
	    for try in 1 2 3; do \
	      if out=$$(go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" 2>&1); then echo "$$out"; break; fi; \
	      echo "$$out"; \
	      case "$$out" in \
	        *"Failing input"*) exit 1;; \
	        *"context deadline exceeded"*) test $$try -lt 3;; \
	        *) exit 1;; \
	      esac; \
	    done; \
	  done; \
	done

.PHONY: example
example: ## Write config.example.yaml anew from the table of keys
	go test ./internal/cli/config -run '^TestExampleFile$$' -update

.PHONY: clean
clean: ## Remove what these targets made
	rm -rf bin .tools

# The race detector needs a C compiler; the program itself does not.
.PHONY: cc
cc:
	@command -v "$${CC:-gcc}" >/dev/null || command -v cc >/dev/null || \
	  { echo "make test needs a C compiler for the race detector: apt-get install gcc libc6-dev, or xcode-select --install"; exit 1; }

# The real agents that the tests drive against a scripted model.
.PHONY: agents
agents:
	@e2e/agents/install.sh $(TOOLS)/npm

$(GOLANGCI_LINT):
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	mv $(TOOLS)/golangci-lint $@

$(GOVULNCHECK):
	GOBIN=$(TOOLS) go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
	mv $(TOOLS)/govulncheck $@
