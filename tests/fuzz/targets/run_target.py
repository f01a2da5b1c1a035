#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a libFuzzer target for some seconds, from its seeds; fails on any finding.

    run_target.py TARGET [--seeds PROGRAM] [--corpus FOLDER]...   EMU_FUZZ_SECONDS (10), EMU_TEST_SEED
    run_target.py TARGET --repeat HEX                             the input of a finding, once more
    run_target.py TARGET --finds ...                              succeeds if there is a finding, and it is told

The last line tells inputs per second, the parts of the code that were reached, and how many inputs the parser took and
refused. A run in which it took none, or refused none, fails: it has not reached the parser.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LONGEST = 16384
HEX_MAX = 4096
# The time-out is of the wall clock and for an input that waits; target.c limits an input's processor time.
OPTIONS = ["-timeout=1200", "-rss_limit_mb=4096", "-print_final_stats=1", f"-max_len={LONGEST}", "-use_value_profile=0"]
ENVIRONMENT = {
    "ASAN_OPTIONS": "allocator_may_return_null=1:detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}


def command_of(args):
    """What repeats a finding, up to its bytes."""
    return f"{sys.executable} {pathlib.Path(__file__).resolve()} {pathlib.Path(args.target).resolve()} --repeat"


def environment():
    """The caller's, without settings of a fuzzer's environment, and ours."""
    return {**os.environ, **ENVIRONMENT}


def repeat(args):
    """One input."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes.fromhex(args.repeat))
        file.flush()
        return subprocess.run([args.target, file.name], env=environment(), check=False).returncode


def tell_findings(args, folder, output):
    """Each finding as hex, with the command that repeats it. Their number."""
    print("\n".join(output.splitlines()[-60:]))
    findings = sorted(folder.iterdir())
    for finding in findings:
        data = finding.read_bytes()
        kept = ""
        if len(data) > HEX_MAX:
            keep = pathlib.Path(tempfile.gettempdir()) / f"{args.name}-{finding.name}"
            keep.write_bytes(data)
            kept = f" (all {len(data)} bytes: {keep})"
        print(f"finding {finding.name}: {data[:HEX_MAX].hex()}{kept}")
        print(f"repeat it: {command_of(args)} {data[:HEX_MAX].hex()}" if not kept else
              f"repeat it: {pathlib.Path(args.target).resolve()} {keep}")
    return len(findings)


def number(pattern, text):
    """The last number that the pattern finds, or 0."""
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def run(args, folder):
    """The run. Exit status."""
    work = folder / "corpus"
    findings = folder / "findings"
    seeds = folder / "seeds"
    for each in (work, findings, seeds):
        each.mkdir()
    if args.seeds:
        subprocess.run([args.seeds, args.name, seeds], check=True)
    command = [args.target, *OPTIONS, f"-max_total_time={args.seconds}", f"-artifact_prefix={findings}/"]
    if os.environ.get("EMU_TEST_SEED"):
        command.append(f"-seed={os.environ['EMU_TEST_SEED']}")
    done = subprocess.run([*command, work, seeds, *args.corpus], env=environment(), check=False, text=True,
                          errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        args.n_found = tell_findings(args, findings, done.stdout)
        print(f"{args.name}: status {done.returncode}, {args.n_found} findings")
        return 1
    taken, refused = number(r"taken (\d+)", done.stdout), number(r"refused (\d+)", done.stdout)
    print(f"{args.name}: {number(r'number_of_executed_units: *([0-9]+)', done.stdout)} inputs, "
          f"{number(r'average_exec_per_sec: *([0-9]+)', done.stdout)} a second, "
          f"coverage {number(r'cov: ([0-9]+)', done.stdout)} features {number(r'ft: ([0-9]+)', done.stdout)}, "
          f"taken {taken}, refused {refused}")
    if taken and refused:
        return 0
    print(f"{args.name}: the parser was not reached")
    return 1


def main():
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("--seeds")
    parser.add_argument("--corpus", action="append", default=[])
    parser.add_argument("--repeat", metavar="HEX")
    parser.add_argument("--finds", action="store_true")
    args = parser.parse_args()
    args.name = pathlib.Path(args.target).name.removeprefix("fuzz-target-")
    args.n_found = 0
    args.seconds = int(os.environ.get("EMU_FUZZ_SECONDS", "10"))
    if args.repeat is not None:
        return repeat(args)
    with tempfile.TemporaryDirectory(prefix="emunic-fuzz-") as folder:
        status = run(args, pathlib.Path(folder))
    if args.finds:
        print("the planted fault was found" if args.n_found else "the planted fault was not found")
        return 0 if args.n_found else 1
    return status


if __name__ == "__main__":
    sys.exit(main())
