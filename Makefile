# SPDX-License-Identifier: BSD-3-Clause
# Thin front: two commands for a newcomer (make demo, make check), the rest is Meson.

BUILD     ?= build
SANITIZE  ?= build-sanitize
THREADS   ?= build-threads
PYTHON    ?= /usr/bin/python3
SOAK_SECONDS ?= 200
SOAK_PORTALS_SECONDS ?= 300
FUZZ_HOSTS_SECONDS ?= 600
ATTACK_SECONDS ?= 600
ATTACK_CONNECTIONS ?= 1000000
ATTACK_RATE ?= 3000
FUZZ      ?= build-fuzz
FUZZ_SECONDS ?= 600
FUZZ_CHECK_SECONDS ?= 10
KILLS     ?= 10000
SEED      ?= 20261123
MESON     ?= meson
DEMO_JOB   = $(BUILD)/emunic/emunic run -n 4 --machine aries:groups=2 --place scatter --paths -- \
             $(BUILD)/examples/gni_pingpong
# In CI every warning is an error.
SETUP_ARGS = $(if $(CI),--werror)

.PHONY: all deps build demo check check-shmem check-virtual check-sanitize check-threads check-fuzz \
	check-debian-mpi check-multihost live sweep fuzz soak attack kills bench growth generated fidelity mutations format \
	install clean

all: build

# What Debian 12 has to have. Installs only what is missing; elsewhere it prints the names.
deps:
	@tools/install_deps.sh

$(BUILD)/build.ninja: | deps
	$(MESON) setup $(SETUP_ARGS) $(BUILD)

build: deps $(BUILD)/build.ninja
	@$(MESON) compile -C $(BUILD)

# An unmodified GNI program on four emulated nodes: its own table, then the path that each message took.
demo: build
	$(DEMO_JOB)
	@echo
	@echo "Your own program: compile it with the flags of"
	@echo "    PKG_CONFIG_PATH=$(abspath $(BUILD))/meson-uninstalled pkg-config --cflags --libs cray-ugni cray-pmi"
	@echo "and run it with"
	@echo "    $(BUILD)/emunic/emunic run -n 4 -- ./your_program its arguments"

# C as .clang-format says.
format: deps
	@$(PYTHON) tests/tools/check_format.py --apply .

# All tests, then one line of totals. The sanitized build runs the tests of suite `sanitized`, the normal one all but
# those of `sanitized-alone` (tests/README.md), a build with ThreadSanitizer the tests of several threads, clang's build each
# target of libFuzzer for FUZZ_CHECK_SECONDS. UCX and Open MPI are built meanwhile.
check: build
	@setsid tests/thirdparty/ahead.sh $(BUILD) & ahead=$$!; trap 'kill -- -$$ahead 2>/dev/null' EXIT INT TERM; \
	$(MAKE) --no-print-directory check-sanitize check-threads check-fuzz && \
	$(PYTHON) tools/run_tests.py $(BUILD) --no-suite multihost-all --no-suite shmem-all --no-suite virtual-all --no-suite debian-mpi-all \
		--no-suite sanitized-alone \
		--also $(SANITIZE) --also $(THREADS) --also $(FUZZ)

# All of what runs on several hosts, each in namespaces of its own; `make check` has part of it.
check-multihost: build
	@tools/install_deps.sh multihost
	@$(PYTHON) tools/run_tests.py $(BUILD) --suite multihost --suite multihost-all

# All MPI programs of Debian with all numbers of ranks, on all machines and data paths; `make check` has part of them.
check-debian-mpi: build
	@$(PYTHON) tools/run_tests.py $(BUILD) --suite debian-mpi-all

# All conformance programs that run in virtual time; `make check` has part of them.
check-virtual: build
	@$(PYTHON) tools/run_tests.py $(BUILD) --suite virtual-all

# Published figures, as unmodified programs print them in virtual time: a line EXP each. Minutes, on a quiet host.
live: build
	@$(PYTHON) tests/live/figures.py $(BUILD); status=$$?; \
	$(PYTHON) tests/live/topobw.py $(BUILD) || status=1; \
	$(PYTHON) tests/live/agreement.py $(BUILD) || status=1; \
	$(PYTHON) tests/live/same.py $(BUILD) && exit $$status

# Slow Geminis of a whole Titan are found: a quarter of an hour on a quiet machine.
sweep: build
	@$(PYTHON) tests/live/sweep.py $(BUILD)

# OpenSHMEM with all numbers of PEs, on all data paths; `make check` has part of it.
check-shmem: build
	@$(PYTHON) tools/run_tests.py $(BUILD) --suite shmem --suite shmem-all

$(SANITIZE)/build.ninja: | deps
	$(MESON) setup $(SETUP_ARGS) -Doptimization=1 -Db_sanitize=address,undefined -Dthirdparty=disabled $(SANITIZE)

check-sanitize: deps $(SANITIZE)/build.ninja
	@$(MESON) compile -C $(SANITIZE)
	@$(PYTHON) tools/run_tests.py $(SANITIZE) --suite sanitized --save

$(THREADS)/build.ninja: | deps
	$(MESON) setup $(SETUP_ARGS) -Db_sanitize=thread -Dthirdparty=disabled $(THREADS)

# A folder of before learns the targets' names first: meson compile looks them up before it configures anew.
check-threads: deps $(THREADS)/build.ninja
	@ninja --quiet -C $(THREADS) build.ninja
	@$(MESON) compile -C $(THREADS) threads-tests
	@$(PYTHON) tools/run_tests.py $(THREADS) --suite threads --save

$(FUZZ)/build.ninja:
	@tools/install_deps.sh fuzz
	CC=clang $(MESON) setup -Doptimization=1 -Db_sanitize=address,undefined -Dthirdparty=disabled -Dfuzz=enabled $(FUZZ)

check-fuzz: $(FUZZ)/build.ninja
	@$(MESON) compile -C $(FUZZ) fuzz-targets
	@EMU_FUZZ_SECONDS=$(FUZZ_CHECK_SECONDS) $(PYTHON) tools/run_tests.py $(FUZZ) --suite fuzz-targets --save

# Each target of libFuzzer for FUZZ_SECONDS, as many at a time as there are processors; fails on any finding. Inputs per
# second and coverage of each at the end.
fuzz: $(FUZZ)/build.ninja
	@$(MESON) compile -C $(FUZZ) fuzz-targets
	@EMU_FUZZ_SECONDS=$(FUZZ_SECONDS) $(PYTHON) tools/run_tests.py $(FUZZ) --suite fuzz-targets --jobs $$(nproc); \
	status=$$?; grep -h ' a second, ' $(FUZZ)/meson-logs/testlog.txt; exit $$status

# Everything at random against a model, on both data paths, with injected faults, and on four hosts of which one is
# killed; SOAK_SECONDS each, Portals SOAK_PORTALS_SECONDS. Then a host that means harm, against sanitized emunics, for
# FUZZ_HOSTS_SECONDS.
soak: build $(SANITIZE)/build.ninja
	FX_DATAPATH=auto $(BUILD)/tests/soak/soak $(SOAK_SECONDS)
	FX_DATAPATH=routed $(BUILD)/tests/soak/soak $(SOAK_SECONDS)
	$(BUILD)/tests/soak/soak $(SOAK_SECONDS) 20261121 0.01
	for loss in -k -b; do FX_HOSTS=4 EMU_TEST_TRANSPORT=$(abspath $(BUILD))/emunic/transport/emunic-transport.so \
		$(PYTHON) tests/multihost/cluster.py -n 4 --above -- $(BUILD)/tests/soak/soak $$loss $(SOAK_SECONDS) || exit 1; done
	$(BUILD)/emunic/emunic run -q -n 16 --ppn 4 -- $(BUILD)/tests/soak/soak-dmapp $(SOAK_SECONDS)
	$(BUILD)/emunic/emunic run -q -n 16 --ppn 4 --datapath routed -- $(BUILD)/tests/soak/soak-dmapp $(SOAK_SECONDS)
	FX_DATAPATH=auto $(BUILD)/tests/soak/soak-portals $(SOAK_PORTALS_SECONDS)
	FX_DATAPATH=routed $(BUILD)/tests/soak/soak-portals $(SOAK_PORTALS_SECONDS)
	FX_DATAPATH=auto $(BUILD)/tests/soak/soak-portals-ref $(SOAK_PORTALS_SECONDS)
	@$(MESON) compile -C $(SANITIZE) fuzz-hosts emunic-transport:shared_module
	EMU_FUZZ_SECONDS=$(FUZZ_HOSTS_SECONDS) EMU_TEST_TRANSPORT=$(abspath $(SANITIZE))/emunic/transport/emunic-transport.so \
		$(SANITIZE)/tests/fuzz/fuzz-hosts

# Users and strangers that mean harm, beside jobs whose data and speed are looked at (tests/attack/README.md): streams for
# ATTACK_SECONDS each, ATTACK_CONNECTIONS connections, of which ATTACK_RATE a second where the job's time has a bound.
# Nothing else should run on the host.
attack: build
	$(BUILD)/tests/attack/attack-local
	ATTACK_APART=1 $(BUILD)/tests/attack/attack-local
	ATTACK_SECONDS=$(ATTACK_SECONDS) ATTACK_CONNECTIONS=$(ATTACK_CONNECTIONS) ATTACK_RATE=$(ATTACK_RATE) \
		EMU_TEST_TRANSPORT=$(abspath $(BUILD))/emunic/transport/emunic-transport.so \
		$(PYTHON) tests/multihost/cluster.py -n 3 --above -- $(BUILD)/tests/attack/attack-hosts

# KILLS kills at random by SEED, and what must hold after each (tests/kills/README.md): about an hour. KILLS_ARGS: more
# words for kills.py, such as those that a finding tells.
kills: build
	@tools/install_deps.sh multihost
	@$(PYTHON) tests/kills/kills.py $(BUILD) --kills $(KILLS) --seed $(SEED) $(KILLS_ARGS)

# Ours beside the alternatives, as ratios; results and plots in bench-out/. Never part of a test. BENCH_ARGS=--quick: a
# minute.
bench: build
	@tests/bench/run_bench.sh $(BUILD) $(BENCH_ARGS)

# How one emunic grows: ranks, registrations, datagrams, jobs. Ten minutes on a quiet host.
growth: build
	@$(PYTHON) tests/bench/growth.py $(BUILD) $(GROWTH_ARGS)

# The pages of docs/generated that are made from the sources; suite style checks that they are current.
generated:
	@$(PYTHON) tests/tools/coverage.py --write .
	@$(PYTHON) tests/tools/coverage.py --api dmapp --write .
	@$(PYTHON) tests/tools/coverage.py --api portals --write .
	@$(PYTHON) tests/tools/programs.py --write .

# docs/generated/fidelity.md: all experiments at full size with three seeds. Hours. FIDELITY_ARGS=--quick: reduced
# sizes, minutes.
fidelity: build
	@$(PYTHON) tools/fidelity.py $(BUILD) $(FIDELITY_ARGS)

# docs/generated/mutations.md: each parameter of the machine files changed by 30 %, and which figure feels it. Half an
# hour and more. MUTATIONS_ARGS="--machine x1": that machine's rows alone.
mutations: build
	@tests/experiments/mutations.py $(BUILD)/emunic/emunic emunic/machines --page docs/generated/mutations.md $(MUTATIONS_ARGS)

install: build
	$(MESON) install -C $(BUILD)

clean:
	rm -rf $(BUILD) $(SANITIZE) $(THREADS) $(FUZZ)
