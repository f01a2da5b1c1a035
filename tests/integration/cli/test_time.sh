#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Virtual time: test_time.sh EMUNIC FOLDER-OF-EXAMPLES FOLDER-OF-PROGRAMS. Programs print the modelled machine's times,
# the same in each run.
examples=$(cd "$2" && pwd)
programs=$(cd "$3" && pwd)
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

virtually() { call run --time virtual "$@"; }

# The figure of 8 bytes in the table of gni_pingpong.
latency() { awk '$1 == 8 { print $2; exit }' "$dir/out"; }

# is_within VALUE LEAST GREATEST
is_within() { awk -v v="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(v >= a && v <= b) }' || bad "$1 is not in $2 to $3"; }

# XC-1 has 0.8 us for nodes of different groups, and the model 0.1 us a hop less within a router.
test_latency_of_a_put_is_the_published_one() {
    virtually -n 2 --place scatter -- "$examples/gni_pingpong" -i 20
    expect_status 0
    is_within "$(latency)" 0.72 0.88
}

test_latency_is_that_of_the_machine() {
    virtually -n 2 --machine gemini -- "$examples/gni_pingpong" -i 20
    expect_status 0
    cp "$dir/out" "$dir/gemini"
    virtually -n 2 -- "$examples/gni_pingpong" -i 20
    expect_status 0
    cmp -s "$dir/out" "$dir/gemini" && bad "aries and gemini print the same"
}

# SEASTAR-1a to c: a put of 0 bytes takes 4.89 us, a get 6.09, puts both ways 8.39; SEASTAR-7: 13 bytes do not fit into
# the header, and cost a second interrupt.
test_portals_latency_is_the_published_one() {
    virtually -n 2 --machine seastar -- "$examples/portals_perf" -i 3 -m 16
    expect_status 0
    is_within "$(awk '$1 == 0 { print $2 }' "$dir/out")" 4.79 4.99
    is_within "$(awk '$1 == 0 { print $3 }' "$dir/out")" 5.97 6.21
    is_within "$(awk '$1 == 0 { print $4 }' "$dir/out")" 8.22 8.56
    is_within "$(awk '$1 == 8 { a = $2 } $1 == 16 { print $2 - a }' "$dir/out")" 2.3 2.6
}

test_portals_messages_are_whole_and_in_order() {
    virtually -n 4 --ppn 2 --machine seastar -- "$examples/portals_tags" -n 20
    expect_status 0
}

# XC-11: FMA launch does 7.5 M operations a second of a core.
test_rate_of_words_is_that_of_launches() {
    virtually -n 2 --place scatter -- "$examples/dmapp_gups" -l 10 -n 300
    expect_status 0
    is_within "$(awk '{ print $6 }' "$dir/out")" 7.1 7.9
}

# A tree of two levels of engines has four messages between nodes, of 0.5 to 1 us, and one of three levels six.
test_reductions_cost_their_way() {
    local flat deep
    virtually -n 12 --place scatter -- "$examples/gni_allreduce" -n 50 -c 4
    expect_status 0
    cp "$dir/out" "$dir/first"
    flat=$(awk '{ print $(NF - 2) }' "$dir/out")
    virtually -n 12 --place scatter -- "$examples/gni_allreduce" -n 50 -c 4
    cmp "$dir/out" "$dir/first" || bad "the second run differs"
    virtually -n 12 --place scatter -- "$examples/gni_allreduce" -n 50 -c 2
    expect_status 0
    deep=$(awk '{ print $(NF - 2) }' "$dir/out")
    is_within "$flat" 1.5 5
    is_within "$deep" "$(awk -v f="$flat" 'BEGIN { print f * 1.3 }')" "$(awk -v f="$flat" 'BEGIN { print f * 3 }')"
}

# Each directed one crosses once, and so does the answer of each wildcard; two that point at each other need no answer.
test_datagrams_cross_the_network() {
    local i
    for i in 1 2 3; do
        virtually -n 2 --place scatter --trace "$dir/trace.$i" -- "$examples/gni_datagram_exchange"
        expect_status 0
        cmp "$dir/trace.$i" "$dir/trace.1" || bad "run $i differs"
    done
    [ "$(awk -F, '$6 == "put" && $7 == 128' "$dir/trace.1" | wc -l)" = 6 ] || bad "not six: $(cat "$dir/trace.1")"
    is_within "$(awk -F, '$7 == 128 { t = $14 - $12; if (t > m) m = t } END { print m / 1000000 }' "$dir/trace.1")" 0.7 1.2
}

test_faults_of_transactions_take_their_time() {
    local i
    echo '{ schema: 1, rules: [ { class: fma-put, action: delay, delay_us: 100 } ] }' >"$dir/late"
    virtually -q -n 2 --place scatter --faults "$dir/late" -- "$examples/gni_pingpong" -i 3 -m 8
    expect_status 0
    is_within "$(latency)" 100.7 100.9
    echo '{ schema: 1, seed: 3, rules: [ { class: smsg, action: drop, rate: 0.05 } ] }' >"$dir/lossy"
    for i in 1 2; do
        virtually -n 3 --faults "$dir/lossy" --trace "$dir/trace.$i" -- "$examples/gni_smsg_ring" -l 2
        expect_status 0
        cmp "$dir/trace.$i" "$dir/trace.1" || bad "run $i differs"
    done
    # At its initiator after a message there and back.
    echo '{ schema: 1, rules: [ { class: fma-amo, action: fail, from: 1, nth: 1 } ] }' >"$dir/fails"
    virtually -q -n 2 --faults "$dir/fails" --trace "$dir/trace" -- "$examples/gni_amo_counter" -n 10
    expect_err 'network failure'
    is_within "$(awk -F, '$2 > 0 && /amo/ { print ($15 - $12) / 1000000; exit }' "$dir/trace")" 1 3
}

test_delayed_datagrams_pair_in_virtual_time() {
    echo '{ schema: 1, rules: [ { class: datagram, action: delay, delay_us: 300, from: 0, nth: 2 } ] }' >"$dir/late"
    virtually -q -n 2 --place scatter --faults "$dir/late" --trace "$dir/trace" -- "$examples/gni_datagram_exchange"
    expect_status 0
    is_within "$(awk -F, '$2 == 0 { print $12 / 1000000; exit }' "$dir/trace")" 300 310
}

# 1 % of 10.24 GB/s is 9 of 992 entries of the outstanding request buffer.
test_limit_of_injection_paces_in_virtual_time() {
    local rate
    virtually -q -n 2 --place scatter -- "$programs/paced_puts" 1
    expect_status 0
    rate=$(awk '{ print $3 }' "$dir/out")
    is_within "$rate" 92 95
    virtually -q -n 2 --place scatter -- "$programs/paced_puts" 1
    [ "$(awk '{ print $3 }' "$dir/out")" = "$rate" ] || bad "the second run differs"
}

test_same_job_prints_the_same() {
    local i
    virtually -n 4 --ppn 2 --place scatter -- "$examples/gni_amo_counter"
    expect_status 0
    cp "$dir/out" "$dir/first"
    for i in 1 2 3; do
        virtually -n 4 --ppn 2 --place scatter -- "$examples/gni_amo_counter"
        expect_status 0
        cmp "$dir/out" "$dir/first" || bad "run $i differs"
    done
}

# The program is a child of the rank then. It has the rank's core and its turn.
test_program_of_a_shell_is_the_rank() {
    local i
    virtually -n 6 --ppn 3 --trace "$dir/first" -- "$examples/gni_smsg_ring" -l 1
    expect_status 0
    for i in 1 2 3; do
        # shellcheck disable=SC2016  # the rank's shell expands it
        virtually -n 6 --ppn 3 --trace "$dir/trace" -- sh -c '"$0" -l 1; exit $?' "$examples/gni_smsg_ring"
        expect_status 0
        cmp "$dir/trace" "$dir/first" || bad "run $i differs"
    done
}

# In each of its fences messages are under way; their time must not be the host's choice.
test_fences_end_at_the_same_time() {
    local i
    for i in 1 2 3 4; do
        virtually -n 6 --ppn 2 -- "$examples/gni_smsg_ring" -l 1
        expect_status 0
        [ "$i" = 1 ] && cp "$dir/out" "$dir/first"
        cmp "$dir/out" "$dir/first" || bad "run $i differs: $(cat "$dir/out" "$dir/first")"
    done
}

# Which process of a node comes first, and what numbers its memory gets, is the host's choice.
test_processes_of_a_node_may_come_in_any_order() {
    local i
    for i in 1 2 3 4 5 6; do
        SHMEM_SYMMETRIC_SIZE=16M virtually -n 6 --ppn 3 -- "$examples/shmem_sort" -n 500
        expect_status 0
        [ "$i" = 1 ] && cp "$dir/out" "$dir/first"
        cmp "$dir/out" "$dir/first" || bad "run $i differs: $(cat "$dir/out" "$dir/first")"
    done
}

test_programs_end_well() {
    virtually -n 4 -- "$examples/gni_smsg_ring"
    expect_status 0
    virtually -n 4 -- "$examples/gni_datagram_exchange"
    expect_status 0
    virtually -n 4 -- "$examples/gni_allreduce"
    expect_status 0
    virtually -n 4 -- "$examples/dmapp_gups" -l 10 -n 200
    expect_status 0
    virtually -n 4 -- "$examples/dmapp_queue"
    expect_status 0
}

test_measured_computing_moves_the_clock() {
    virtually -n 2 --compute measured:1000 -- "$examples/gni_pingpong" -i 20
    expect_status 0
    is_within "$(latency)" 1 1000000
}

# Each call of libc lasts as long as asked, and as long in each run; rank 1 writes after 1 ms, and rank 0 looks after a
# quarter of what it has waited.
test_calls_last_as_long_as_the_program_asks() {
    local i
    mkfifo "$dir/fifo"
    for i in first second; do
        virtually -n 2 --place scatter -- "$programs/time_calls" "$dir/$i" "$dir/fifo"
        expect_status 0
    done
    cmp "$dir/first.0" "$dir/second.0" || bad "rank 0: $(diff "$dir/first.0" "$dir/second.0")"
    cmp "$dir/first.1" "$dir/second.1" || bad "rank 1: $(diff "$dir/first.1" "$dir/second.1")"
    is_within "$(awk '/^nanosleep/ { print $2 }' "$dir/first.0")" 3000000 3000020
    is_within "$(awk '/^alarm/ { print $2 }' "$dir/first.0")" 1000000000 1000000020
    is_within "$(awk '/^the other/ { print $4 }' "$dir/first.0")" 1000000 1250020
}

# It does go: 18 polls in vain wait for ever longer.
test_time_goes_no_faster_than_the_hosts_while_a_thread_begins() {
    virtually -n 1 -- "$programs/late_thread"
    expect_status 0
    is_within "$(awk '{ print $1 }' "$dir/out")" 10000000 1000000000
    is_within "$(awk '{ print $1 / $2 }' "$dir/out")" 0 1
}

test_probe_by_a_timer_does_not_make_it_due_again() {
    virtually -n 1 -- "$programs/timed_probe"
    expect_status 0
}

# The program's completions are there, so it must not wait before it has looked at them.
test_send_without_credit_waits_for_nothing() {
    virtually -n 1 -- "$programs/starved_sends"
    expect_status 0
    is_within "$(<"$dir/out")" 0 100
}

test_killed_rank_ends_the_job() {
    virtually -n 2 -- bash -c "[ \"\$EMUNIC_RANK\" = 1 ] && kill -9 \$\$; exec $examples/gni_pingpong -i 20"
    expect_status 137
    expect_nothing_left
}

# fact EXPRESSION: about the object `time` of a job's JSON.
fact() {
    python3 -c '
import json, sys
time = json.load(open(sys.argv[1])).get("time")
sys.exit(not eval(sys.argv[2]))' "$dir/json" "$1" || bad "not so: $1, but $(<"$dir/json")"
}

test_lag_is_in_the_json() {
    virtually -n 2 --json "$dir/json" -- "$examples/gni_allreduce" -n 20
    expect_status 0
    fact 'time["now_ps"] > 10**6 and time["is_exact"] and time["ranks"] == []'
    fact 'time["late_operations"] == time["late_ps"] == time["spins"] == 0 and time["max_lag_ppm"] == 10000'
    virtually -n 2 --json "$dir/json" --compute measured:1000 --max-lag 0 -- "$examples/gni_allreduce" -n 20
    expect_status 0
    fact 'time["is_exact"] == (time["late_ps"] == 0) and time["max_lag_ppm"] == 0'
    fact 'sum(r["late_ps"] for r in time["ranks"]) == time["late_ps"]'
    fact 'all(r["rank"] in (0, 1) and r["pid"] > 0 for r in time["ranks"])'
    call run -n 2 --json "$dir/json" -- "$examples/gni_allreduce" -n 20
    fact 'time is None'
}

# Ranks whose clocks are nearly the same go on beside each other, and none comes too late.
test_ranks_that_work_at_once_are_in_time() {
    local program
    for program in "dmapp_gups -l 10 -n 300" "gni_smsg_ring" "dmapp_halo"; do
        # shellcheck disable=SC2086 # words of a command
        virtually -n 16 --ppn 2 --json "$dir/json" -- "$examples"/$program
        expect_status 0
        fact 'time["late_operations"] == time["late_ps"] == 0 and time["now_ps"] > 0'
    done
}

test_trace_has_a_line_for_each_operation() {
    virtually -n 2 --trace "$dir/trace" -- "$examples/gni_pingpong" -i 2 -m 8
    expect_status 0
    [ "$(grep -c '^[0-9]*,[01],0,[01],0,put,8,' "$dir/trace")" -ge 4 ] || bad "no four puts: $(<"$dir/trace")"
    awk -F, 'NR > 1 && ($14 <= $12 || $15 <= $12) { exit 1 }' "$dir/trace" || bad "a time before the post: $(<"$dir/trace")"
}

# flits_of CLASS: of all links of that class in the table of --links
flits_of() { awk -v c="$1" '$3 == c { sum += $7 } END { print sum + 0 }' "$dir/out"; }

# Two ways to count the same packets: where they cross, and by the flows that the job has counted.
test_links_are_those_that_packets_have_crossed() {
    local crossed
    virtually -n 2 --place scatter --links -- "$examples/gni_pingpong" -i 10 -m 4096
    expect_status 0
    expect_out "BUSY_NS *STALL_NS"
    crossed=$(flits_of blue)
    [ "$crossed" -gt 0 ] || bad "nothing has crossed"
    call run -n 2 --place scatter --links -- "$examples/gni_pingpong" -i 10 -m 4096
    expect_status 0
    [ "$(flits_of blue)" = "$crossed" ] || bad "$crossed flits crossed, $(flits_of blue) were counted"
}

# ping_pong_with_errors RATE: us of a put of 4096 bytes, in $took; packets sent again, in $repeated.
ping_pong_with_errors() {
    virtually -n 2 --place scatter --bit-errors "$1" --links -- "$examples/gni_pingpong" -i 200 -m 4096
    expect_status 0
    took=$(awk '$1 == 4096 && NF == 3 { print $2; exit }' "$dir/out")
    repeated=$(awk '/BUSY_NS/ { column = NF; next } column && NF == column { sum += $NF } END { print sum + 0 }' "$dir/out")
}

# The program verifies its data. What is repeated is the model's choice, the same each time.
test_bit_errors_cost_time_and_nothing_else() {
    local whole first
    ping_pong_with_errors 0
    [ "$repeated" = 0 ] || bad "$repeated packets were repeated without errors"
    whole=$took
    ping_pong_with_errors 1e-5
    [ "$repeated" -gt 100 ] || bad "$repeated packets were repeated"
    awk "BEGIN { exit !($took > $whole * 1.005) }" || bad "$took us with errors, $whole without"
    first="$took $repeated"
    ping_pong_with_errors 1e-5
    [ "$took $repeated" = "$first" ] || bad "$first, then $took $repeated"
}

# crossings_of_paths, crossings_of_links: of each link, by its name: packets and flits
crossings_of_paths() {
    python3 -c 'import collections, json, sys
sums = collections.Counter()
for way in json.load(open(sys.argv[1]))["paths"]:
    for link in way["path"]:
        sums[link, "packets"] += way["packets"]
        sums[link, "flits"] += way["flits"]
print(*sorted((*key, n) for key, n in sums.items()), sep="\n")' "$dir/json"
}
crossings_of_links() {
    python3 -c 'import json, sys
print(*sorted((link["name"], key, link[key]) for link in json.load(open(sys.argv[1]))["links"] for key in ("packets", "flits")),
      sep="\n")' "$dir/json"
}

# Adaptive routes on Aries: several paths between the two nodes, which add up to what the links have counted.
test_paths_are_those_that_packets_have_taken() {
    virtually -n 2 --place scatter --paths --json "$dir/json" -- "$examples/gni_pingpong" -i 10 -m 4096
    expect_status 0
    expect_out "FROM *TO *CLASS *HOPS *PACKETS *FLITS *PATH"
    expect_out " request .* -processor-in-> .* -processor-out-> "
    [ "$(grep -c ' request ' "$dir/out")" -gt 2 ] || bad "packets went one way: $(<"$dir/out")"
    crossings_of_paths >"$dir/a"
    crossings_of_links >"$dir/b"
    cmp -s "$dir/a" "$dir/b" || bad "paths say something else: $(diff "$dir/a" "$dir/b" | head -5)"
    virtually -n 2 --json "$dir/json" -- "$examples/gni_pingpong" -i 1 -m 8
    expect_status 0
    python3 -c 'import json, sys; run = json.load(open(sys.argv[1])); sys.exit("paths" in run or "path" in run["flows"][0])' \
        "$dir/json" || bad "paths that nobody asked for: $(<"$dir/json")"
}

# by_window FILE: packets of each link in each 5 us
by_window() {
    awk -F, 'NR > 1 { n[int($1 / 5000000) " " $2] += $4 } END { for (k in n) print k, n[k] }' "$1" | sort
}

test_windows_of_links_add_up() {
    local windows
    virtually -n 2 --place scatter --links --link-trace "$dir/links" --every 5us -- "$examples/gni_pingpong" -i 5 -m 4096
    expect_status 0
    windows=$(awk -F, 'NR > 1 && $3 ~ / blue / { sum += $5 } END { print sum }' "$dir/links")
    [ "$windows" = "$(flits_of blue)" ] || bad "$windows in windows, $(flits_of blue) in all"
    virtually -n 2 --place scatter --link-trace "$dir/short" --every 100ns -- "$examples/gni_pingpong" -i 5 -m 4096
    expect_status 0
    by_window "$dir/short" >"$dir/a"
    by_window "$dir/links" >"$dir/b"
    cmp -s "$dir/a" "$dir/b" || bad "short windows say something else: $(diff "$dir/a" "$dir/b" | head -5)"
    awk -F, 'NR > 1 { if ($1 % 5000000 || $1 < at) exit 1; at = $1; n[$1] = 1 }
             END { if (length(n) < 5) exit 1 }' "$dir/links" || bad "no windows of 5 us: $(head "$dir/links")"
}

is_stopped() {
    grep -q '^State:.T' "/proc/$1/status" 2>/dev/null
}

# is_program PID NAME: has the process become it?
is_program() {
    [ "$(cat "/proc/$1/comm" 2>/dev/null)" = "$2" ]
}

# Time of the host passes, not the job's.
test_stopped_rank_holds_time_up_and_changes_nothing() {
    local words whole pid
    virtually -n 4 --ppn 2 -- "$examples/gni_allreduce" -n 200
    expect_status 0
    whole=$out
    mapfile -d '' -t words < <(command_line run --time virtual -n 4 --ppn 2 -- \
        bash -c "echo \$\$ >\"$dir/rank.\$EMUNIC_RANK\"; exec $examples/gni_allreduce -n 200")
    timeout -k 5 100 "${words[@]}" >"$dir/out" 2>"$dir/err" </dev/null &
    run_pid=$!
    wait_until test -s "$dir/rank.1" || bad "rank 1 does not begin"
    pid=$(<"$dir/rank.1")
    wait_until is_program "$pid" gni_allreduce || bad "rank 1 does not become the program"
    kill -STOP "$pid"
    wait_until is_stopped "$pid" || bad "rank 1 does not stop"
    kill -CONT "$pid"
    wait "$run_pid"
    status=$?
    expect_status 0
    out=$(<"$dir/out")
    [ "$out" = "$whole" ] || bad "stopped: $out, else: $whole"
    expect_nothing_left
}

test_timeout_ends_a_job_that_waits_for_ever() {
    mkfifo "$dir/never"
    virtually -n 2 --timeout 1 -- \
        bash -c "[ \"\$EMUNIC_RANK\" = 1 ] && read -r <>\"$dir/never\"; exec $examples/gni_pingpong -i 20"
    expect_status 124
    expect_error_line "the job has run for the 1 s that --timeout gives it: ending it"
    expect_nothing_left
}

test_many_ranks_on_few_processors() {
    virtually -n 32 --ppn 4 -- "$examples/gni_allreduce" -n 2
    expect_status 0
    expect_out "32 ranks, .* 10 reductions, all right"
}

# Operations with their times, and what each link carried: with two threads that never meet, and with two that share each
# window.
test_threads_of_the_simulator_change_nothing() {
    local threads shared

    for threads in 1 2; do
        for shared in 0 1000000000; do
            [ "$threads$shared" = 10 ] && continue
            export EMUNIC_SIM_SHARED=$shared
            virtually -q -n 4 --machine gemini:x=4,y=2,z=2 --place scatter \
                --threads "$threads" --trace "$dir/trace-$threads-$shared" --json "$dir/report" -- \
                "$examples/dmapp_gups" -l 8 -n 20
            expect_status 0
            mv "$dir/out" "$dir/out-$threads-$shared"
            python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["links"])' "$dir/report" \
                > "$dir/links-$threads-$shared"
        done
    done
    unset EMUNIC_SIM_SHARED
    for shared in 0 1000000000; do
        cmp "$dir/trace-1-1000000000" "$dir/trace-2-$shared" || bad "operations differ"
        cmp "$dir/links-1-1000000000" "$dir/links-2-$shared" || bad "links differ"
        cmp <(sort "$dir/out-1-1000000000") <(sort "$dir/out-2-$shared") || bad "the output differs"
    done
}

test_bad_options_are_refused() {
    virtually -n 2 --machine nowhere -- true
    expect_status 2
    expect_error_line "--machine: no machine 'nowhere'; there are "
    virtually -n 2 --machine k-ary-n-tree -- true
    expect_status 2
    expect_error_line "no host parameters"
    virtually -n 2 --hosts "$(hostname),other" -- true
    expect_status 2
    expect_error_line "one host"
    virtually -n 2 --server nobody -- true
    expect_status 1
    virtually -n 2 --max-lag -1 -- true
    expect_status 2
    expect_error_line "no percentage"
    virtually -n 2 --bit-errors 0.1 -- true
    expect_status 2
    expect_error_line "no rate from 0 to 1e-4"
    virtually -n 2 --threads 0 -- true
    expect_status 2
    expect_error_line "--threads: '0' is not a number from 1 to 255"
    virtually -n 2 --machine gemini:x=2,y=2,z=2 --threads 9 -- true
    expect_status 2
    expect_error_line "--threads: 9 are more than the 8 routers"
    virtually -n 2 --threads 2 --paths -- true
    expect_status 2
    expect_error_line "--paths needs --threads 1"
    call run -n 2 --threads 2 -- true
    expect_status 2
    expect_error_line "--threads is for --time virtual"
    call serve --time virtual --machine k-ary-n-tree
    expect_status 2
    expect_error_line "no host parameters"
    call serve --time virtual --machine gemini:x=2,y=2,z=2 --threads 9
    expect_status 2
    expect_error_line "--threads: 9 are more than the 8 routers"
    virtually -n 2 --compute measured:-1 -- true
    expect_status 2
    virtually -n 2 --compute fixed:0 -- true
    expect_status 2
    call run -n 2 --compute none -- true
    expect_status 2
    expect_error_line "for --time virtual"
    call run -n 2 --trace "$dir/trace" -- true
    expect_status 2
    expect_error_line "--trace is for --time virtual"
    virtually -n 2 --every 5us -- true
    expect_status 2
    expect_error_line "--every is for --link-trace"
    virtually -n 2 --link-trace "$dir/links" --every 5 -- true
    expect_status 2
    expect_error_line "'5' is no length"
    virtually -n 2 --link-trace "$dir/nowhere/links" -- true
    expect_status 1
    expect_error_line "--link-trace: $dir/nowhere/links: No such file or directory"
    virtually -n 2 --trace "$dir/nowhere/trace" -- true
    expect_status 1
    expect_error_line "--trace: $dir/nowhere/trace: No such file or directory"
    call run -n 2 --time tomorrow -- true
    expect_status 2
}

# ping_pong_with MS PART: 64 bytes to node 4 of a small Gemini machine, whose PART fails then; us in all, in $took.
ping_pong_with() {
    printf 'schema: 1\nnetwork:\n  - at_ms: %s\n    fail: %s\n' "$1" "$2" >"$dir/faults.yaml"
    virtually -q -n 2 --place nids:0,4 --machine gemini:z=4 --faults "$dir/faults.yaml" -- \
        "$examples/gni_pingpong" -i 400 -m 64
    expect_status 0
    [ -z "$err" ] || bad "said: $err"
    took=$(awk '$1 ~ /^[0-9]+$/ { sum += $2 * 800 + $3 * 400 } END { print sum }' "$dir/out")
}

# 400 round trips and gets of each of four sizes take 5 ms. The network rests for EMUNIC_QUIESCE, 10 ms by default, and the way
# round the broken router is longer.
test_a_network_that_breaks_stalls_programs_as_long_as_it_rests() {
    local whole broken
    ping_pong_with 1000 'router c0-0c0s1g0'
    whole=$took
    ping_pong_with 1 'router c0-0c0s1g0'
    broken=$took
    is_within "$(awk -v a="$broken" -v b="$whole" 'BEGIN { print a - b }')" 10000 10600
    cp "$dir/out" "$dir/first"
    ping_pong_with 1 'router c0-0c0s1g0'
    cmp -s "$dir/out" "$dir/first" || bad "two runs differ: $(diff "$dir/out" "$dir/first")"
    export EMUNIC_QUIESCE=2000000
    ping_pong_with 1 'router c0-0c0s1g0'
    unset EMUNIC_QUIESCE
    is_within "$(awk -v a="$broken" -v b="$took" 'BEGIN { print a - b }')" 7990 8010
}

test_a_network_that_is_broken_from_the_start_stalls_nobody() {
    local whole
    ping_pong_with 1000 'router c0-0c0s1g0'
    whole=$took
    ping_pong_with 0 'router c0-0c0s1g0'
    is_within "$(awk -v a="$took" -v b="$whole" 'BEGIN { print a - b }')" 1 600
}

run_tests latency_of_a_put_is_the_published_one latency_is_that_of_the_machine portals_latency_is_the_published_one \
    portals_messages_are_whole_and_in_order rate_of_words_is_that_of_launches \
    faults_of_transactions_take_their_time delayed_datagrams_pair_in_virtual_time \
    limit_of_injection_paces_in_virtual_time \
    reductions_cost_their_way datagrams_cross_the_network same_job_prints_the_same processes_of_a_node_may_come_in_any_order programs_end_well \
    measured_computing_moves_the_clock calls_last_as_long_as_the_program_asks \
    time_goes_no_faster_than_the_hosts_while_a_thread_begins \
    probe_by_a_timer_does_not_make_it_due_again send_without_credit_waits_for_nothing \
    killed_rank_ends_the_job lag_is_in_the_json \
    trace_has_a_line_for_each_operation links_are_those_that_packets_have_crossed \
    bit_errors_cost_time_and_nothing_else \
    paths_are_those_that_packets_have_taken windows_of_links_add_up \
    ranks_that_work_at_once_are_in_time fences_end_at_the_same_time program_of_a_shell_is_the_rank \
    a_network_that_breaks_stalls_programs_as_long_as_it_rests \
    a_network_that_is_broken_from_the_start_stalls_nobody \
    stopped_rank_holds_time_up_and_changes_nothing timeout_ends_a_job_that_waits_for_ever \
    many_ranks_on_few_processors threads_of_the_simulator_change_nothing bad_options_are_refused
