# SPDX-License-Identifier: Apache-2.0
# Thin front of scripts/setup, CMake, Ninja and scripts/test-all.
#
#   make            install what is missing, build the programs into build/bin
#   make demo       a cluster on this machine, shown at work
#   make test       everything that continuous integration runs
#   make check      build and run the unit and simulation tests of the Release build only
#   make bench      the measurements
#   make test-all   test, and what takes longer: tsan, mutants, powercut, sweep, chaos
#   make tsan       the tests under the thread sanitizer
#   make simulate   whole clusters on fake time, one a seed (SEEDS=1000, or SEEDS=7-7 for one of them)
#   make chaos      a cluster under loads and misfortune, MINUTES=10 (SEED=1, CHAOS="--help")
#   make failover   how long commits wait when the leader is killed, KILLS=200 times
#   make powercut   power cuts on loop file systems under load (CUTS=20, root)
#   make failpoints a kill at each named point, under load (FAILPOINT_KILLS=200 for more)
#   make fuzz       every parser and decoder (EXECS=10000000 executions each, ONLY=csv)
#   make mutants    planted faults, each of which its test must find (MUTANTS="--only 3,12")
#   make sweep      the n-th allocation, write or sync fails (POINTS=30, or all: hours)
#   make test-bare  the set-up and the demo in a fresh Debian 12 (root, a few minutes)
#   make format     clang-format over the tree
#   make clean      remove the builds (not build/deps);  make distclean: that, too

JOBS ?= 2
CUTS ?= 20
POINTS ?= 30
CMAKE_FLAGS ?=
MINUTES ?= 2
KILLS ?= 200
CONFIGURE = cmake -S . -B build -G Ninja $(CMAKE_FLAGS)
NINJA = ninja -C build -j $(JOBS)

.PHONY: all setup configure demo test check bench test-all tsan simulate chaos failover powercut sweep test-bare format clean distclean

all: configure
	@$(NINJA) programs

setup:
	@scripts/setup build

configure: setup
	@$(CONFIGURE)

demo:
	@scripts/setup build demo
	@$(CONFIGURE)
	@$(NINJA) programs
	@scripts/demo

test:
	@JOBS=$(JOBS) scripts/test-all

check:
	@JOBS=$(JOBS) scripts/test-all quick

test-all: test tsan mutants powercut sweep chaos

tsan:
	@JOBS=$(JOBS) scripts/test-all tsan

SEEDS ?= 60
simulate: all
	@$(NINJA) test_sim_seeds
	@SEEDS=$(SEEDS) build/bin/tests/test_sim_seeds

chaos: all
	@$(NINJA) chaos_faults
	@tests/chaos/chaos.py --bin build/bin --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(CHAOS)

failover: all
	@tests/chaos/failover.py --bin build/bin --kills $(KILLS)

powercut: all
	@$(NINJA) tidegate_shim
	@tests/powercut/powercut.py --bin build/bin --cuts $(CUTS) --disk-mb 16384 $(POWERCUT)

.PHONY: failpoints mutants fuzz
failpoints:
	@scripts/setup build test
	@JOBS=$(JOBS) scripts/test-all failpoints

fuzz:
	@scripts/setup build test
	@JOBS=$(JOBS) FUZZ_EXECS=$(EXECS) FUZZ_ONLY=$(ONLY) scripts/test-all fuzz

mutants:
	@scripts/setup build test
	@JOBS=$(JOBS) tests/mutants/mutants.py --build build-faults -DTIDEGATE_DEPS=$(CURDIR)/build/deps $(MUTANTS)

sweep: all
	@$(NINJA) tidegate_shim log_replay
	@tests/sweep/sweep.py --bin build/bin --target participant --points $(POINTS)
	@tests/sweep/sweep.py --bin build/bin --target coordinator --points $(POINTS)
	@tests/sweep/kill_at_write.py --bin build/bin --points $(POINTS)

bench:
	@scripts/setup build demo
	@$(CONFIGURE) -DBENCH=ON
	@$(NINJA) programs bench
	@scripts/test-bench

test-bare:
	@scripts/setup bare
	@scripts/test-bare

format:
	@scripts/test-format --fix

clean:
	@rm -rf build-* && if [ -d build ]; then \
	    find build -mindepth 1 -maxdepth 1 ! -name deps -exec rm -rf {} +; fi

distclean:
	@rm -rf build build-*
