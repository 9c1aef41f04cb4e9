# xiaozhi: two commands do everything on a fresh Debian 12 with Go, gcc and make.
#   make run    sets up, builds and starts the server
#   make test   sets up and runs the tests
# Both install the Debian packages they need when run as root, and otherwise say
# which are missing. No target calls sudo.

# Go keeps its caches below HOME, which a container or a service may lack.
ifeq ($(HOME),)
export HOME := $(shell getent passwd "$$(id -u)" | cut -d: -f6)
endif

# hraban/opus wants libopusfile unless this tag is set; every Go command needs it.
# Go asks git for the revision, which git does not tell of another user's folder.
# Without -trimpath each folder compiles all packages again, and programs tell it.
export GOFLAGS := $(strip $(shell go env GOFLAGS) -tags=nolibopusfile -trimpath $(shell git rev-parse HEAD >/dev/null 2>&1 || echo -buildvcs=false))

# Go 1.26 has vector instructions for amd64 as an experiment: voice detection takes
# half the time with them (providers/silero/product_simd.go). All else is the same.
ifeq ($(origin GOEXPERIMENT),undefined)
export GOEXPERIMENT := $(shell [ "$$(go env GOARCH)" = amd64 ] && GOEXPERIMENT=simd go list simd/archsimd >/dev/null 2>&1 && echo simd)
endif

GOFUMPT     := mvdan.cc/gofumpt@v0.12.0
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOLANGCI    := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.8.0
FUZZTIME    ?= 10s
ARGS        ?=

.PHONY: all run build test test-all contract quality e2e check lint fuzz bench gobench vuln phrases journeys pictures budgets conformance release clean

all: build

run: ## set up, build and start the server; make run ARGS="--listen 127.0.0.1:8000"
	@scripts/packages.sh run
	@$(MAKE) --no-print-directory build
	@exec bin/xiaozhi serve $(ARGS)

build:
	@mkdir -p bin
	go build -o bin/ ./cmd/xiaozhi ./cmd/xiaozhi-sim

# Tests of pure arithmetic in these run without the race detector, under which they
# take ten times as long (testall.Arithmetic; internal/archtest checks the list).
PLAIN := ./audio/echo ./audio/track ./internal/speechtest ./knowledge/reader ./providers/rules ./providers/silero

# A program with the race detector waits a second at its end, which 150 programs of
# tests do one after the other. Races are told when they are found, and tests wait
# for their goroutines. What it knows of a large object is cleared in place, for
# mapping that memory anew costs a seventh of the time of internal/app.
GORACE ?= atexit_sleep_ms=50 clear_shadow_mmap_threshold=1000000000

# Tests collect garbage less often than the server does, which saves a fifteenth of their time; their tests of memory collect it themselves.
TESTGOGC ?= 400

# Linking their 150 programs takes a quarter of all work, and less of it through this.
TESTLINK ?= -ldflags=-extld=./scripts/link.sh

# The packages whose tests take longest begin first, so that none is alone at the end.
LONGEST := ./internal/app ./agent ./store ./providers/pocketsphinx ./cmd/xiaozhi

# Tests of these names drive a browser, which takes the machine for itself: they run apart from those that measure times.
BROWSER    := Journey|Console|TalkPage|TicksOff|HostileWords
NO_BROWSER := command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null || echo "NOT TESTED: the journeys of the console, without a browser (Debian: chromium-headless-shell) / 没有测试控制台页面：没有安装 chromium-headless-shell"

# End to end always runs: Go does not know that its tests depend on the programs which they build. They wait more than they compute.
# The fakes of services are driven by the contracts of all providers; tests of the fakes themselves are in test-all.
test: ## what must be green at any time: vet, tests with the race detector, fuzz seeds, end to end; five minutes
	@scripts/packages.sh test
	@scripts/axe.sh
	@rm -rf .tools/link && mkdir -p .tools/link
	go vet ./...
	GOGC=$(TESTGOGC) GORACE="$(GORACE)" go test -race $(TESTLINK) -vet=off -p 4 -parallel 4 -timeout 14m $(LONGEST) $$(go list ./... | grep -v -e '/e2e$$' -e '/internal/servicetest/')
	go test -count=1 -vet=off -parallel 40 -timeout 14m -skip '$(BROWSER)' $(PLAIN) ./e2e
	go test -count=1 -vet=off -parallel 10 -timeout 14m -run '$(BROWSER)' ./e2e
	@$(NO_BROWSER)
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || echo "NOT TESTED: the store on PostgreSQL, which is not installed (Debian: postgresql-15) / 没有测试 PostgreSQL：没有安装"

test-all: ## before a release: make test, storms, quality of recognition, all of end to end with the race detector, programs of others
	@$(MAKE) --no-print-directory test
	TEST_ALL=1 go test -race -parallel 4 -timeout 60m -skip '^TestQuality$$' $$(go list ./... | grep -v '/e2e$$')
	@$(MAKE) --no-print-directory quality
	TEST_ALL=1 go test -race -parallel 4 -timeout 60m -skip '$(BROWSER)' ./e2e
	TEST_ALL=1 go test -race -parallel 4 -timeout 60m -run '$(BROWSER)' ./e2e
	@scripts/conformance.sh

contract: ## all providers against the contract of their role, as a table: each service beside each fault; make contract ARGS=-race
	@scripts/contract.sh $(ARGS)

quality: ## how much of the recordings is recognised: the tables of providers/pocketsphinx/README.md
	TEST_ALL=1 go test -v -timeout 60m -run '^TestQuality$$' ./providers/pocketsphinx
	TEST_ALL=1 go test -v -timeout 10m -run '^TestNoSpeechHasWords$$' ./internal/app

e2e: ## end to end only
	@scripts/packages.sh test
	go test -count=1 -parallel 40 -skip '$(BROWSER)' ./e2e
	go test -count=1 -parallel 10 -run '$(BROWSER)' ./e2e

check: ## before a release: format, vet, staticcheck, tests, tidy
	@out=$$(go run $(GOFUMPT) -l .); if [ -n "$$out" ]; then echo "gofumpt would change:"; echo "$$out"; exit 1; fi
	go vet ./...
	go run $(STATICCHECK) ./...
	go mod tidy -diff
	@$(MAKE) --no-print-directory test

lint:
	go run $(GOLANGCI) run

vuln:
	go run $(GOVULNCHECK) ./...

# Minimising what is interesting takes up to a minute each by default: more than the whole time.
fuzz: ## every fuzz target for FUZZTIME (default 10s); goes on after a failure
	@failed=; for pkg in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for f in $$(grep -h '^func Fuzz' $$pkg/*_test.go | sed 's/func \(Fuzz[A-Za-z0-9_]*\).*/\1/'); do \
			echo "== $$pkg $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x $$pkg || failed="$$failed $$pkg.$$f"; \
		done; \
	done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

bench: ## our server beside its goals, about four minutes; make bench ARGS="--full --runs 3" (docs/bench.md)
	@scripts/packages.sh run
	@$(MAKE) --no-print-directory build
	@exec bin/xiaozhi bench $(ARGS)

gobench: ## Go's own benchmarks: speed of the parts, with allocations
	@scripts/packages.sh test
	go test -run '^$$' -bench . -benchmem ./...

conformance: ## MCP programs of others against ours, the official conformance suite among them; skipped without npm
	@scripts/conformance.sh

PICTURES ?= $(CURDIR)/.tools/pictures

journeys: ## the console in Debian's Chromium, as in make test, but each journey and page in both languages, widths and themes
	@scripts/packages.sh test
	@scripts/axe.sh
	@$(NO_BROWSER)
	JOURNEYS=1 go test -count=1 -parallel 6 -timeout 20m -run '$(BROWSER)' ./e2e

pictures: ## contact sheets of all pages of the console, for a person to look at: 2 languages, 2 themes, 2 widths; make pictures PICTURES=FOLDER
	@scripts/packages.sh test
	@rm -rf "$(PICTURES)" && mkdir -p "$(PICTURES)"
	PICTURES="$(abspath $(PICTURES))" go test -count=1 -run '^TestConsolePictures$$' ./e2e
	@echo "$(PICTURES)"

budgets: ## how heavy and how fast the pages of the console are: the tables of docs/console.md
	@scripts/packages.sh test
	@BUDGETS=1 go test -count=1 -v -run '^TestConsoleBudgets$$' ./e2e | grep -v -e '^===' -e '^ *---'

release: ## all that is released, for amd64 and arm64, built twice and tried, into dist/ (docs/install.md); about twenty minutes, as root
	@scripts/release.sh

phrases: ## render the embedded failure phrases as sound again
	go run ./providers/local/render

clean:
	rm -rf bin
