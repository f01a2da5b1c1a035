#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Misuse ends the job with a line that names PE, call and argument; the death of a PE ends those that block.

    test_misuse.py EMUNIC PROGRAM [--all]

Without --all a part of the cases, for `make check`. A death has to end the job, with a line that names the rank, within
5 s: so it is on a machine that has time. The end itself is waited for, and the time from the death to it is printed; the
bound here is one for machines that are busy with other things.
"""

import os
import re
import subprocess
import sys
import tempfile
import time

DEATH_S = 30

# Case: what the line has to name, whether it needs SMA_DEBUG, whether it belongs to `make check`.
MISUSE = {
    "bad_pe": ("PE 0: shmem_long_p: PE 3", False, True),
    "negative_pe": ("PE 0: shmem_long_g: PE -1", False, False),
    "local_address": ("PE 0: shmem_long_put: address 0x", False, True),
    "past_the_end": ("PE 0: shmem_putmem: address 0x", False, False),
    "misaligned_atomic": ("PE 0: shmem_long_atomic_inc: address 0x", False, True),
    "bad_signal": ("PE 0: shmem_long_put_signal: sig_op 77", False, False),
    "bad_stride": ("PE 0: shmem_long_iput: strides 0 and 1", False, False),
    "bad_comparison": ("PE 0: shmem_long_wait_until: cmp 99", False, False),
    "invalid_context": ("PE 0: shmem_ctx_long_p: SHMEM_CTX_INVALID", False, False),
    "invalid_team": ("PE 0: shmem_long_sum_reduce: team: SHMEM_TEAM_INVALID", False, False),
    "bad_root": ("PE 0: shmem_long_broadcast: PE_root -3", False, False),
    "bad_set": ("PE 0: shmem_barrier: PE_start 0, logPE_stride 0, PE_size 4", False, False),
    "predefined_team": ("PE 0: shmem_team_destroy: team", False, False),
    "too_many_elements": ("PE 0: shmem_long_put: 18446744073709551615 elements", False, False),
    "free_lock": ("PE 0: shmem_clear_lock: lock 0x", True, True),
    "local_ivar": ("PE 0: shmem_long_wait_until: ivar 0x", True, False),
    "local_buffer": ("PE 0: shmem_long_sum_reduce: dest 0x", True, False),
    "global_exit": ("status 7", False, True),
}
# Calls that wait for others, and operations on the PE that dies. Those of `make check`.
BLOCKING = [
    "wait_word", "wait_some", "wait_all", "wait_any", "wait_all_vector", "wait_any_vector", "wait_some_vector",
    "wait_signal", "wait_lock", "wait_barrier", "wait_barrier_set", "wait_sync", "wait_sync_set", "wait_team_sync",
    "wait_broadcast", "wait_broadcast_set", "wait_sum", "wait_sum_set", "wait_reduce", "wait_collect",
    "wait_fcollect", "wait_alltoall", "wait_alltoalls", "wait_malloc", "wait_calloc", "wait_align", "wait_realloc",
    "wait_free", "wait_split", "wait_split_2d", "wait_finalize",
]
OPERATING = [
    "puts_to_it", "gets_from_it", "atomics_at_it", "signals_to_it", "quiets_after_puts_to_it",
]
# Of four PEs in virtual time, by collective engines.
WITH_ENGINES = ["wait_barrier", "wait_sum"]
WAYS = {"auto": [], "routed": ["--datapath", "routed"], "by engines": ["-n", "4", "--time", "virtual"]}
QUICK_DEATHS = ["wait_word", "wait_barrier"]


def run(emunic, program, case, options=(), debug=False, **settings):
    """What it did, and when it had ended. A second -n counts."""
    env = dict(os.environ, SHMEM_SYMMETRIC_SIZE="16M", SMA_DEBUG="1" if debug else "0", **settings)
    done = subprocess.run([emunic, "run", "-q", "-n", "3", *options, "--", program, case], capture_output=True, text=True,
                          env=env, timeout=120, check=False, stdin=subprocess.DEVNULL)
    return done, time.monotonic()


class Tap:
    def __init__(self):
        self.n = 0
        self.n_failed = 0

    def tell(self, is_good, text, done):
        self.n += 1
        print(f"{'ok' if is_good else 'not ok'} {self.n} - {text}")
        if not is_good:
            self.n_failed += 1
            print(f"# status {done.returncode}: {done.stdout} {done.stderr}".replace("\n", "\n# "))


def misuse(tap, emunic, program, case, debug):
    done, _ = run(emunic, program, case, debug=debug)
    line = MISUSE[case][0]
    tap.tell(done.returncode not in (0, 2) and line in done.stderr and "came past it" not in done.stdout,
             f"{case}{' checked' if debug else ''}", done)


def death(tap, emunic, program, case, way):
    """The launcher tells of the death, or a PE whose request failed names the dead one (if the launcher is late)."""
    done, ended = run(emunic, program, case, WAYS[way])
    died = re.search(r"dies at ([0-9.]+)", done.stderr)
    seconds = ended - float(died.group(1)) if died else DEATH_S
    is_told = (done.returncode == 128 + 9 and "rank 1" in done.stderr) or (
        done.returncode == 1 and re.search("PE [02]: .* PE 1[ :]", done.stderr))
    tap.tell(is_told and seconds < DEATH_S and "came past it" not in done.stdout,
             f"death while others are in {case}, {way}: {seconds:.1f} s", done)


def schedule_of(classes):
    """A file: after some operations on PE 1 none of these classes has success."""
    schedule = tempfile.NamedTemporaryFile("w", suffix=".yaml")
    schedule.write(f"schema: 1\nrules:\n  - {{class: [{classes}], to: 1, after: 1000, action: fail}}\n")
    schedule.flush()
    return schedule


def loss(tap, emunic, program, classes, line):
    """PE 1 lives, but operations on it fail."""
    with schedule_of(classes) as schedule:
        done, _ = run(emunic, program, "operates_on_the_lost", ["--faults", schedule.name])
    tap.tell(done.returncode == 1 and line in done.stderr and "came past it" not in done.stdout,
             f"PE 1 gets none of {classes}", done)


def block_transfers(tap, emunic, program):
    """A small put is none, but the setting makes it one: then it alone is hit."""
    with schedule_of("bte-put") as schedule:
        done, _ = run(emunic, program, "operates_on_the_lost", ["--faults", schedule.name],
                      SHMEM_DMAPP_BTE_THRESHOLD="8")
    tap.tell(done.returncode == 1 and "PE 0: shmem_quiet: one of the requests" in done.stderr,
             "SHMEM_DMAPP_BTE_THRESHOLD chooses the engine", done)


def bad_settings(tap, emunic, program):
    for name, value in [("SHMEM_DMAPP_BTE_THRESHOLD", "-1"), ("SHMEM_MAX_OUTSTANDING_NB", "4"),
                        ("SHMEM_ROUTING_MODE", "fast")]:
        done, _ = run(emunic, program, "global_exit_0", **{name: value})
        tap.tell(done.returncode == 1 and f"shmem_init: {name}: '{value}' is not a number from " in done.stderr,
                 f"{name}={value} ends the job", done)


def main():
    emunic, program = sys.argv[1:3]
    everything = "--all" in sys.argv
    tap = Tap()
    for case, (_, needs_debug, is_quick) in MISUSE.items():
        for debug in ([True] if needs_debug else [False, True]):
            if everything or (is_quick and debug == needs_debug):
                misuse(tap, emunic, program, case, debug)
    done, _ = run(emunic, program, "global_exit_0")
    tap.tell(done.returncode == 0 and "came past it" not in done.stdout and "aborted" not in done.stderr,
             "global_exit(0) ends all PEs with status 0", done)
    for case in BLOCKING + OPERATING:
        for way in ["auto", "routed"]:
            if everything or (case in QUICK_DEATHS and way == "auto"):
                death(tap, emunic, program, case, way)
    for case in WITH_ENGINES:
        death(tap, emunic, program, case, "by engines")
    loss(tap, emunic, program, "fma-put, fma-get, fma-amo", "PE 0: shmem_quiet: requests, PE 1 answers none: ")
    bad_settings(tap, emunic, program)
    if everything:
        block_transfers(tap, emunic, program)
        loss(tap, emunic, program, "fma-put", "PE 0: shmem_quiet: one of the requests since the last quiet: ")
    print(f"1..{tap.n}")
    return 1 if tap.n_failed else 0


sys.exit(main())
