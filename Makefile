# The few commands a person types; the build itself is CMake's (see CMakePresets.json).
SHELL := /bin/bash
.DEFAULT_GOAL := help
PREFIX ?= /usr/local

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install what build, tests and demo need (Debian 12; as root or with sudo)
	@tools/deps.sh

build: deps ## the release build: build/release/bin/{tracecollectd,tracectl}
	@cmake --preset release >/dev/null
	@cmake --build --preset release

demo: ## collector, traced Go server and live figures in this terminal (DEMO_SECONDS=10 ends by itself)
	@tools/demo.sh

test: ## build and run every test: release, ASAN+UBSAN, TSAN (12 minutes on two cores)
	@tools/deps.sh browser
	@tests/run.sh

unit: deps ## the unit tests of one suite: SUITE=release, asan or tsan
	@TEST_ARGS="-L unit" tests/run.sh "$(or $(SUITE),release)"

lint: build ## shellcheck, typos, words, clang-format, clang-tidy and cppcheck over all; must find nothing (make test does it for what changed last)
	@tools/lint.sh

check: deps ## ROOM=lib/online/order: build what depends on one room and run its unit tests, in build/dev
	@tests/check.sh "$(ROOM)"

flake: build ## each entry of the release build 20 times beside four spinning processes; PART=1/4 takes a quarter, an hour at most
	@tests/flake.sh

engines: deps ## build the real servers that tests talk to, once, into $$TRACECOLLECT_ENGINES
	@tools/engines.sh

soak: build ## whole sweeps that `make test` samples, against the real servers of `make engines`; hours
	@tests/soak.sh

abi: build ## store the agent's binary interface as it is now (tests/data/abi); the tests compare with it
	@tests/abi.py store

bench: deps ## every benchmark with its peer's figure beside ours
	@tests/bench/run.sh

fault: build ## the fault tests alone; FULL=1 with the numbers of docs/RELIABILITY.md, two hours
	@cmake --preset release -DTC_FULL=$(if $(FULL),ON,OFF) >/dev/null
	@TC_FULL=$(FULL) ctest --test-dir build/release -L fault -V --no-tests=error

sim: build ## 2,000 lives by chance; power cut before every call of a run that changes the disk, 20 ways each: some minutes
	@build/release/tests/sim_seeds --count 2000 --jobs $$(nproc)
	@build/release/tests/sim_power --full 1 --jobs $$(nproc)

fuzz-smoke: deps ## each fuzz target for ten seconds (libFuzzer with clang, else our own mutator)
	@tests/fuzz/run.sh 10

mutants: deps ## plant 100 faults in our code, one at a time: unit tests and simulations find 92 or more (20 minutes); ARGS="--seed 2"
	@tests/mutants/mutants.py $(ARGS)

coverage: ## how much of lib/ its tests and the fuzz corpora run (clang's counters; 2 minutes)
	@tools/deps.sh clang
	@tests/coverage.sh

oracle: deps ## a million broken traces through our reader (ASAN+UBSAN) and Go's: the same answer to each (8 minutes)
	@cmake --preset asan >/dev/null
	@cmake --build --preset asan --target oracle_compare
	@tests/oracle/run.sh build/asan/tests/oracle_compare $${ORACLE_COUNT:-1000000} $${ORACLE_SEED:-1}

install: ## install into PREFIX (/usr/local), below DESTDIR if set; builds no tests
	@tools/deps.sh build
	@cmake --preset product -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	@cmake --build --preset product
	@cmake --install build/product

packages: ## Debian packages: build/packages/*.deb (install them with apt install ./build/packages/*.deb); builds no tests
	@tools/deps.sh build
	@cmake --preset product >/dev/null
	@cmake --build --preset product
	@tools/packages.sh

format: deps ## clang-format over our C
	@git ls-files '*.c' '*.h' | xargs build/python/clang_format/data/bin/clang-format -i

clean: ## remove the builds (a downloaded Go stays)
	@rm -rf build/dev build/release build/product build/asan build/tsan build/fuzz build/coverage build/mutants build/demo build/bench build/go-tools

.PHONY: help deps build demo test unit lint check flake engines soak abi fault sim mutants bench fuzz-smoke coverage oracle install packages format clean
