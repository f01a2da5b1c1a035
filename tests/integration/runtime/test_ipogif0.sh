#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# emunic-ipogif0 in namespaces of its own. Left out where those are not permitted.
#
#   test_ipogif0.sh EMUNIC SOURCE_DIR PROGRAM
# shellcheck source=../cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
ipogif0=$2/mpi-shim/environment/emunic-ipogif0
program=$3

said=$("$ipogif0" -- true 2>&1) || { echo "1..0 # SKIP $(tr '\n' ' ' <<<"$said")"; exit 0; }

# in_namespace ARGUMENT...: leaves $status, $out, $err.
in_namespace() {
    env XDG_RUNTIME_DIR="$dir/runtime" timeout -k 5 100 "$ipogif0" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
    out=$(<"$dir/out")
    err=$(<"$dir/err")
}

test_ranks_find_each_other_as_libfabric_does() {
    in_namespace --nids 0-3 -- "$emunic" run -q -n 4 -- "$program" 10.128.0.1
    expect_status 0
    [ "$(sort <<<"$out")" = $'rank 0 ok\nrank 1 ok\nrank 2 ok\nrank 3 ok' ] || bad "the ranks say: $out; $err"
}

test_nodes_far_apart_follow_the_rule() {
    in_namespace --nids 262141,7 -- sh -c 'ip -o link show ipogif0; cat /proc/net/arp; getent hosts nid00007'
    expect_status 0
    expect_out 'ether 00:01:01:03:ff:fd'
    expect_out '10\.131\.255\.254 .*00:01:01:03:ff:fd .*ipogif0'
    expect_out '10\.128\.0\.8 .*00:01:01:00:00:07 .*ipogif0'
    expect_out '^10\.128\.0\.8 +nid00007'
}

test_peers_are_known_but_are_not_here() {
    in_namespace --nids 2 --peers 0-1,3 -- \
        sh -c 'cat /proc/net/arp; ip -o -4 address show ipogif0; getent hosts nid00003'
    expect_status 0
    expect_out '10\.128\.0\.4 .*00:01:01:00:00:03 .*ipogif0'
    expect_out 'inet 10\.128\.0\.3/'
    expect_out '^10\.128\.0\.4 +nid00003'
    [ "$(grep -c 'inet ' <<<"$out")" -eq 1 ] || bad "not one address: $out"
}

test_the_status_is_that_of_the_command() {
    in_namespace -- sh -c 'exit 9'
    expect_status 9
}

test_nothing_is_left_outside() {
    [ ! -e /sys/class/net/ipogif0 ] || { bad "there is an ipogif0 here"; return; }
    in_namespace --nids 0-3 -- true
    [ ! -e /sys/class/net/ipogif0 ] || bad "ipogif0 is left"
    ! grep -q nid00003 /etc/hosts || bad "names are left"
}

# In the caller's namespace, which is one of the test's.
test_an_interface_that_is_there_is_left_alone() {
    in_namespace --nids 5 -- "$ipogif0" --nids 6
    expect_status 1
    expect_error_line '^emunic-ipogif0: there is an interface ipogif0'
    in_namespace --nids 5 -- sh -c "'$ipogif0' 2>/dev/null; cat /proc/net/arp"
    expect_out '00:01:01:00:00:05'
    in_namespace --nids 5 -- sh -c "ip link del ipogif0 && '$ipogif0' --nids 6,8-9 && cat /proc/net/arp"
    expect_status 0
    expect_out '^10\.128\.0\.10	nid00009$'
    expect_out '00:01:01:00:00:06'
}

test_wrong_usage_is_one_line() {
    local list
    for list in x 3-1 262142 1- -1 , ''; do
        in_namespace --nids "$list"
        expect_status 2
        expect_error_line '^emunic-ipogif0: --nids: '
    done
    in_namespace --peers 4-
    expect_error_line '^emunic-ipogif0: --peers: '
    in_namespace --nodes 3
    expect_status 2
    expect_error_line '^emunic-ipogif0: --nodes: no such option'
}

run_tests ranks_find_each_other_as_libfabric_does nodes_far_apart_follow_the_rule peers_are_known_but_are_not_here \
    the_status_is_that_of_the_command nothing_is_left_outside an_interface_that_is_there_is_left_alone \
    wrong_usage_is_one_line
