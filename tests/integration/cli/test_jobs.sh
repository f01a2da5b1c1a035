#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Several jobs in one virtual time: test_jobs.sh EMUNIC FOLDER-OF-EXAMPLES.
examples=$(cd "$2" && pwd)
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

name=jobs-$$
pids=()

# begin_job NAME OPTION...: on the server, in the background; output in NAME.out, errors in NAME.err.
begin_job() {
    local words job=$1
    shift
    mapfile -d '' -t words < <(command_line run -q --timeout 100 --server "$name" "$@")
    "${words[@]}" >"$dir/$job.out" 2>"$dir/$job.err" </dev/null &
    pids+=("$!")
    background+=("$!")
}

# All jobs end well, or with $1.
await_jobs() {
    local pid
    for pid in "${pids[@]}"; do
        wait "$pid"
        status=$?
        expect_status "${1:-0}"
    done
    pids=()
}

stop_server() {
    kill "$serve_pid"
    wait "$serve_pid"
}

misses() {
    "$emunic" status --server "$name" --json |
        python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)["servers"][0]["time"]["missing_jobs"] != int(sys.argv[1]))' "$1"
}

# bandwidth JOB: of the largest puts.
bandwidth() { awk 'NF == 3 && $1 ~ /^[0-9]+$/ { last = $2 } END { print last }' "$dir/$1.out"; }

is_within() { awk -v v="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(v >= a && v <= b) }' || bad "$1 is not in $2 to $3"; }

# two_streams FIRST SECOND: over the same link of a small Gemini machine; the first has come when the second starts.
two_streams() {
    local -A places=([a]=nids:0,4 [b]=nids:1,5)
    start_server "$name" --machine gemini:z=4 --time virtual --jobs 2 --link-trace "$dir/links" --trace "$dir/operations"
    begin_job "$1" -n 2 --place "${places[$1]}" -- "$examples/gni_pingpong" -i 1 -m 262144
    wait_until misses 1 || bad "job $1 does not come"
    begin_job "$2" -n 2 --place "${places[$2]}" -- "$examples/gni_pingpong" -i 1 -m 262144
    await_jobs
    wait_until misses 0 || bad "jobs are missed"
    stop_server
}

# follow_links LENGTH NAME: the windows of the server's links, in the background, until it ends.
follow_links() {
    local words
    mapfile -d '' -t words < <(command_line links --server "$name" --every "$1")
    "${words[@]}" >"$dir/$2" 2>"$dir/$2.err" </dev/null &
    pids+=("$!")
    background+=("$!")
    wait_until grep -q '^begin_ps,' "$dir/$2" || bad "no first line of windows: $(<"$dir/$2.err")"
}

# Two readers with windows of their own, and a file; and one that comes later, for the second job alone.
test_links_of_a_server_are_told_while_it_runs() {
    local total late
    start_server "$name" --machine gemini:z=4 --time virtual --link-trace "$dir/links" --every 5us
    follow_links 5us same
    follow_links 1us short
    begin_job a -n 2 --place nids:0,4 -- "$examples/gni_pingpong" -i 2 -m 4096
    wait "${pids[-1]}" || bad "the job failed: $(<"$dir/a.err")"
    unset 'pids[-1]'
    follow_links 5us late
    begin_job b -n 2 --place nids:1,5 -- "$examples/gni_pingpong" -i 2 -m 4096
    wait "${pids[-1]}" || bad "the job failed: $(<"$dir/b.err")"
    unset 'pids[-1]'
    stop_server
    await_jobs
    cmp "$dir/links" "$dir/same" >"$dir/difference" || bad "$(<"$dir/difference")"
    total=$(awk -F, 'NR > 1 { n += $4 } END { print n }' "$dir/links")
    [ "$total" = "$(awk -F, 'NR > 1 { n += $4 } END { print n }' "$dir/short")" ] || bad "windows of 1us: not $total packets"
    late=$(awk -F, 'NR > 1 { n += $4 } END { print 2 * n }' "$dir/late")
    [ "$late" = "$total" ] || bad "twice the second job's packets are $late, not $total"
}

# It reads nothing, or goes away: the server and its job do not care.
test_reader_of_links_that_stands_or_goes_holds_nobody_up() {
    start_server "$name" --machine gemini:z=4 --time virtual
    follow_links 10ns stopped
    kill -STOP "${pids[-1]}"
    follow_links 10ns gone
    kill "${pids[-1]}"
    unset 'pids[-1]'
    begin_job a -n 2 --place nids:0,4 -- "$examples/gni_pingpong" -i 20 -m 65536
    wait "${pids[-1]}" || bad "the job failed: $(<"$dir/a.err")"
    unset 'pids[-1]'
    kill -CONT "${pids[-1]}"
    wait_until grep -q 'c0-0c0s0n0' "$dir/stopped" || bad "the stopped reader got nothing"
    stop_server
    await_jobs
}

# expect_same FILE...: as this test's first run has left them.
expect_same() {
    local file
    for file in "$@"; do
        [ -s "$dir/$file" ] || bad "$file is empty"
        [ -e "$dir/$file.first" ] || cp "$dir/$file" "$dir/$file.first"
        cmp "$dir/$file.first" "$dir/$file" >"$dir/difference" || bad "$(<"$dir/difference")"
    done
}

# Output, links and operations of jobs that begin together, with all their times.
test_jobs_that_begin_together_are_the_same_in_any_order() {
    local run
    for run in ab ba ab ba; do
        two_streams "${run:0:1}" "${run:1}"
        expect_same a.out b.out operations links
    done
}

# Likewise of jobs that start at once: the host decides which comes first, to each of its fences.
test_jobs_that_start_at_once_are_the_same() {
    local run
    for run in 1 2 3 4 5 6; do
        start_server "$name" --machine gemini:z=4 --time virtual --jobs 3 --trace "$dir/operations"
        begin_job a -n 2 --place nids:0,4 -- "$examples/gni_pingpong" -i 1 -m 16384
        begin_job b -n 2 --place nids:1,5 -- "$examples/gni_pingpong" -i 1 -m 16384
        begin_job c -n 4 --place nids:2,3,6,7 --begin-after 3us -- "$examples/gni_smsg_ring" -n 2
        await_jobs
        stop_server
        expect_same a.out b.out operations
    done
}

# TITAN-2g: one node gets 6762 MiB/s over this link, and two get 4118 each.
test_jobs_share_links() {
    two_streams a b
    is_within "$(bandwidth a)" 4000 4500
    is_within "$(bandwidth b)" 4000 4500
    start_server "$name" --machine gemini:z=4 --time virtual
    begin_job a -n 2 --place nids:0,4 -- "$examples/gni_pingpong" -i 1 -m 262144
    await_jobs
    is_within "$(bandwidth a)" 6900 7200
    stop_server
}

test_job_of_a_server_prints_what_a_job_alone_does() {
    call run -q -n 2 --machine gemini:z=4 --place nids:0,4 --time virtual -- "$examples/gni_pingpong" -i 5 -m 4096
    expect_status 0
    start_server "$name" --machine gemini:z=4 --time virtual
    for _ in 1 2; do
        begin_job a -n 2 --place nids:0,4 -- "$examples/gni_pingpong" -i 5 -m 4096
        await_jobs
        [ "$(<"$dir/a.out")" = "$out" ] || bad "on a server $(<"$dir/a.out"), alone $out"
    done
    stop_server
}

# first_post NID: in picoseconds.
first_post() { awk -F, -v nid="$1" '$2 == nid { print $12; exit }' "$dir/trace"; }

test_job_begins_as_much_later_as_it_is_told() {
    start_server "$name" --machine gemini:z=4 --time virtual --jobs 2 --trace "$dir/trace"
    begin_job a -n 2 --place nids:0,2 -- "$examples/gni_pingpong" -i 1 -m 64
    begin_job b -n 2 --place nids:4,6 --begin-after 3us -- "$examples/gni_pingpong" -i 1 -m 64
    await_jobs
    stop_server
    [ $(($(first_post 4) - $(first_post 0))) -eq 3000000 ] || bad "begins: $(first_post 0), $(first_post 4)"
}

test_job_that_ends_early_is_not_awaited() {
    start_server "$name" --machine gemini:z=4 --time virtual --jobs 2
    begin_job a -n 2 -- "$examples/gni_pingpong" -i 1 -m 64
    wait_until misses 1 || bad "the job does not come"
    begin_job b -n 2 -- true
    await_jobs
    stop_server
}

test_killed_job_lets_the_others_go_on() {
    start_server "$name" --machine gemini:z=4 --time virtual --jobs 3
    begin_job a -n 2 -- "$examples/gni_pingpong" -i 1 -m 64
    wait_until misses 2 || bad "the first job does not come"
    begin_job b -n 2 -- "$examples/gni_pingpong" -i 1 -m 64
    wait_until misses 1 || bad "the second job does not come"
    kill -KILL "${pids[1]}"
    wait "${pids[1]}" 2>/dev/null
    pids=("${pids[0]}")
    begin_job c -n 2 -- "$examples/gni_pingpong" -i 1 -m 64
    await_jobs
    stop_server
    expect_nothing_left
}

# interrupt JOB: by its number. The others go on.
interrupt() {
    kill -INT "${pids[$1]}"
    wait "${pids[$1]}"
    status=$?
    expect_status 130
    unset "pids[$1]"
}

test_interrupted_job_lets_the_others_go_on() {
    start_server "$name" --machine gemini:z=4 --time virtual --jobs 3
    begin_job a -n 2 -- "$examples/gni_pingpong" -i 1000000
    wait_until misses 2 || bad "the first job does not come"
    begin_job b -n 2 -- "$examples/gni_pingpong" -i 1000000
    wait_until misses 1 || bad "the second job does not come"
    interrupt 1 # at its first fence
    begin_job c -n 4 -- "$examples/gni_pingpong" -i 20 -m 65536
    wait_until misses 0 || bad "the third job does not come"
    interrupt 0 # amid its messages
    await_jobs
    [ "$(wc -l <"$dir/c.out")" -gt 10 ] || bad "the third job says $(<"$dir/c.out")"
    begin_job d -n 2 -- "$examples/gni_pingpong" -i 1 -m 64
    await_jobs
    stop_server
    expect_nothing_left
}

# nids JOB: as its JSON tells.
nids() { python3 -c 'import json, sys; print(*json.load(open(sys.argv[1]))["rank_nids"])' "$dir/$1.json"; }

test_jobs_take_nodes_that_no_other_has() {
    start_server "$name" --machine gemini:z=4 --time virtual --jobs 2
    begin_job a -n 3 --json "$dir/a.json" -- "$examples/gni_smsg_ring" -n 2
    wait_until misses 1 || bad "the job does not come"
    call run --server "$name" -n 46 -- true
    expect_status 1
    expect_error_line 'need 46 nodes that no other job has'
    begin_job b -n 3 --json "$dir/b.json" -- "$examples/gni_smsg_ring" -n 2
    await_jobs
    stop_server
    [ "$(nids a), $(nids b)" = "0 1 2, 3 4 5" ] || bad "nodes: $(nids a), $(nids b)"
}

test_jobs_that_start_at_once_do_not_take_the_same_nodes() {
    local job
    start_server "$name" --machine gemini:z=4 --time virtual --jobs 4
    for job in a b c d; do
        begin_job "$job" -n 4 --json "$dir/$job.json" -- "$examples/gni_smsg_ring" -n 2
    done
    await_jobs
    stop_server
    [ "$(for job in a b c d; do nids "$job"; done | tr ' ' '\n' | sort -n | xargs)" = "$(seq 0 15 | xargs)" ] ||
        bad "nodes: $(nids a), $(nids b), $(nids c), $(nids d)"
}

test_what_makes_no_sense_is_refused() {
    call serve --jobs 2
    expect_status 2
    expect_error_line "--jobs is for --time virtual"
    call serve --compute none
    expect_status 2
    expect_error_line "--compute is for --time virtual"
    call serve --time virtual --hosts "$dir/hosts" --key-file "$dir/key"
    expect_status 2
    expect_error_line "one host"
    call serve --time virtual --machine k-ary-n-tree --name "$name"
    expect_status 2
    expect_error_line "no host parameters"
    start_server "$name" --time virtual
    call run --server "$name" --compute none -- true
    expect_status 2
    expect_error_line "--compute is for the server"
    call run --server "$name" --begin-after never -- true
    expect_status 2
    expect_error_line "'never' is no length"
    stop_server
    start_server "$name"
    call links --server "$name" --every 5us
    expect_status 2
    expect_error_line "server '$name' does not run in virtual time"
    call links --server "$name" --every 5us --json
    expect_status 2
    expect_error_line "--every prints lines of its own"
    call links --server "$name" --every 5
    expect_status 2
    expect_error_line "'5' is no length"
    call run --server "$name" --time virtual -- true
    expect_status 2
    expect_error_line "server '$name' is in functional time"
    call run --server "$name" --begin-after 1us -- true
    expect_status 2
    expect_error_line "--begin-after is for --time virtual"
    stop_server
}

run_tests jobs_that_begin_together_are_the_same_in_any_order jobs_that_start_at_once_are_the_same jobs_share_links \
    job_of_a_server_prints_what_a_job_alone_does job_begins_as_much_later_as_it_is_told \
    job_that_ends_early_is_not_awaited killed_job_lets_the_others_go_on interrupted_job_lets_the_others_go_on \
    links_of_a_server_are_told_while_it_runs reader_of_links_that_stands_or_goes_holds_nobody_up \
    jobs_take_nodes_that_no_other_has jobs_that_start_at_once_do_not_take_the_same_nodes \
    what_makes_no_sense_is_refused
