#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# `emunic status`, `emunic links` and the reports of `run`, while a job is held and after it.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# json EXPRESSION: of the object on $out, named `o`, must be true.
json() {
    python3 -c '
import json, sys
o = json.load(sys.stdin)
assert isinstance(o, dict) and o["schema"] == 1
mine = [s for s in o.get("servers", []) if s["server"].endswith("-" + sys.argv[2])]
sys.exit(not eval(sys.argv[1]))' "$1" "${run_pid:-none}" <<<"$out" || bad "not true: $1 of $out"
}

test_status_while_a_job_runs() {
    n_ranks=4 start_job --ppn 2
    call status --json
    expect_status 0
    [ "$(wc -l <<<"$out")" -eq 1 ] || bad "not one line"
    json 'len(mine) == 1'
    json 'mine[0]["machine"] == "aries" and mine[0]["machine_nodes"] == 768'
    json '[d["ranks"] for d in mine[0]["domains"]] == [4]'
    json '[n["cname"] for n in mine[0]["domains"][0]["nodes"]] == ["c0-0c0s0n0", "c0-0c0s0n1"]'
    json 'mine[0]["domains"][0]["members"] == 4 and mine[0]["domains"][0]["member_limit"] == 4'
    call status
    expect_status 0
    expect_out "^server run-[0-9]+-[0-9a-f]{16}-$run_pid, pid [0-9]+: aries \(dragonfly, 768 nodes\)"
    expect_out 'ptag [0-9]+, cookie 0x[0-9a-f]{8}, user [0-9]+, 4 ranks on 2 nodes, 0 attached \(limit 4\)'
    call status --server "$(server_name)" --json
    expect_status 0
    json 'len(o["servers"]) == 1 and len(mine) == 1'
    n_ranks=4 release_job
    await_run
    expect_status 0
}

test_links_while_a_job_runs() {
    start_job
    call links --json
    expect_status 0
    json 'mine[0]["flows"] == [] and mine[0]["links"] == []'
    call links --paths --server "$(server_name)"
    expect_status 0
    expect_out 'nothing has been sent'
    release_job
    await_run
}

test_status_of_nobody() {
    call status --server "nobody-$$" --json
    expect_status 1
    expect_error_line "emunic status: no server named 'nobody-$$' runs here"
    call links --server "nobody-$$"
    expect_status 1
    expect_error_line "emunic links: no server named 'nobody-$$' runs here"
}

test_two_servers_are_listed_by_name() {
    local first second
    start_server "b-$id"
    first=$serve_pid
    rm "$dir/serve"
    start_server "a-$id" --machine aries:groups=1,chassis=1
    second=$serve_pid
    call status --json
    expect_status 0
    json '[s["server"][0] for s in o["servers"] if s["server"][1:] == "-'"$id"'"] == ["a", "b"]'
    json '[s["machine_nodes"] for s in o["servers"] if s["server"] == "a-'"$id"'"] == [64]'
    kill -TERM "$first" "$second"
    wait "$first" "$second"
    expect_nothing_left
}

test_run_without_traffic_prints_no_tables() {
    call run -n 2 --paths --links -- echo hello
    expect_status 0
    [ "$out" = $'hello\nhello' ] || bad "out: $out"
}

test_run_writes_its_plan_as_json() {
    call run -q -n 3 --ppn 2 --place random:7 --json "$dir/json" -- sh -c 'exit 4'
    expect_status 4
    out=$(<"$dir/json")
    json 'o["ranks"] == 3 and o["ranks_per_node"] == 2 and o["nodes"] == 2 and o["exit_status"] == 4'
    json 'len(o["rank_nids"]) == 3 and o["rank_nids"][0] == o["rank_nids"][1] != o["rank_nids"][2]'
    json 'o["program"] == "sh" and o["place"] == "random:7" and o["flows"] == [] and o["links"] == []'
}

# In a network of its own there is none.
test_verbs_without_a_server_fail_alike() {
    local words emunic_really=$emunic
    unshare -rn true 2>/dev/null || return 0
    printf '#!/bin/sh\nexec unshare -rn "%s" "$@"\n' "$emunic_really" >"$dir/emunic"
    chmod +x "$dir/emunic"
    emunic=$dir/emunic
    for words in status links 'links --paths' 'fault list' 'fault clear' 'fault fail router 3'; do
        # shellcheck disable=SC2086
        call $words
        expect_status 1
        expect_error_line "^emunic ${words%% *}: no server of this user runs here\$"
    done
    for words in 'status --json' 'links --json' 'fault --json list'; do
        # shellcheck disable=SC2086
        call $words
        expect_status 1
        expect_err "^emunic ${words%% *}: no server of this user runs here\$"
        [ "$out" = '{"schema": 1, "servers": []}' ] || bad "$words: $out"
    done
    for words in 'status --server nobody' 'links -s nobody' 'fault -s nobody list' 'fault -s nobody clear' \
        'fault -s nobody fail router 3' 'run -s nobody true'; do
        # shellcheck disable=SC2086
        call $words
        expect_status 1
        expect_error_line "^emunic ${words%% *}: no server named 'nobody' runs here"
    done
    emunic=$emunic_really
}

run_tests status_while_a_job_runs links_while_a_job_runs status_of_nobody \
    verbs_without_a_server_fail_alike two_servers_are_listed_by_name \
    run_without_traffic_prints_no_tables run_writes_its_plan_as_json
