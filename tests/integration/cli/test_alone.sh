#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs that nobody has started for an emunic: without a job or a server; and by hand, on a server that runs.
# `FILE EMUNIC EXAMPLES`
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
examples=$2

# alone VARIABLE=VALUE... PROGRAM: of a job that mpirun makes.
alone() {
    env -u XDG_RUNTIME_DIR OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        timeout -k 5 60 mpirun -q --oversubscribe -np 1 env "$@" >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
    out=$(<"$dir/out")
    err=$(<"$dir/err")
    [ "$status" -ne 0 ] || bad "status 0"
}

# Once, however often the program tries.
says() {
    [ "$(grep -c "$1" <<<"$err")" -eq 1 ] || bad "not once '$1' on stderr: $err"
}

test_a_program_whose_server_does_not_run_says_so() {
    local program job='PMI_GNI_PTAG=77 PMI_GNI_COOKIE=5 PMI_GNI_DEV_ID=0 PMI_GNI_LOC_ADDR=0'
    job+=' EMUNIC_PTAG=77 EMUNIC_COOKIE=5'
    for program in gni_amo_counter dmapp_gups portals_tags; do
        # shellcheck disable=SC2086
        alone $job EMUNIC_SERVER="nobody-$$" "$examples/$program"
        says "error: no emunic of name nobody-$$ answers: start the program with \`emunic run\`, or that emunic with"
        # shellcheck disable=SC2086
        alone $job EMUNIC_SERVER="nobody-$$" EMUNIC_LOG=none "$examples/$program"
        grep -q 'emunic run' <<<"$err" && bad "$program is not silent: $err"
    done
}

test_a_program_without_a_job_says_so() {
    alone "$examples/dmapp_gups"
    says 'error: PMI_GNI_COOKIE is not set, so no job of an emunic is known: start the program with `emunic run`'
    alone "$examples/portals_tags"
    says 'error: EMUNIC_COOKIE is not set, so no job of an emunic is known: start the program with `emunic run`'
}

# by_hand PTAG COOKIE N PROGRAM...: N ranks on the server s-$id, as emunic-serve(8) has it.
by_hand() {
    local ptag=$1 cookie=$2 n=$3 rank
    shift 3
    rank=$(dirname "$(dirname "$emunic")")/mpi-shim/rank/emunic-rank
    env -u XDG_RUNTIME_DIR OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 EMUNIC_SERVER="s-$id" \
        EMUNIC_PTAG="$ptag" EMUNIC_COOKIE="$cookie" timeout -k 5 60 mpirun -q --oversubscribe -np "$n" "$rank" "$@" \
        </dev/null
}

# Rank r of both is on the same node, with the same instance id.
test_programs_with_a_cookie_each_do_not_meet() {
    start_server "s-$id" --domain 100:77 --domain 101:78
    by_hand 100 77 2 "$examples/gni_amo_counter" -n 200 >"$dir/out.one" 2>"$dir/err.one" &
    local one=$!
    by_hand 101 78 2 "$examples/gni_amo_counter" -n 300 >"$dir/out.other" 2>"$dir/err.other"
    status=$?
    expect_status 0
    wait "$one" || bad "status of the first: $?"
    kill "$serve_pid"
    wait "$serve_pid"
}

test_what_several_programs_of_one_domain_have_is_counted_together() {
    start_server "s-$id" --domain "100:77:$(id -u):2"
    by_hand 100 77 2 "$examples/gni_amo_counter" -n 20 >"$dir/out" 2>"$dir/err"
    status=$?
    expect_status 0
    by_hand 100 77 3 "$examples/gni_amo_counter" -n 20 >"$dir/out" 2>"$dir/err" && bad 'three processes of two'
    grep -q GNI_RC_PERMISSION_ERROR "$dir/err" || bad "stderr: $(<"$dir/err")"
    kill "$serve_pid"
    wait "$serve_pid"
}

test_a_tag_that_is_not_the_cookies_is_refused() {
    start_server "s-$id" --domain 100:77
    by_hand 101 77 1 true >"$dir/out" 2>"$dir/err" && bad 'it is let in'
    grep -q 'cannot join its job' "$dir/err" || bad "stderr: $(<"$dir/err")"
    kill "$serve_pid"
    wait "$serve_pid"
}

run_tests a_program_whose_server_does_not_run_says_so a_program_without_a_job_says_so \
    programs_with_a_cookie_each_do_not_meet what_several_programs_of_one_domain_have_is_counted_together \
    a_tag_that_is_not_the_cookies_is_refused
