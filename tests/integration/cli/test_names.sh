#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Names of emunics belong to whoever is first: a stranger can take any name, and gets nothing by it.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

stranger=65534

# squat NAME...: a stranger has these names when this returns.
squat() {
    local line
    mkfifo "$dir/squat" "$dir/squatted"
    "$here/squat.py" "$stranger" "$@" <"$dir/squat" >"$dir/squatted" &
    background+=("$!")
    exec 6>"$dir/squat"
    read -r -t 60 line <"$dir/squatted" || bad "nobody takes the names"
    [[ $line == ready* ]] || bad "the stranger says: $line"
}

unsquat() {
    exec 6>&-
    wait "${background[-1]}"
    unset "background[-1]"
    rm "$dir/squat" "$dir/squatted"
}

# Process numbers that come next, as names were made of once.
test_names_taken_ahead_hinder_no_job() {
    local n=4000
    squat "run-$(id -u)-{$((BASHPID + 1))..$((BASHPID + n))}"
    call run -n 1 -- true
    expect_status 0
    unsquat
}

test_status_does_not_believe_a_name() {
    start_job
    squat "run-$(id -u)-0123456789abcdef-$run_pid"
    limit=20 call status
    expect_status 0
    expect_out "^server $(server_name_of_own), pid"
    ! grep -q -- "-0123456789abcdef-" <<<"$out" || bad "the stranger's is shown: $out"
    limit=20 call status --json
    expect_status 0
    release_job
    await_run
    expect_status 0
    unsquat
    expect_nothing_left
}

# The job's, beside the stranger's.
server_name_of_own() {
    servers_of_run | grep -v -- -0123456789abcdef- | head -n 1
}

test_status_of_a_name_that_a_stranger_has_is_refused() {
    squat "user-$(id -u)"
    limit=60 call status --server "user-$(id -u)"
    expect_status 1
    unsquat
}

if [ "$(id -u)" -ne 0 ]; then
    echo "1..0 # SKIP only root can become another user"
    exit 0
fi
run_tests names_taken_ahead_hinder_no_job status_does_not_believe_a_name \
    status_of_a_name_that_a_stranger_has_is_refused
