#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`emunic run --hosts`: who runs where, what ranks are told, and every way to end. `test_launch.py EMUNIC PMI_CHECK`"""

import os
import pathlib
import re
import signal
import subprocess
import sys

from cluster import address
from testing import HeldJob, Launch, choose, enter, run_tests, wait_until

TELL = "echo rank $EMUNIC_RANK nid $EMUNIC_NID host $EMUNIC_HOST"
MPI_RANK = str(pathlib.Path(__file__).resolve().parent.parent / "integration/cli/mpi_rank.py")
launch = None
pmi_check = None


def places(done):
    return sorted(tuple(map(int, found)) for found in re.findall(r"rank (\d+) nid (\d+) host h(\d+)", done.stdout))


def test_a_rank_on_each_of_four_hosts(cluster):
    done = launch.expect(cluster, ["-q", "--hosts", "h0,h1,h2,h3", "--", "sh", "-c", TELL])
    assert places(done) == [(0, 0, 0), (1, 1, 1), (2, 2, 2), (3, 3, 3)], done.stdout
    assert "emunic" not in done.stderr, done.stderr


def test_slots_and_nodes_decide_who_runs_where(cluster):
    done = launch.expect(cluster, ["-q", "--hosts", "h0:2,h2:4", "--ppn", "2", "--", "sh", "-c", TELL])
    assert places(done) == [(0, 0, 0), (1, 0, 0), (2, 1, 2), (3, 1, 2), (4, 2, 2), (5, 2, 2)], done.stdout
    done = launch.expect(cluster, ["-q", "--hosts", "h0,h1", "-n", "6", "--", "sh", "-c", TELL])
    assert [host for _, _, host in places(done)] == [0, 0, 0, 1, 1, 1], done.stdout
    done = launch.run(cluster, ["--hosts", "h1,h0", "--", "true"])
    assert done.returncode == 1 and "h1, is not the one that this runs on" in done.stderr, done.stderr


def test_one_host_of_the_list_is_a_job_without_others(cluster):
    done = launch.expect(cluster, ["-q", "--hosts", "h0:4,h1", "-n", "3", "--", "sh", "-c", TELL])
    assert places(done) == [(0, 0, 0), (1, 1, 0), (2, 2, 0)], done.stdout


def test_environment_and_working_directory_reach_all_hosts(cluster):
    done = launch.expect(cluster, ["-q", "--hosts", "h0,h1", "-x", "NEW=1 2", "--", "sh", "-c",
                                   "echo $EMUNIC_HOST $GIVEN $NEW $PWD ${XDG_SESSION_ID-none}"],
                         env=cluster.environment | {"GIVEN": "a b", "XDG_SESSION_ID": "x"})
    expected = [f"h0 a b 1 2 {os.getcwd()} x", f"h1 a b 1 2 {os.getcwd()} none"]
    assert sorted(done.stdout.splitlines()) == expected, done.stdout


def test_each_node_has_its_own_name_and_the_address_of_its_host(cluster):
    script = "echo $(hostname) $(uname -n) $(cat /proc/cray_xt/nid /proc/cray_xt/cname) on $EMUNIC_HOST sees " \
             "$(for nid in nid00000 nid00001 nid00003; do getent ahostsv4 $nid | head -n 1 | cut -d ' ' -f 1; done)"
    for view in ["auto", "library"]:
        done = launch.expect(cluster, ["-q", "--hosts", "h0:2,h1:6", "--ppn", "2", "--", "sh", "-c", script],
                             env=cluster.environment | {"EMUNIC_NODE_VIEW": view})
        seen = f"{address(0)} {address(1)} {address(1)}"
        expected = [f"nid0000{nid} nid0000{nid} {nid} c0-0c0s0n{nid} on h{int(nid > 0)} sees {seen}"
                    for nid in [0, 0, 1, 1, 2, 2, 3, 3]]
        assert sorted(done.stdout.splitlines()) == expected, done.stdout
        assert "emunic" not in done.stderr, done.stderr
    done = launch.expect(cluster, ["-q", "--hosts", "h0,h1", "--real-hostname", "--", "hostname"])
    assert sorted(done.stdout.split()) == ["h0", "h1"], done.stdout


def test_mpi_shares_memory_on_a_host_and_not_between_hosts(cluster):
    done = launch.run(cluster, ["-q", "--hosts", "h0,h1", "-n", "6", "--ppn", "2", "--", sys.executable, MPI_RANK])
    if done.returncode == 77:
        return                          # no MPI for programs here
    # Two nodes, nid 0 and 1, are on h0.
    expected = [f"rank {rank} on nid0000{rank // 2} shares {[4, 2][rank // 4]} sum 15 shared {[6, 1][rank // 4]}"
                for rank in range(6)]
    assert done.returncode == 0 and sorted(done.stdout.splitlines()) == expected, done


def test_pmi_knows_ranks_and_nodes_of_all_hosts(cluster):
    told = {"PMI_CHECK_SIZE": "8", "PMI_CHECK_NIDS": "0,0,1,1,2,2,3,3", "PMI_CHECK_LIVES": "0"}
    # It knows a job without a NIC.
    names = ["PMI_GNI_COOKIE", "PMI_GNI_PTAG", "PMI_GNI_DEV_ID", "PMI_GNI_LOC_ADDR", "EMUNIC_COOKIE", "EMUNIC_PTAG"]
    without = [word for name in names for word in ["-u", name]]
    launch.expect(cluster, ["-q", "--hosts", "h0,h1,h2,h3", "-n", "8", "--ppn", "2", "--", "env", *without, pmi_check],
                  env=cluster.environment | told)


def test_one_line_names_the_rank_that_failed_its_node_and_its_host(cluster):
    def fail(command, environment):
        words = ["--hosts", "h0,h1,h2", "--", "sh", "-c", f"[ $EMUNIC_RANK = 2 ] && {command}; exit 0"]
        done = launch.run(cluster, words, env=cluster.environment | environment)
        assert done.returncode == 139 and done.stdout == "", (done.returncode, done.stdout)
        return [line for line in done.stderr.splitlines() if "setpgid" not in line]

    line = "emunic run: rank 2 on node c0-0c0s0n2 (nid 2, host h2) was ended by signal 11 (Segmentation fault)"
    told = fail("kill -11 $$", {"OMPI_MCA_odls_base_sigkill_timeout": "1"})
    assert told == [line], told
    # mpirun would not hand such a setting on to its daemons.
    told = fail("kill -11 $$", {"OMPI_MCA_some_setting": "two words"})
    line = "emunic run: the job failed with status 139; mpirun does not say which rank and why, try --verbose"
    assert told == [line], told


def test_standard_input_is_that_of_rank_0_and_status_that_of_the_program(cluster):
    program = ["sh", "-c", "[ $EMUNIC_RANK = 1 ] || cat"]
    done = cluster.run(0, [launch.emunic, "run", "-q", "--hosts", "h0,h1", "--", *program],
                       input="through\n", stdout=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout) == (0, "through\n"), done
    launch.expect(cluster, ["-q", "--hosts", "h0,h1", "--", "sh", "-c", "exit $((EMUNIC_RANK * 7))"], status=7)


def test_each_emunic_runs_where_it_is_told(cluster):
    first = min(os.sched_getaffinity(0))
    done = launch.expect(cluster, ["-q", "--hosts", "h0,h1", "--bind", str(first), "--", launch.emunic, "status"])
    # Each of two ranks asks its own, which tells of both.
    for host in [0, 1]:
        assert done.stdout.count(f"  host h{host} on processors {first}: told so\n") == 2, done.stdout


def test_hosts_that_do_not_reach_each_other_are_named(cluster):
    route = ["blackhole", f"{address(2)}/32"]
    cluster.run(1, ["ip", "route", "add", *route], check=True)
    try:
        done = launch.run(cluster, ["-q", "--hosts", "h0,h1,h2", "--peer-timeout", "2", "--", "true"])
    finally:
        cluster.run(1, ["ip", "route", "del", *route], check=True)
    assert done.returncode == 1, done
    assert "emunic run: host h1 has had no session with host h2 for 2000 ms\n" in done.stderr, done.stderr


def mpirun(cluster, outer, arguments, status=0):
    """`emunic run` as the program of an mpirun."""
    handed_on = [word for name in os.environ if name.endswith("SAN_OPTIONS") for word in ["-x", name]]
    words = ["mpirun", *handed_on, *outer, launch.emunic, "run", "-q", *arguments]
    done = cluster.run(0, ["timeout", "-k", "5", "60", *words],
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == status, f"status {done.returncode}, not {status}: {done.stdout}{done.stderr}"
    return done


def test_inside_an_mpirun_its_slots_are_those_of_the_job(cluster):
    inner = ["--hosts", "mpirun", "--ppn", "2", "--", "sh", "-c", TELL]
    done = mpirun(cluster, ["--host", "h0:2,h2:4"], inner)
    assert places(done) == [(0, 0, 0), (1, 0, 0), (2, 1, 2), (3, 1, 2), (4, 2, 2), (5, 2, 2)], done.stdout
    # Where it starts one process per host, ranks are dealt out evenly.
    done = mpirun(cluster, ["--host", "h0,h1", "--map-by", "ppr:1:node"], ["-n", "4", *inner])
    assert places(done) == [(0, 0, 0), (1, 0, 0), (2, 1, 1), (3, 1, 1)], done.stdout
    # Without the option each of its processes has a job of its own.
    done = mpirun(cluster, ["--host", "h0,h1"], ["-n", "2", "--", "sh", "-c", TELL])
    assert places(done) == [(0, 0, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1)], done.stdout


def test_inside_an_mpirun_the_status_reaches_it(cluster):
    program = ["sh", "-c", "exit $((EMUNIC_RANK == 3 ? 9 : 0))"]
    mpirun(cluster, ["--host", "h0:2,h1:2"], ["--hosts", "mpirun", "--", *program], 9)
    done = launch.run(cluster, ["--hosts", "mpirun", "--", "true"])
    assert done.returncode == 1 and "this is no process of an mpirun" in done.stderr, done.stderr


def test_inside_an_mpirun_that_ends_nothing_is_left(cluster):
    for number in [signal.SIGTERM, signal.SIGKILL]:
        outer = ["mpirun", "--host", "h0:2,h1:2"]
        with HeldJob(launch, cluster, "mpirun", 4, outer) as job:
            os.kill(job.find(0, "mpirun")[0], number)
            job.wait()


def test_a_host_that_cannot_be_reached_is_told(cluster):
    done = launch.run(cluster, ["-q", "--hosts", "h0,h9", "--", "true"])
    assert done.returncode == 1 and "emunic run: mpirun could not start emunic on all hosts" in done.stderr, done.stderr


def test_interrupt_ends_everything(cluster):
    for number in [signal.SIGINT, signal.SIGTERM]:
        with HeldJob(launch, cluster, "h0,h1,h2,h3", 4) as job:
            os.kill(job.find(0, "emunic")[0], number)
            assert job.wait() == 128 + number, job.errors()


def test_interrupt_while_hosts_start(cluster):
    process = cluster.start(0, [launch.emunic, "run", "-q", "--hosts", "h0,h1,h2,h3", "--", "true"],
                            stderr=subprocess.PIPE)
    assert wait_until(lambda: any("emunic-host" in what for what in cluster.leftovers(2)))
    for pid in find_runs(cluster):
        os.kill(pid, signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM, process.returncode


def find_runs(cluster):
    """The `emunic run` of the first host, and its keeper."""
    return [int(what.split()[1]) for what in cluster.leftovers(0) if what.startswith("process") and "emunic run" in what
            and "nsenter" not in what and "timeout" not in what]


def test_killed_run_leaves_nothing(cluster):
    with HeldJob(launch, cluster, "h0,h1,h2,h3", 4) as job:
        os.kill(job.find(0, "emunic")[0], signal.SIGKILL)
        job.wait()


def keepers(cluster, host):
    return {int(what.split()[1]) for what in cluster.leftovers(host)
            if what.startswith("process ") and what.split(" ", 2)[2].startswith("emunic keeper of ")}


def test_a_killed_keeper_of_another_host_has_a_successor(cluster):
    with HeldJob(launch, cluster, "h0,h1", 2) as job:
        n = len(keepers(cluster, 1))
        for victim in sorted(keepers(cluster, 1)):
            os.kill(victim, signal.SIGKILL)
            assert wait_until(lambda victim=victim: victim not in keepers(cluster, 1) and len(keepers(cluster, 1)) == n)
        job.release()
        assert job.wait() == 0, job.errors()
    # It cleans up as well, when nobody else can.
    with HeldJob(launch, cluster, "h0,h1", 2) as job:
        for victim in sorted(keepers(cluster, 1))[::2]:
            os.kill(victim, signal.SIGKILL)
        os.kill(job.find(0, "emunic")[0], signal.SIGKILL)
        job.wait()


def test_killed_mpirun_ends_the_job(cluster):
    for which in [0, 1]:                # of the emunics, of the ranks
        with HeldJob(launch, cluster, "h0,h1,h2", 3) as job:
            os.kill(job.find(0, "mpirun")[which], signal.SIGKILL)
            assert job.wait() != 0, job.errors()


def test_killed_emunic_ends_the_job(cluster):
    for host in [0, 2]:
        with HeldJob(launch, cluster, "h0,h1,h2", 3) as job:
            os.kill(job.find(host, "emunic-host")[0], signal.SIGKILL)
            assert job.wait() == 1, job.errors()
            assert "emunic on one of the hosts has ended" in job.errors(), job.errors()


def test_killed_rank_ends_the_job(cluster):
    with HeldJob(launch, cluster, "h0,h1,h2", 3) as job:
        os.kill(job.find(2, "sh")[-1], signal.SIGKILL)
        assert job.wait() == 128 + signal.SIGKILL, job.errors()


def test_lost_host_ends_the_job(cluster):
    with HeldJob(launch, cluster, "h0,h1,h2", 3) as job:
        cluster.kill(2)
        assert job.wait(60) != 0, job.errors()
    cluster.boot(2)


def test_what_ranks_leave_behind_is_killed(cluster):
    stray = "setsid sleep 1000 >/dev/null 2>&1 </dev/null &"
    launch.expect(cluster, ["-q", "--hosts", "h0,h1", "--", "sh", "-c", stray])


if __name__ == "__main__":
    enter()
    launch = Launch(sys.argv[1])
    pmi_check = sys.argv[2]
    sys.exit(run_tests(choose(globals(), sys.argv[3:])))
