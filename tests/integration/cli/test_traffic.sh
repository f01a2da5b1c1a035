#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# kill -9 of each part of a job in the middle of traffic, on both data paths: test_traffic.sh EMUNIC GNI_PINGPONG.
# After each: the right status, a clear line, and within 5 s no process, file or socket.
pingpong=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# Operations that the job's ports have started so far.
operations() {
    "$emunic" status --json 2>/dev/null | python3 -c '
import json, sys
servers = [s for s in json.load(sys.stdin)["servers"] if s["server"].endswith("-" + sys.argv[1])]
print(sum(p["tx_operations"] for s in servers for d in s["domains"] for p in d["ports"]))' "$run_pid" 2>/dev/null
}

is_in_traffic() {
    local now
    now=$(operations)
    [ "${now:-0}" -gt 2000 ]
}

# Four ranks that would go on for hours; returns when they are at it.
start_traffic() {
    local words
    mapfile -d '' -t words < <(command_line run -n 4 --datapath "$datapath" -- "$here/traffic_rank.sh" "$dir" \
        "$pingpong" -i 100000000)
    exec 7</dev/null 8</dev/null
    "${words[@]}" >"$dir/out" 2>"$dir/err" </dev/null &
    run_pid=$!
    wait_until is_in_traffic || bad "no traffic"
}

kill_run() {
    start_traffic
    kill -9 "$run_pid"
    wait "$run_pid" 2>/dev/null
    expect_nothing_left
    err=$(<"$dir/err")
    expect_err "launcher pid $run_pid has gone: ending its job"
}

kill_emunic() {
    local pid
    start_traffic
    pid=$(server_pid)
    kill -9 "$pid"
    await_run
    expect_status 1
    expect_err "emunic \(pid $pid\) was killed by signal 9: ending the job"
    expect_nothing_left
}

kill_mpirun() {
    local pid
    start_traffic
    pid=$(child_named "$run_pid" mpirun)
    kill -9 "$pid"
    await_run
    expect_status 137
    expect_err "mpirun \(pid $pid\) was killed by signal 9: ending the job"
    expect_nothing_left
}

# The first to fail gives the status: the killed rank, or a peer that gave up because its transaction failed.
kill_rank() {
    start_traffic
    kill -9 "$(<"$dir/rank.1")"
    await_run
    [ "$status" -eq 137 ] || [ "$status" -eq 1 ] || bad "status is $status, neither 137 nor 1"
    [ -n "$err" ] || bad "nothing on stderr"
    expect_nothing_left
}

names=()
for datapath in auto routed; do
    for part in run emunic mpirun rank; do
        name=kill_9_of_${part}_in_${datapath}_traffic
        eval "test_$name() { datapath=$datapath; kill_$part; }"
        names+=("$name")
    done
done
run_tests "${names[@]}"
