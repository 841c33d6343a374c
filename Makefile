# The only tools this needs are Go and make; lint fetches staticcheck by Go, .ci/run
# gotestsum and audit govulncheck, test and race fetch Postgres and pgbouncer by the package
# manager of the system, and browser a browser.

GO          ?= go
# What runs tests; .ci/run has gotestsum do it. Values of flags follow a =.
GOTEST      ?= $(GO) test
TESTFLAGS   ?=
# What ends a package that hangs, and shows its goroutines. The longest, store/postgres, takes ten
# minutes beside the others on two slow cores: a machine four times as slow is within the limit.
TESTLIMIT   ?= 40m
# The packages that take longest come first, so that the others run beside them, and the small ones last.
LONGEST     := ./store/postgres ./internal/test/chaos ./console ./internal/test/scenario . ./examples/standalone ./examples/cluster
# Where nothing is started beside anything else, by the code or by its tests, the race detector has
# nothing to say. Where packages cannot be listed it is run on all.
BESIDE      := '(^|[:;{}])[[:space:]]*go [A-Za-z_(]|\.Go\(|\.Start\(|\.Parallel\(\)|AfterFunc|synctest\.|httptest\.'
RACEABLE    := $(LONGEST) ./otelxxl/... ./cmd/xxljob/... ./...
RACED        = $(or $(shell $(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' $(RACEABLE) | \
	while read -r name dir; do grep -qE $(BESIDE) "$$dir"/*.go && echo "$$name"; done),$(RACEABLE))
# More packages side by side than there are cores, and more tests: many wait, for a database, a
# process or the clock.
CORES       := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
SIDE        ?= -p=$(shell expr $(CORES) + 1) -parallel=$(shell expr 3 \* $(CORES))
FUZZTIME    ?= 20s
BENCH       ?= .
BENCHTIME   ?= 1s
COUNT       ?= 1
STATICCHECK := v0.8.2
GOTESTSUM   := v1.13.0
GOVULNCHECK := v1.9.0
VULNDB      ?=

staticcheck := bin/staticcheck-$(STATICCHECK)
gotestsum   := bin/gotestsum-$(GOTESTSUM)
govulncheck := bin/govulncheck-$(GOVULNCHECK)
# What depends on what the library does not is a module of its own; go.work has them all.
modules     := $(patsubst %/go.mod,%,$(wildcard otelxxl/go.mod cmd/*/go.mod examples/*/go.mod console/browser/go.mod bench/peers/go.mod))
# The pages of the console are shown by make browser alone.
tested      := $(filter-out console/browser,$(modules))
bench       := $(GO) test -p 1 -run '^$$' -bench '$(BENCH)' -benchmem -benchtime $(BENCHTIME) -count $(COUNT) -timeout 60m ./...

.DEFAULT_GOAL := help
.PHONY: help test race lint fuzz bench postgres

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' $(firstword $(MAKEFILE_LIST))

# What is compiled once and run once: without debug information, which nobody asks of it, and with
# fewer collections of garbage, which take a fifth of what compiling does. lint has the same flags,
# as it looks at what test has compiled, and is what vets.
# -trimpath has a clone in another folder find what was compiled in this one.
frugal := $(shell $(GO) env GOFLAGS) -trimpath -gcflags=github.com/xxljob/xxljob/...=-dwarf=false
test race race-compiled lint browser pictures interop: export GOFLAGS = $(frugal)
test race race-compiled lint browser pictures interop: export GOGC ?= 400
test race race-compiled lint browser pictures interop: export GOMEMLIMIT ?= 2GiB

test: postgres ## run all tests (about ten minutes on two cores)
	XXLJOB_REQUIRE_POSTGRES=1 $(GOTEST) -vet=off $(SIDE) -timeout=$(TESTLIMIT) $(TESTFLAGS) $(LONGEST) $(patsubst %,./%/...,$(tested)) ./...

# The detector sleeps for a second at the end of each package, for threads that still run.
race: postgres ## run the tests that the race detector has something to say of (needs a C compiler)
	XXLJOB_REQUIRE_POSTGRES=1 CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 $(GOTEST) -race -short -vet=off $(SIDE) -timeout=$(TESTLIMIT) $(TESTFLAGS) $(RACED)

# What race compiles, so that .ci/run has that done beside test. Nothing is linked or run.
.PHONY: race-compiled
race-compiled:
	CGO_ENABLED=1 $(GO) list -race -test -export $(RACED) >/dev/null

postgres: ## install Postgres and pgbouncer if missing (NO_INSTALL=1 only says how)
	@sh internal/test/pgtest/install.sh

# Each module by its own go.mod, as who requires it gets it.
lint: export GOWORK = off
lint: $(staticcheck) ## gofmt, vet, staticcheck
	@unformatted=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .); \
		if [ -n "$$unformatted" ]; then echo "gofmt -w is needed for:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(staticcheck) ./...
	@set -e; for m in $(modules); do echo "$$m: vet, staticcheck"; $(GO) -C $$m vet ./...; (cd $$m && "$(CURDIR)/$(staticcheck)" ./...); done

$(staticcheck):
	GOBIN="$(CURDIR)/bin" $(GO) install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK)
	mv bin/staticcheck $@

# gate is what .ci/run makes of a run of go test: gotestsum, and a rule and a report of our own.
.PHONY: gate
gate: $(gotestsum)
	$(GO) build -o bin/gate ./internal/test/gate
	@ln -sf $(notdir $(gotestsum)) bin/gotestsum

$(gotestsum):
	@GOBIN="$(CURDIR)/bin" $(GO) install gotest.tools/gotestsum@$(GOTESTSUM) || { \
		echo "gotestsum $(GOTESTSUM) cannot be fetched, which .ci/run needs once. Without a network, run what it runs by hand: make lint test race browser interop" >&2; exit 1; }
	@mv bin/gotestsum $@

# A test that fails once in a few hundred runs costs a day when it does so in CI.
STRESSED ?= .,./internal/test/scenario,./store/postgres,./executor,./console
.PHONY: stress
stress: postgres ## run tests over and over, under the detector and without, on 1, 2 and 8 processors, beside busy processes (PKG=./x RUN=TestY N=200 ONLY=race,busy RESUME=1; all of STRESSED takes some two hours)
	@$(GO) build -o bin/gate ./internal/test/gate
	bin/gate stress -pkg '$(or $(PKG),$(STRESSED))' $(if $(value RUN),-run '$(value RUN)') $(if $(N),-n $(N)) $(if $(ONLY),-only '$(ONLY)') $(if $(RESUME),-resume)

# Not part of lint or CI: its answer changes without a commit.
.PHONY: audit
audit: $(if $(VULNDB),$(govulncheck)) ## look for known vulnerabilities by a local copy of the database (VULNDB=path), list modules that are behind
	@GO="$(GO)" GOVULNCHECK="$(CURDIR)/$(govulncheck)" sh internal/test/modules/audit.sh "$(VULNDB)"

$(govulncheck):
	GOBIN="$(CURDIR)/bin" $(GO) install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK)
	mv bin/govulncheck $@

fuzz: ## run each fuzz target for FUZZTIME (20s)
	@grep -r --include='*_test.go' '^func Fuzz' . | sed 's/^\(.*\)\/[^/]*:func \(Fuzz[A-Za-z0-9_]*\).*/\1 \2/' | \
	while read -r dir target; do \
		echo "== $$dir $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir" </dev/null || exit 1; \
	done

.PHONY: chaos
chaos: postgres ## inject faults into real processes and a real Postgres (about 35 minutes on two cores; CHAOS=flags)
	$(GO) run ./internal/test/chaos/cmd $(CHAOS)

.PHONY: siege
siege: postgres ## load a scheduler with a hostile app beside an honest one (about 21 minutes on two cores; SIEGE=flags)
	$(GO) run ./internal/test/siege/cmd $(SIEGE)

.PHONY: interop
interop: ## run against executors and admins that others wrote, in Java, Go and Python (two to three minutes)
	@GO="$(GO)" sh interop/build.sh
	XXLJOB_INTEROP=1 $(GOTEST) -count=1 -v -parallel=64 -timeout=10m $(TESTFLAGS) ./interop

# BROWSER_ALL=0 shows each page in one combination, which changes with the commit.
BROWSER_ALL ?= 1
SCREENSHOTS ?= $(CURDIR)/bin/screenshots
.PHONY: browser
browser: ## use the console in a real browser, each page in all languages, themes and widths (some twenty minutes, two to three with BROWSER_ALL=0; SCREENSHOTS)
	@sh console/browser/install.sh
	@mkdir -p "$(SCREENSHOTS)"
	XXLJOB_REQUIRE_BROWSER=1 XXLJOB_BROWSER_ALL=$(BROWSER_ALL) XXLJOB_SCREENSHOTS="$(SCREENSHOTS)" $(GOTEST) -count=1 -parallel=2 -timeout=40m $(TESTFLAGS) ./console/browser/...
	@echo "pictures of the pages are in $(SCREENSHOTS)" >&2

.PHONY: pictures
pictures: ## make the pictures in README.md and docs/console.md, in a real browser (a minute)
	@sh console/browser/install.sh
	XXLJOB_REQUIRE_BROWSER=1 XXLJOB_DOC_PICTURES="$(CURDIR)/docs/images" $(GOTEST) -count=1 -run='^TestPicturesOfDocs$$' $(TESTFLAGS) ./console/browser/...

bench: ## run all benchmarks, with command, settings and machine (BENCH, BENCHTIME, COUNT)
	@echo "settings: GOMAXPROCS=$${GOMAXPROCS:-default} GOGC=$${GOGC:-default} GOMEMLIMIT=$${GOMEMLIMIT:-none}; in memory nothing is durable; benchmarks on Postgres print its settings"
	@echo "machine:  $$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1 | grep . || sysctl -n machdep.cpu.brand_string 2>/dev/null || uname -m), $$(getconf _NPROCESSORS_ONLN) cores, $$(uname -sr), $$($(GO) env GOVERSION)"
	$(bench)

.PHONY: bench-load
bench-load: ## put a scheduler under a load, measure and audit it: xxljob bench (about a minute, nothing beside it; LOAD=flags)
	$(GO) run ./cmd/xxljob bench $(LOAD)

.PHONY: bench-compare
bench-compare: ## compare with BASE=COMMIT: ten runs of each in turns, ratios with a 95 % interval (some twelve minutes; nothing beside it)
	$(GO) run ./internal/test/benchcompare -base "$(BASE)" $(COMPARE)

# The bounds are on medians and on rows: figures of a busy machine say little of the former.
.PHONY: hostile-postgres
hostile-postgres: postgres ## run the suite of stores in databases as people have them, each oddity by itself (some six minutes)
	cd store/postgres && XXLJOB_REQUIRE_POSTGRES=1 XXLJOB_HOSTILE_POSTGRES=1 $(GO) test -count=1 -timeout 40m -run '^TestConformanceInOddDatabases$$'

.PHONY: bench-store
bench-store: postgres ## ask a million runs and 10,000 jobs in Postgres what consoles ask; fails over a bound (a minute or two; ROUNDS, 100)
	XXLJOB_REQUIRE_POSTGRES=1 XXLJOB_BENCH_STORE=$(or $(ROUNDS),100) $(GO) test ./store/postgres -run '^$$' -bench '^BenchmarkStore$$' -benchtime 1x -timeout 30m

.PHONY: bench-console
bench-console: postgres ## ask for each page of the console with a million runs and 1,000 runs/s beside it, and what twenty viewers cost; fails over a budget (five minutes, nothing beside it; ROUNDS, 100). With BASE=COMMIT: ask both in turns, ratios with a 95 % interval; COMPARE="-pairs 100 -bench runs"
ifdef BASE
	$(GO) run ./internal/test/benchcompare -base "$(BASE)" -console -pairs $(or $(ROUNDS),30) $(COMPARE)
else
	XXLJOB_REQUIRE_POSTGRES=1 XXLJOB_BENCH_CONSOLE=$(or $(ROUNDS),100) $(GO) test ./store/postgres -run '^$$' -bench '^BenchmarkConsole$$' -benchtime 1x -timeout 30m
endif

# Absolute figures hold for one machine and one hour: what counts is the ratios of one run.
.PHONY: bench-peers
bench-peers: postgres ## compare with River, gocron, robfig/cron and go-quartz, in turns (some fifteen minutes, nothing beside it; PEERS=flags)
	$(GO) run ./bench/peers $(PEERS)
