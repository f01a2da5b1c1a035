#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The time-stamp counter in virtual time: test_counter.sh EMUNIC FOLDER-OF-PROGRAMS. A program's reads are trapped if it
# has code that reads, from the begin on or later.
programs=$(cd "$2" && pwd)
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# States of the program before and behind the new code, and behind the next request; then what the counter counted.
expect_states() {
    expect_status 0
    [ "$(awk '{ print $1, $2, $3 }' "$dir/out")" = "$1" ] || bad "'$(<"$dir/out")', not '$1'"
}

# A second, and two questions for the time at most.
test_library_that_reads_is_trapped() {
    call run --time virtual -n 1 -- "$programs/counter_load" counter_plugin.so
    expect_states "free trapped trapped"
    awk '{ exit !($4 >= 1000000000 && $4 <= 1000000040) }' "$dir/out" || bad "a second of $(<"$dir/out")"
}

test_library_that_does_not_read_is_trapped_until_it_is_known() {
    call run --time virtual -n 1 -- "$programs/counter_load" libm.so.6
    expect_states "free trapped free"
}

test_code_that_the_program_makes_is_trapped() {
    call run --time virtual -n 1 -- "$programs/counter_load"
    expect_states "free trapped trapped"
}

if ! "$emunic" doctor | grep -q "counter *good"; then
    echo "1..0 # SKIP the counter cannot be trapped here"
    exit
fi
run_tests library_that_reads_is_trapped library_that_does_not_read_is_trapped_until_it_is_known \
    code_that_the_program_makes_is_trapped
