#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `emunic run --hosts` tells of a job afterwards, and faults that it injects: the same as on one host.
`test_reports.py EMUNIC PINGPONG RING`"""

import json
import pathlib
import re
import sys
import tempfile

from cluster import FOLDER
from testing import Launch, choose, enter, run_tests

LOSSY = "{ schema: 1, rules: [ { class: smsg, action: drop, rate: 0.05, seed: 7 } ] }"
launch = None
pingpong = ring = None


def folder():
    return pathlib.Path(tempfile.mkdtemp(dir=FOLDER))


def traffic(cluster, options, path):
    """Flows in the order of their nodes, and links."""
    done = launch.expect(cluster, ["-q", *options, "--paths", "--links", "--json", path, "--", pingpong, "-i", "5",
                                   "-m", "4096"])
    report = json.loads(path.read_text())
    assert len(re.findall("-processor-in-> ", done.stdout)) == len(report["flows"]), done.stdout
    return sorted(report["flows"], key=lambda flow: (flow["src_nid"], flow["dst_nid"])), report["links"]


def test_paths_and_links_are_those_of_all_hosts(cluster):
    here = folder()
    alone = traffic(cluster, ["-n", "4"], here / "alone.json")
    assert {flow["src_nid"] for flow in alone[0]} == {0, 1, 2, 3}, alone[0]
    assert traffic(cluster, ["--hosts", "h0,h1,h2,h3"], here / "four.json") == alone
    assert traffic(cluster, ["--hosts", "h0,h1", "-n", "4"], here / "two.json") == alone


def counts(done):
    """Seen and hit by the rule, as run tells."""
    row = re.search(r"smsg +drop .* (\d+) +(\d+)$", done.stderr, re.MULTILINE)
    assert row, done.stderr
    return row.groups()


def test_faults_are_the_same_on_one_host_and_on_several(cluster):
    schedule = folder() / "lossy"
    schedule.write_text(LOSSY)
    program = ["--faults", schedule, "--", ring, "-l", "20"]
    alone = counts(launch.expect(cluster, ["-n", "3", *program]))
    assert int(alone[1]) > 0, alone
    assert counts(launch.expect(cluster, ["--hosts", "h0,h1,h2", *program])) == alone
    assert counts(launch.expect(cluster, ["--hosts", "h0,h1,h2", *program])) == alone


def test_schedule_breaks_the_network_of_all_hosts_and_the_program_goes_on(cluster):
    schedule = folder() / "cut"
    events = '  - { at_ms: 5, fail: "router c0-0c0s5a0" }\n  - { at_ms: 40, repair: all }\n'
    schedule.write_text("schema: 1\nnetwork:\n" + events)
    launch.expect(cluster, ["-q", "--hosts", "h0,h1,h2", "--faults", schedule, "--", ring, "-l", "300"])


if __name__ == "__main__":
    enter()
    launch = Launch(sys.argv[1])
    pingpong, ring = sys.argv[2:4]
    sys.exit(run_tests(choose(globals(), sys.argv[4:])))
