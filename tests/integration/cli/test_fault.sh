#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# `emunic fault`, `run --faults` and `serve --faults`: test_fault.sh EMUNIC FOLDER_OF_EXAMPLE_PROGRAMS.
programs=$(cd "$2" && pwd)
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
schedules=$(cd "$here/../../../examples/faults" && pwd)

# The rules that `list --json` tells of the first domain, as `o`.
rules() {
    python3 -c '
import json, sys
o = json.load(sys.stdin)["servers"][0]["domains"][0]["rules"]
sys.exit(not eval(sys.argv[1]))' "$1" <<<"$out" || bad "not true: $1 of $out"
}

# Rows that run prints at the end: class, action, ..., seen, hits.
reported() {
    grep -E "^ +[0-9]+ +[0-9]+ +$1" <<<"$err"
}

test_lossy_network_goes_unnoticed_and_can_be_repeated() {
    local first
    cat >"$dir/lossy" <<<'{ schema: 1, seed: 3, rules: [ { class: smsg, action: drop, rate: 0.05 } ] }'
    call run -n 3 --faults "$dir/lossy" -- "$programs/gni_smsg_ring" -l 3
    expect_status 0
    first=$(reported 'smsg +drop +any +any +rate 0.05')
    [ "${first##* }" -gt 0 ] || bad "no hits: $err"
    call run -n 3 --faults "$dir/lossy" -- "$programs/gni_smsg_ring" -l 3
    expect_status 0
    [ "$(reported smsg | awk '{ print $(NF - 1), $NF }')" = "$(awk '{ print $(NF - 1), $NF }' <<<"$first")" ] ||
        bad "another run had other faults: $first and $(reported smsg)"
}

test_fault_fails_the_program_that_does_not_expect_it() {
    cat >"$dir/broken" <<<'{ schema: 1, rules: [ { class: fma-amo, action: drop, from: 0, to: 0, nth: 50 } ] }'
    # One rank: when two call for the end of a job at once, mpirun may lock up in PMIx.
    call run -q -n 1 --faults "$dir/broken" -- "$programs/gni_amo_counter" -n 100
    expect_status 1
    expect_err 'network failure'
}

test_killed_peer_ends_the_job_with_its_status() {
    cat >"$dir/kill" <<<'{ schema: 1, rules: [ { class: any, action: kill, from: 0, to: 1, nth: 50 } ] }'
    call run -q -n 2 --faults "$dir/kill" -- "$programs/gni_pingpong" -i 100
    [ "$status" -eq 137 ] || [ "$status" -eq 1 ] || bad "status is $status, neither 137 nor 1"
    expect_nothing_left
}

test_rules_of_a_running_job_are_added_listed_and_cleared() {
    local server
    start_job
    server=$(servers_of_run)
    call fault -s "$server" list
    expect_status 0
    expect_out 'no rules'
    call fault -s "$server" add class=smsg,bte action=drop rate=0.25 seed=9 from=0
    expect_status 0
    [ -z "$out" ] || bad "says something: $out"
    call fault -s "$server" add class=registration action=fail status=memory live_min=3
    expect_status 0
    call fault -s "$server" --json list
    expect_status 0
    rules 'len(o) == 2 and [r["id"] for r in o] == [1, 2]'
    rules 'o[0]["classes"] == ["bte-put", "bte-get", "smsg"] and o[0]["rate_ppb"] == 250000000 and o[0]["seed"] == 9'
    rules 'o[0]["from_nid"] == 0 and o[0]["to_nid"] is None and o[0]["seen"] == o[0]["hits"] == 0'
    rules 'o[1]["status"] == "memory" and o[1]["live_min"] == 3 and "status" not in o[0]'
    call fault -s "$server" list
    expect_out '^ +[0-9]+ +1 +bte-put,bte-get,smsg +drop +0 +any +rate 0.25 +0 +0$'
    expect_out '^ +[0-9]+ +2 +registration +fail memory +any +any +live_min 3 +0 +0$'
    call fault -s "$server" clear 1
    expect_status 0
    call fault -s "$server" clear 1
    expect_status 1
    expect_err "emunic fault: server '$server' has no such rule"
    call fault -s "$server" --json list
    rules '[r["id"] for r in o] == [2]'
    call fault -s "$server" load "$schedules/flaky-transfers.yaml"
    expect_status 0
    call fault -s "$server" --json list
    rules 'len(o) == 3 and o[0]["id"] == 1 and o[1]["status"] == "remote-range"'
    call fault -s "$server" --domain 77 clear
    expect_status 1
    expect_err "emunic fault: server '$server' has no such domain"
    call fault -s "$server" clear
    expect_status 0
    call fault -s "$server" --json list
    rules 'o == []'
    release_job
    await_run
    expect_status 0
}

test_server_gives_every_domain_its_schedule() {
    local file
    start_server "f-$id" --domain 90:0x90 --faults "$schedules/small-nic.yaml"
    call fault -s "f-$id" --json list
    expect_status 0
    rules 'len(o) == 2 and o[0]["live_min"] == 32 and o[1]["status"] == "timeout"'
    for file in "$schedules"/*.yaml; do
        call fault -s "f-$id" load "$file"
        expect_status 0
        [ -z "$err" ] || bad "$err"
    done
    kill -TERM "$serve_pid"
    wait "$serve_pid"
    expect_nothing_left
}

test_parts_of_the_network_break_and_are_mended_under_a_running_job() {
    local server
    start_job
    server=$(servers_of_run)
    call fault -s "$server" fail router c0-0c0s5a0
    expect_status 0
    [ -z "$out" ] || bad "says something: $out"
    call fault -s "$server" fail link c0-0c0s1a0 c0-0c0s2a0
    expect_status 0
    call fault -s "$server" fail lanes c0-0c0s1a0 c0-0c0s3a0 3
    expect_status 0
    call fault -s "$server" list
    expect_out 'router +5 +c0-0c0s5a0 +down'
    expect_out 'c0-0c0s1a0 -> c0-0c0s2a0 green 0 +down'
    expect_out 'c0-0c0s1a0 -> c0-0c0s3a0 green 0 +lane mask 3'
    call links -s "$server"
    expect_out 'c0-0c0s1a0 +c0-0c0s3a0 +green .* 2/3 +1 +up'
    expect_out 'c0-0c0s1a0 +c0-0c0s2a0 +green .* 3/3 +1 +down'
    wrong 2 "emunic fault: no link leads from 'c0-0c0s1a0' to 'c9-0c0s2a0'" \
        fault -s "$server" fail link c0-0c0s1a0 c9-0c0s2a0
    wrong 2 "emunic fault: 3 links lead from 'c0-0c0s1a0' to 'c0-0c1s1a0': class and number tell which" \
        fault -s "$server" fail link c0-0c0s1a0 c0-0c1s1a0
    wrong 2 'emunic fault: lanes: the link has 3: a mask from 1 to 7' fault -s "$server" fail lanes 2000 8
    wrong 2 "emunic fault: node 'c9-9c0s0n0': neither the name" fault -s "$server" fail node c9-9c0s0n0
    wrong 2 "emunic fault: 'all' is none of link, lanes, router, node" fault -s "$server" fail all
    call fault -s "$server" repair all
    expect_status 0
    call fault -s "$server" list
    grep -q BROKEN <<<"$out" && bad "still broken: $out"
    release_job
    await_run
    expect_status 0
    expect_nothing_left
}

test_a_schedule_breaks_the_network_and_the_program_goes_on() {
    printf 'schema: 1\nnetwork:\n  - { at_ms: 5, fail: "router c0-0c0s5a0" }\n  - { at_ms: 40, repair: all }\n' \
        >"$dir/cut"
    call run -q -n 3 --faults "$dir/cut" -- "$programs/gni_smsg_ring" -l 900
    expect_status 0
    printf 'schema: 1\nnetwork:\n  - { at_ms: 5, fail: router nowhere }\n' >"$dir/nowhere"
    wrong 1 "emunic run: --faults: .*/nowhere: router 'nowhere': neither" run -q --faults "$dir/nowhere" true
    printf 'schema: 1\nnetwork:\n  - { at_ms: 5 }\n' >"$dir/nothing"
    wrong 1 'emunic run: --faults: .*/nothing:3:5: one of fail, repair is missing' run -q --faults "$dir/nothing" true
    expect_nothing_left
}

test_lost_lanes_of_a_gemini_are_in_the_watchers_log() {
    EMUNIC_WATCHER=0 start_server "w-$id" --machine gemini
    call fault -s "w-$id" fail lanes c0-0c1s0g0 c0-0c1s1g0 backplane 3 3
    expect_status 0
    call fault -s "w-$id" list
    expect_out 'l06 c0-0c1s0g0l25 1 Mode Exchanges'
    expect_out 'l06 c0-0c1s0g0l25 1 RX lanemask=3'
    expect_out 'l06 \*\*\*ERROR\*\*\* Gemini LCB lane\(s\) reinit failed'
    expect_out 'l25 c0-0c1s1g0l06 1 TX lanemask=3'
    kill -TERM "$serve_pid"
    wait "$serve_pid"
    expect_nothing_left
}

# wrong STATUS PATTERN WORD...: one line.
wrong() {
    local wanted=$1 pattern=$2
    shift 2
    call "$@"
    expect_status "$wanted"
    expect_error_line "$pattern"
}

test_mistakes_get_one_precise_line() {
    printf 'schema: 1\nrules:\n  - class: smsg\n    action: lose\n' >"$dir/bad"
    wrong 2 'emunic fault: one of list, add, load, clear, fail, repair is missing; try --help' fault
    wrong 2 "emunic fault: 'remove' is none of list, add, load, clear, fail, repair" fault remove
    wrong 2 "emunic fault: add: 'smsg' is not KEY=VALUE" fault add smsg
    wrong 2 "emunic fault: add: unknown key 'colour'" fault add colour=red
    wrong 2 "emunic fault: add: missing key 'action'" fault add class=smsg
    wrong 2 "emunic fault: add: only one of rate, nth" fault add class=smsg action=drop nth=1 rate=0.5
    wrong 2 "emunic fault: clear: '0' is not the number of a rule" fault clear 0
    wrong 2 'emunic fault: --json: is for list' fault --json clear
    wrong 2 "emunic fault: --domain: 'x' is not a number" fault --domain x list
    wrong 1 "emunic fault: no server named 'nobody-$$' runs here" fault -s "nobody-$$" clear
    wrong 1 "emunic fault: .*/bad:4:13: action: 'lose' is none of" fault -s "nobody-$$" load "$dir/bad"
    wrong 1 "emunic run: --faults: .*/bad:4:13: action: 'lose' is none of" run --faults "$dir/bad" true
    wrong 1 "emunic run: --faults: $dir/none: No such file" run --faults "$dir/none" true
    wrong 1 "emunic serve: --faults: .*/bad:4:13: action: 'lose' is none of" serve --faults "$dir/bad"
    expect_nothing_left
}

run_tests lossy_network_goes_unnoticed_and_can_be_repeated fault_fails_the_program_that_does_not_expect_it \
    killed_peer_ends_the_job_with_its_status rules_of_a_running_job_are_added_listed_and_cleared \
    server_gives_every_domain_its_schedule parts_of_the_network_break_and_are_mended_under_a_running_job \
    a_schedule_breaks_the_network_and_the_program_goes_on lost_lanes_of_a_gemini_are_in_the_watchers_log \
    mistakes_get_one_precise_line
