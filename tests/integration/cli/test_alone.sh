#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs that no emunic holds: started without `emunic run`, or with a server that does not run.
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

run_tests a_program_whose_server_does_not_run_says_so a_program_without_a_job_says_so
