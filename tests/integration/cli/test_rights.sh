#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What emunic has given up, as `emunic status` tells it and as /proc does. `test_rights.sh EMUNIC`
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# of PID NAME: a value of /proc/PID/status.
of() { awk -v name="$2:" '$1 == name { print $2 }' "/proc/$1/status"; }

stop_server() {
    kill -TERM "$serve_pid"
    wait "$serve_pid"
    status=$?
    expect_status 0
    expect_nothing_left
}

# What /proc tells of the server: capabilities in hexadecimal, no new privileges, seccomp.
expect_kernel() {
    [ "$(of "$serve_pid" CapEff)" = "$1" ] || bad "capabilities are $(of "$serve_pid" CapEff), not $1"
    [ "$(of "$serve_pid" NoNewPrivs)" = "$2" ] || bad "no new privileges: $(of "$serve_pid" NoNewPrivs)"
    [ "$(of "$serve_pid" Seccomp)" = "$3" ] || bad "seccomp: $(of "$serve_pid" Seccomp)"
}

test_status_tells_what_is_in_force() {
    start_server "s-$id" --domain 100:77
    call status --server "s-$id"
    expect_out '^  rights: capabilities .*; no new privileges; seccomp for one host; no Landlock: emunic touches'
    call status --server "s-$id" --json
    expect_out '"no_new_privileges": true, "seccomp": "one host", "landlock": false, "landlock_abi": [0-9]+, '`
        `'"refused_calls": 0\}'
    [ "$(of "$serve_pid" Seccomp)" = 2 ] || bad 'no filter'
    stop_server
}

test_emunic_of_root_for_users_keeps_one_capability() {
    if [ "$(id -u)" != 0 ]; then
        echo '# only root serves other users'
        return
    fi
    start_server "s-$id" --domain 100:77:65534
    expect_kernel 0000000000000020 1 2
    call status --server "s-$id"
    expect_out '^  rights: capabilities kill; no new privileges; seccomp for one host; '`
        `'(Landlock [0-9]+|no Landlock: the kernel has none)$'
    stop_server
}

test_setting_keeps_everything() {
    local before
    before=$(of $$ CapEff)
    export EMUNIC_SANDBOX=off
    start_server "s-$id" --domain 100:77
    unset EMUNIC_SANDBOX
    expect_kernel "$before" "$(of $$ NoNewPrivs)" "$(of $$ Seccomp)"
    call status --server "s-$id"
    expect_out '^  rights: .* nothing given up: EMUNIC_SANDBOX=off$'
    stop_server
}

# The rank itself has what it had: the job is not confined.
test_a_job_s_emunic_is_confined_and_its_ranks_are_not() {
    call run -n 1 -- sh -c "'$emunic' status --json; grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status"
    expect_status 0
    expect_out '"no_new_privileges": true, "seccomp": "one host"'
    expect_out "^NoNewPrivs:.$(of $$ NoNewPrivs)"
    expect_out "^Seccomp:.$(of $$ Seccomp)"
    [ -z "$err" ] || bad "it says: $err"
    expect_nothing_left
}

test_emunic_of_a_user_keeps_no_capability() {
    if [ "$(id -u)" != 0 ]; then
        echo '# only root can start it as somebody else'
        return
    fi
    if ! setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$emunic"; then
        echo "# another user cannot execute $emunic"
        return
    fi
    mkdir -m 777 "$dir/user"
    chmod 755 "$top" "$dir"
    out=$(timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$dir/user" CLI_TEST_ID="$id" \
        XDG_RUNTIME_DIR="$dir/user" "$emunic" run -n 2 -- "$emunic" status --json 2>"$dir/err")
    status=$?
    err=$(<"$dir/err")
    expect_status 0
    expect_out '"capabilities": "", "no_new_privileges": true, "seccomp": "one host"'
    expect_out '"refused_calls": 0\}'
    expect_nothing_left
}

run_tests status_tells_what_is_in_force emunic_of_root_for_users_keeps_one_capability setting_keeps_everything \
    a_job_s_emunic_is_confined_and_its_ranks_are_not emunic_of_a_user_keeps_no_capability
