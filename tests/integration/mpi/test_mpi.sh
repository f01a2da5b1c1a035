#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs of the installed Open MPI over the emulated machine.
#   test_mpi.sh EMUNIC SUITE WINDOWS ENDLESS KIND PERF DIRECT SMALL
# the command, mpi_suite, mpi_windows, mpi_endless, over which component (gni or portals), mpi_perf of tests/live,
# mpi_direct, mpi_small
# shellcheck source=../cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"

suite=$2
windows=$3
endless=$4
kind=$5
perf=$6
direct=$7
small=$8
# What each program does that is given no names.
declare -A n_cases=(["$suite"]=21 ["$windows"]=5 ["$direct"]=9 ["$small"]=5)

expect_all_cases() {
    expect_status 0
    [ "$(grep -c '^ok ' <<<"$out")" -eq "${n_cases[$1]}" ] || bad "not ${n_cases[$1]} cases of $1: $out"
}

# All cases; afterwards the machine has carried them, and nothing is left.
suite_is_right() {
    local links=$dir/links program
    for program in "$suite" "$windows" "$small"; do
        call run --mpi="$kind" --json "$links" "$@" -- "$program"
        expect_all_cases "$program"
        [ -z "$err" ] || bad "something on stderr: $err"
        python3 -c 'import json, sys; sys.exit(not sum(flow.get("packets", 1) for flow in json.load(open(sys.argv[1]))["flows"]))' \
            "$links" || bad "no packet was counted"
    done
    for program in "$suite" "$small"; do
        call run --mpi="$kind" "$@" -- "$program" threads
        expect_status 0
        expect_out '^ok threads$'
    done
    expect_nothing_left
}

test_two_ranks_exchange_everything() {
    suite_is_right -n 2
}

test_four_ranks_exchange_everything_through_the_daemon() {
    suite_is_right -n 4 --ppn 2 --datapath routed --machine seastar
}

test_sixteen_ranks_exchange_everything() {
    suite_is_right -n 16 --ppn 4 --machine gemini
}

# Each packet in virtual time, in the order of the model: short messages overtake the end of long ones.
test_everything_works_in_virtual_time() {
    local machine program limit=300
    for program in "$suite" "$windows"; do
        for machine in aries gemini seastar; do
            call run --mpi="$kind" -n 4 --ppn 1 --machine "$machine" --time virtual -- "$program"
            expect_all_cases "$program"
        done
        call run --mpi="$kind" -n 4 --ppn 2 --machine aries --time virtual -- "$program"
        expect_status 0
    done
}

# Half a round trip of 8 bytes, ns.
latency_ns() {
    call run --mpi -n 2 --ppn 1 --machine "$1" --time virtual -- "$perf" -i 4 -m 8
    expect_status 0
    awk '$1 == 8 { printf "%d\n", $2 * 1000 + 0.5 }' <<<"$out"
}

test_a_message_costs_what_the_library_takes_at_each_end() {
    local free both sent received
    [ "$kind" = portals ] || return 0
    free=$(latency_ns xt3:host.send_ns=0,host.recv_ns=0)
    both=$(latency_ns xt3:host.send_ns=3000,host.recv_ns=5000)
    sent=$(latency_ns xt3:host.send_ns=3000,host.recv_ns=0)
    received=$(latency_ns xt3:host.send_ns=0,host.recv_ns=5000)
    # Polls go on in steps of 10 ns.
    [ $((both - free)) -ge 7980 ] && [ $((both - free)) -le 8020 ] || bad "both ends: $both, free: $free"
    [ $((sent - free)) -ge 2980 ] && [ $((sent - free)) -le 3020 ] || bad "sender: $sent, free: $free"
    [ $((received - free)) -ge 4980 ] && [ $((received - free)) -le 5020 ] || bad "receiver: $received, free: $free"
}

# MPI_Init and MPI_Finalize wait for the host; what lies between is the model's.
test_virtual_time_is_the_same_each_time() {
    local i
    for i in 1 2 3 4; do
        call run --mpi="$kind" -n 6 --ppn 2 --machine aries --time virtual --json "$dir/json" -- "$suite" order flood collectives
        expect_status 0
        python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["time"]["now_ps"])' "$dir/json" >"$dir/now.$i"
        cmp -s "$dir/now.1" "$dir/now.$i" || bad "run $i ends at $(<"$dir/now.$i") ps, the first at $(<"$dir/now.1")"
    done
}

test_small_limits_lose_nothing() {
    call run --mpi="$kind" -n 2 -x OMPI_MCA_mtl_portals3_window=4 -x OMPI_MCA_mtl_portals3_eager_limit=100 \
        -x OMPI_MCA_mtl_portals3_overflow_bytes=65536 -x OMPI_MCA_mtl_portals3_landing_limit=0 \
        -x OMPI_MCA_btl_gni_message_bytes=256 -x OMPI_MCA_btl_gni_credits=1 -- "$suite" modes order mixed flood storm datatypes
    expect_status 0
    expect_out '^ok storm$'
}

test_a_fortran_program_runs() {
    command -v mpifort >/dev/null || return 0
    mpifort -o "$dir/ring" "$(dirname "$0")/ring.f90" || bad "mpifort failed"
    call run --mpi="$kind" -n 4 -- "$dir/ring"
    expect_status 0
    expect_out '^sum 6$'
}

test_a_killed_rank_ends_the_job_with_one_line() {
    local seed=${EMU_TEST_SEED:-$RANDOM} i
    echo "# EMU_TEST_SEED=$seed"
    for i in 0 1 2; do
        EMU_TEST_SEED=$((seed + i * 701)) call run --mpi="$kind" -n 3 -- "$endless" death
        expect_status 137
        [ "$(wc -l <<<"$err")" -eq 1 ] || bad "more than one line: $err"
        expect_err '^emunic run: rank 2 on node .* was ended by signal 9'
        expect_nothing_left
    done
    for i in 0 1 2; do
        EMU_TEST_SEED=$((seed + i * 701)) call run --mpi="$kind" -n 5 -- "$endless" sums
        expect_status 137
        [ "$(wc -l <<<"$err")" -eq 1 ] || bad "more than one line: $err"
        expect_err '^emunic run: rank 4 on node .* was ended by signal 9'
        expect_nothing_left
    done
    EMU_TEST_SEED=$seed call run --mpi="$kind" -n 3 --ppn 1 -- "$endless" puts
    expect_status 137
    [ "$(wc -l <<<"$err")" -eq 1 ] || bad "more than one line: $err"
    expect_nothing_left
}

test_without_the_option_a_program_of_mpi_is_told_which_is_missing() {
    call run -n 2 -- "$suite" self
    expect_status 0
    expect_err 'mpi_suite is a program of MPI: without --mpi'
    call run -n 2 --quiet -- "$suite" self
    [ -z "$err" ] || bad "something on stderr: $err"
    printf 'from mpi4py import MPI\n' >"$dir/prog.py"
    call run -- python3 "$dir/prog.py"
    expect_err 'python3 is a program of MPI: without --mpi'
    call run -- true
    [ -z "$err" ] || bad "something on stderr: $err"
}

# Aries and Gemini had uGNI; the others had Portals, or something that nobody has here.
test_auto_takes_what_the_machine_had() {
    local machine
    for machine in aries gemini seastar xt3 x1 xd1 bluegene-l; do
        # shellcheck disable=SC2016
        call run --mpi --machine "$machine" -- sh -c 'echo "over $OMPI_MCA_hook_emunic_layer"'
        case $machine in
            aries | gemini) expect_out '^over gni$' ;;
            *) expect_out '^over portals3$' ;;
        esac
    done
}

# With engines each small call is one reduction of the NICs: so they take less of the model's time.
test_collective_engines_do_small_calls() {
    [ "$kind" = gni ] || return 0
    local is_on
    call run --mpi=gni -n 16 --ppn 4 -x OMPI_MCA_coll_ce_enable=1 -x OMPI_MCA_coll_ce_after_calls=0 \
        -- "$suite" small communicators collectives
    expect_status 0
    [ -z "$err" ] || bad "something on stderr: $err"
    call run --mpi=gni -n 16 --ppn 4 -x OMPI_MCA_coll_ce_enable=1 -x OMPI_MCA_coll_ce_after_calls=0 -- "$windows" onesided
    expect_status 0
    [ -z "$err" ] || bad "something on stderr: $err"
    call run --mpi=gni -n 40 --ppn 8 --datapath routed -x OMPI_MCA_coll_ce_enable=1 -- "$suite" small
    expect_status 0
    for is_on in 0 1; do
        OMPI_MCA_coll_ce_enable=$is_on call run --mpi=gni -n 8 --time virtual --json "$dir/json" -- "$suite" small
        expect_status 0
        python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["time"]["now_ps"])' "$dir/json" >"$dir/now.$is_on"
    done
    [ "$(<"$dir/now.1")" -lt "$(<"$dir/now.0")" ] || bad "$(<"$dir/now.1") ps with engines, $(<"$dir/now.0") without"
}

# Into n_operations: those on the machine while 4 ranks add a thousand numbers, with coll/flat ($1: 1) or without.
count_operations() {
    call run --mpi="$kind" -n 4 --ppn 2 -x OMPI_MCA_coll_flat_enable="$1" --json "$dir/json" -- "$small" calls
    expect_status 0
    n_operations=$(python3 -c 'import json, sys; print(sum(flow["operations"] for flow in json.load(open(sys.argv[1]))["flows"]))' "$dir/json")
}

# By doubling each rank sends two messages for a sum, flat three, and the machine counts what goes each way.
test_small_calls_are_flat_unless_turned_off() {
    local n_operations flat doubled
    count_operations 1
    flat=$n_operations
    count_operations 0
    doubled=$n_operations
    [ "$flat" -ge $((4 * 3 * 997)) ] || bad "$flat operations"
    [ "$doubled" -lt "$flat" ] || bad "$doubled operations without coll/flat, $flat with it"
}

# Faults that never come switch a job to the routed path and back, between two small calls.
test_small_calls_go_on_when_the_direct_path_is_closed() {
    EMU_TEST_EMUNIC=$emunic call run --mpi="$kind" -n 3 -- "$small" switched
    expect_status 0
    expect_out '^ok switched$'
    [ -z "$err" ] || bad "something on stderr: $err"
}

# A communicator of too many ranks, or of more than coll_flat_ranks, has messages as before.
test_larger_communicators_do_without() {
    call run --mpi="$kind" -n 34 --ppn 8 -- "$small" in_order calls
    expect_status 0
    call run --mpi="$kind" -n 3 -x OMPI_MCA_coll_flat_ranks=2 -- "$small" in_order mixed
    expect_status 0
}

# Windows of threads, and windows in the memory of a node: osc/pt2pt has neither.
test_windows_of_osc_rdma() {
    [ "$kind" = gni ] || return 0
    call run --mpi=gni -n 4 --ppn 2 -- "$windows" window_threads
    expect_status 0
    call run --mpi=gni -n 3 --datapath routed --machine gemini -- "$windows" window_threads atomics
    expect_status 0
    call run --mpi=gni -n 4 -- "$windows" atomics
    expect_status 0
    call run --mpi=gni -n 3 --machine gemini --time virtual -- "$windows" atomics
    expect_status 0
    call run --mpi=gni -n 4 --ppn 2 -- "$suite" intercommunicators
    expect_status 0
    call run --mpi=gni -n 4 --ppn 2 -- "$windows" shared
    expect_status 0
    expect_out '^ok shared$'
}

# Over gni those of the first case are made by osc/rdma.
test_windows_that_threads_may_not_have_are_told() {
    call run --mpi="$kind" -n 2 --ppn 2 -- "$windows" window_threads
    expect_status 0
    call run --mpi="$kind" -n 2 --ppn 1 -- "$windows" window_threads dynamic
    [ "$status" -ne 0 ] || bad "a window that osc/pt2pt refuses was made"
    expect_err 'emunic: osc/pt2pt of Open MPI refuses windows with MPI_THREAD_MULTIPLE'
    expect_nothing_left
}

# What osc/emunic does itself of puts and gets, with and without what it does them by.
test_short_puts_and_gets_of_locked_windows() {
    local options
    for options in '-n 2' '-n 3 --datapath routed --machine gemini' '-n 4 --ppn 2 --machine gemini' '-n 2 --ppn 2'; do
        # shellcheck disable=SC2086
        call run --mpi="$kind" $options -- "$direct"
        expect_all_cases "$direct"
    done
    EMUNIC_MEMORY=cma call run --mpi="$kind" -n 2 -- "$direct"
    expect_all_cases "$direct"
    call run --mpi="$kind" -n 3 --time virtual -- "$direct" pieces mixed
    expect_status 0
    call run --mpi="$kind" -n 2 -- "$direct" alone
    expect_status 0
}

# One-sided calls of 100000 puts: bytes of the flow, nanoseconds of the processor for one.
puts_of() {
    call run --mpi=gni -n 2 --ppn 1 --machine aries --json "$dir/json" "$@" -- "$direct" time
    expect_status 0
    awk '$1 == "time" { print $2 }' <<<"$out"
    python3 -c 'import json, sys; print(sum(flow["payload_bytes"] for flow in json.load(open(sys.argv[1]))["flows"]))' "$dir/json"
}

test_what_lies_outside_of_a_window_is_refused() {
    [ "$kind" = gni ] || return 0
    call run --mpi=gni -n 2 -- "$direct" outside
    expect_status 0
}

# They take less than half of the processor's time, and the machine has carried each of them.
test_direct_puts_are_short_and_counted() {
    [ "$kind" = gni ] || return 0
    local -a with without
    mapfile -t with < <(puts_of)
    mapfile -t without < <(puts_of -x OMPI_MCA_osc_emunic_direct=0)
    [ $((2 * with[0])) -lt "${without[0]}" ] || bad "${with[0]} ns, without ${without[0]} ns"
    [ "${with[1]}" -ge 800000 ] || bad "${with[1]} bytes"
    [ "${with[1]}" -le $((without[1] + 4000)) ] || bad "${with[1]} bytes, without ${without[1]}"
}

# By messages each of 100000 puts would be four operations at least, with its flush.
test_direct_puts_over_portals_are_no_messages() {
    [ "$kind" = portals ] || return 0
    local -a seen
    call run --mpi=portals -n 2 --ppn 1 --machine seastar --json "$dir/json" -- "$direct" time
    expect_status 0
    mapfile -t seen < <(python3 -c 'import json, sys
flows = json.load(open(sys.argv[1]))["flows"]
print(sum(flow["operations"] for flow in flows), sum(flow["payload_bytes"] for flow in flows), sep="\n")' "$dir/json")
    [ "${seen[0]}" -ge 99990 ] && [ "${seen[0]}" -le 120000 ] || bad "${seen[0]} operations"
    [ "${seen[1]}" -ge 799900 ] || bad "${seen[1]} bytes"
}

# osc/pt2pt would ask all others in each of 2000 flushes.
test_flushes_of_nothing_send_nothing() {
    [ "$kind" = portals ] || return 0
    call run --mpi=portals -n 4 --machine seastar --json "$dir/json" -- "$windows" flushes
    expect_status 0
    local n
    n=$(python3 -c 'import json, sys; print(sum(flow["operations"] for flow in json.load(open(sys.argv[1]))["flows"]))' "$dir/json")
    [ "$n" -lt 8000 ] || bad "$n operations"
}

# osc/rdma of Open MPI 4.1.4 would wait for itself: osc/emunic hands them to osc/pt2pt.
test_dynamic_windows_become_messages() {
    local limit=60
    call run --mpi="$kind" -n 3 -- "$windows" dynamic
    expect_status 0
}

test_another_message_layer_ends_the_job() {
    printf '#!/bin/sh\nOMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader exec "$@"\n' >"$dir/other"
    chmod +x "$dir/other"
    call run --mpi="$kind" -n 2 -- "$dir/other" "$suite" self
    expect_status 1
    expect_err 'emunic: Open MPI has selected pml ob1 with .*vader.* instead of '
    expect_nothing_left
}

test_there_may_be_more_receives_than_entries() {
    call run --mpi="$kind" -n 2 --ppn 1 -- "$suite" receives
    expect_status 0
    expect_out '^ok receives$'
    expect_nothing_left
}

test_spawned_processes_are_refused_with_a_message() {
    call run --mpi="$kind" -n 2 -- "$suite" spawn
    expect_status 1
    expect_err '^emunic: processes that MPI_Comm_spawn\(\) starts have no node'
    expect_nothing_left
}

run_tests two_ranks_exchange_everything four_ranks_exchange_everything_through_the_daemon \
    sixteen_ranks_exchange_everything everything_works_in_virtual_time virtual_time_is_the_same_each_time \
    a_message_costs_what_the_library_takes_at_each_end small_limits_lose_nothing collective_engines_do_small_calls \
    windows_of_osc_rdma windows_that_threads_may_not_have_are_told \
    short_puts_and_gets_of_locked_windows direct_puts_are_short_and_counted direct_puts_over_portals_are_no_messages \
    what_lies_outside_of_a_window_is_refused small_calls_are_flat_unless_turned_off \
    small_calls_go_on_when_the_direct_path_is_closed larger_communicators_do_without \
    dynamic_windows_become_messages flushes_of_nothing_send_nothing a_fortran_program_runs \
    a_killed_rank_ends_the_job_with_one_line without_the_option_a_program_of_mpi_is_told_which_is_missing \
    auto_takes_what_the_machine_had another_message_layer_ends_the_job there_may_be_more_receives_than_entries \
    spawned_processes_are_refused_with_a_message
