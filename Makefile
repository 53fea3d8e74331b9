# make demo   sets everything up, builds, writes out/index.html       make test   the same set-up, then all tests
# make bench  the benchmark                                          make lint   formatting, types, layers
# make docs   the documentation, into build/docs                     make gpu-report   tests and times on a GPU
# make state   long runs of the state machines        make mutation   do the tests notice changed operators?
# make bench-check   the instructions of the kernels beside those on record   make check   lint, kernels and the table, in minutes
# make fuzz   ten million executions of the fuzzers                   make test-large   more than 2³¹ entries, in 20 GiB
# make test-threads, test-clang, test-aarch64   ThreadSanitizer, another compiler, another processor
# make HASHED=1 …   installs packages by their hashes
# Everything lives in .venv and build/; a second run starts in seconds.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
export PATH := $(BIN):$(PATH)
JOBS ?= $(shell nproc)
# One compiler cache for every build folder and clone.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
export CCACHE_SLOPPINESS := pch_defines,time_macros,include_file_mtime,include_file_ctime

.PHONY: demo test check test-aarch64 test-clang test-threads test-large fuzz state mutation bench bench-check gpu-report docs lint format build all \
        setup dev clean

# Threads that wait sleep: with other processes on the cores, spinning ones cost the report two minutes of five.
demo: build
	OMP_WAIT_POLICY=passive $(BIN)/python -m gossamer demo --out out $(addprefix --data ,$(wildcard ../shared/data/planetoid)) $(ARGS)

# Every stage writes what it did into $(RESULTS), from which the last line tells what was skipped, and why. The engines
# are tested without the stand-in for cuda, beside which PARDISO cannot be. What a tracer does needs no sanitizer.
RESULTS := $(CURDIR)/build/results
CTEST := ctest -j$(JOBS) --test-output-size-passed 1000000 --output-junit
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal
test: lint all dev
	rm -rf $(RESULTS) && mkdir -p $(RESULTS)
	$(CTEST) $(RESULTS)/1_kernels.xml --preset dev
	$(CTEST) $(RESULTS)/2_front_end.xml --preset release
	$(PYTEST) --junitxml=$(RESULTS)/3_python.xml tests --ignore=tests/solve/test_engines.py --ignore=tests/fuzz
	GOSSAMER_STANDIN=off $(PYTEST) --junitxml=$(RESULTS)/4_engines.xml tests/solve/test_engines.py
	scripts/sanitized.sh $(PYTEST) --junitxml=$(RESULTS)/5_sanitized.xml tests/table tests/fuzz -k "not compiles and not opcheck and not imports"
	$(COUNT)
	@echo && $(BIN)/python scripts/skipped.py $(RESULTS)

# For people at work, after a build: lint, the kernels, and every op through the table in both front ends. A few minutes.
check: lint all
	@test -f build/dev/build.ninja || cmake --preset dev
	cmake --build --preset dev -j$(JOBS) --target kernel_tests
	build/dev/tests/kernels/kernel_tests --gtest_brief=1
	$(PYTEST) tests/table -k "not compiles and not opcheck and not imports"

# Random sequences of uses beside dense twins, in both front ends, and the fixes that they would miss: tests/state.
STEPS ?= 100000
state: all
	GOSSAMER_STATE=$(STEPS) $(BIN)/python -m pytest tests/state
	GOSSAMER_STATE=$(STEPS) build/release/tests/cpp/state_tests

# One operator, bound or constant changed at a time, and the tests that should notice: tests/mutation. Takes hours.
ARGS_OF_MUTATION = $(or $(ARGS),--python 100 --cpp 100 --files 20 --planted both --jobs $(JOBS))
mutation: build
	$(BIN)/python tests/mutation/mutate.py $(ARGS_OF_MUTATION)

# The torch-free core on another processor, which qemu plays: see scripts/aarch64.sh. Takes minutes, and apt for its tools.
test-aarch64: setup
	scripts/aarch64.sh

# The library by clang, with its tests: see scripts/clang.sh. Takes twenty minutes, and apt for clang, or CLANG=.
test-clang: setup
	scripts/clang.sh

# What eight threads share, with the library under ThreadSanitizer: see scripts/threads.sh. Takes ten minutes.
test-threads: setup
	scripts/threads.sh

# The fuzzers for as long as ten million executions take; `make fuzz SEED=2 MILLIONS=1` other ones. See tests/fuzz.
SEED ?= 1
MILLIONS ?= 10
fuzz: dev
	scripts/fuzz.sh $(SEED) $(MILLIONS)

# More than 2³¹ entries, and entries × heads beyond that. Wants 20 GiB; `make test-large LARGE=10000000` is a rehearsal.
LARGE ?= 2150400000
test-large: build
	GOSSAMER_LARGE=$(LARGE) GOSSAMER_STANDIN=off $(BIN)/python -m pytest -x tests/faults/test_large.py

bench: build
	$(BIN)/python -m bench $(ARGS)

# The instructions of small cases, beside those on record; `make bench-check ARGS=--record` writes them anew.
COUNT := $(BIN)/python -m bench.instructions build/release/bench/instructions/count_instructions
bench-check: setup
	@test -f build/release/build.ninja || cmake --preset release
	cmake --build --preset release -j$(JOBS) --target count_instructions
	$(COUNT) $(ARGS)

# On a machine with a GPU: builds with nvcc, tests and times there, writes out/gpu_report.md. See docs/gpu.md.
gpu-report: setup
	@test -f build/cuda/build.ninja || cmake --preset cuda
	cmake --build --preset cuda -j$(JOBS) --target gossamer
	$(BIN)/python scripts/gpu_report.py $(ARGS)

# The site; the network is not used, warnings are errors.
docs: build
	$(BIN)/python -m sphinx -n -W --keep-going -b html docs build/docs

lint: setup
	clang-format --dry-run -Werror $$(git ls-files '*.h' '*.cpp' '*.cu' '*.cuh')
	ruff check . && ruff format --check .
	mypy
	$(BIN)/python scripts/check_layers.py

format: setup
	clang-format -i $$(git ls-files -co --exclude-standard '*.h' '*.cpp' '*.cu' '*.cuh')
	ruff check --fix . ; ruff format .

# The library alone; `all` adds the C++ tests and the stand-in for cuda.
build: setup
	@test -f build/release/build.ninja || cmake --preset release
	cmake --build --preset release -j$(JOBS) --target gossamer

all: build
	cmake --build --preset release -j$(JOBS)

# After the library, whose ops without loops it takes as they are.
dev: build
	@test -f build/dev/build.ninja || cmake --preset dev
	cmake --build --preset dev -j$(JOBS)

setup: $(VENV)/.ready
	@scripts/system_packages.sh

# A .pth file puts python/ on the path: the package is used where it stands. HASHED=1 takes what has the sha256 on record
# and nothing else; the record is of one Python and one kind of machine: see requirements-hashed.txt.
REQUIREMENTS := $(if $(HASHED),--require-hashes -r requirements-hashed.txt,-r requirements-dev.txt)
$(VENV)/.ready: requirements-dev.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(REQUIREMENTS)
	echo "$(CURDIR)/python" > "$$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])')/gossamer-dev.pth"
	touch $@

clean:
	rm -rf build python/gossamer/lib out
