#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What ranks of `emunic run` find of their node: host names and /proc/cray_xt, by a namespace and by the library.
#
#   test_view.sh EMUNIC VIEW_RANK VIEW_RANK_ASAN STATIC_NAME      the last two: "" where they could not be built
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
view_rank=$2
view_rank_asan=$3
static_name=$4
host=$(uname -n)
# Each of them gives nodes names.
views='auto library'

has_namespaces() {
    unshare --uts hostname probe 2>/dev/null
}

# expect_lines LINE...: those on stdout, in any order.
expect_lines() {
    [ "$(sort <<<"$out")" = "$(printf '%s\n' "$@" | sort)" ] || bad "stdout: $out"
}

test_ranks_of_a_node_have_its_name_and_other_nodes_others() {
    local EMUNIC_NODE_VIEW
    export EMUNIC_NODE_VIEW
    for EMUNIC_NODE_VIEW in $views; do
        call run -q -n 4 --ppn 2 -- sh -c 'echo $EMUNIC_RANK $(hostname) $(uname -n) $EMUNIC_HOST'
        expect_status 0
        expect_lines "0 nid00000 nid00000 $host" "1 nid00000 nid00000 $host" "2 nid00001 nid00001 $host" \
            "3 nid00001 nid00001 $host"
        [ -z "$err" ] || bad "$EMUNIC_NODE_VIEW: said: $err"
    done
}

test_scripts_read_nid_and_cname() {
    local EMUNIC_NODE_VIEW
    export EMUNIC_NODE_VIEW
    for EMUNIC_NODE_VIEW in $views; do
        call run -q -n 2 --place scatter -- sh -c \
            'read nid </proc/cray_xt/nid; [ -d /proc/cray_xt ] && echo $nid $(cat /proc/cray_xt/cname)'
        expect_lines '0 c0-0c0s0n0' '384 c2-0c0s0n0'
        call run -q -m gemini --place random:3 -- sh -c 'echo $EMUNIC_CNAME; sed s/$/!/ /proc/cray_xt/cname'
        [ "$(tail -n 1 <<<"$out")" = "$(head -n 1 <<<"$out")!" ] || bad "gemini: $out"
        call run -q -- ls -l /proc/cray_xt/nid
        expect_status 0
        [ -z "$err" ] || bad "$EMUNIC_NODE_VIEW: said: $err"
    done
}

# programs_find PROGRAM: every call of it, on the second node and by either way.
programs_find() {
    local EMUNIC_NODE_VIEW
    export EMUNIC_NODE_VIEW
    for EMUNIC_NODE_VIEW in $views; do
        call run -q -n 2 -- sh -c "[ \$EMUNIC_RANK = 0 ] || exec $1 1 c0-0c0s0n1 nid00001"
        expect_status 0
        [ -z "$err" ] || bad "$EMUNIC_NODE_VIEW: said: $err"
    done
}

test_every_call_of_a_program_finds_its_node() {
    programs_find "$view_rank"
}

test_a_program_with_a_sanitizer_runs_as_before() {
    [ -n "$view_rank_asan" ] || return 0
    programs_find "$view_rank_asan"
    # What the user asks of it stays, and it still finds what it looks for.
    ASAN_OPTIONS=exitcode=42 call run -q -- "$view_rank_asan" 0 c0-0c0s0n0 nid00000
    expect_status 0
    ASAN_OPTIONS=exitcode=42 call run -q -- sh -c 'echo $ASAN_OPTIONS'
    expect_lines 'exitcode=42:verify_asan_link_order=0'
}

test_a_name_in_the_kernel_is_everybodys() {
    has_namespaces || return 0
    # Also of programs that nothing can be preloaded into.
    call run -q -n 2 -- env -i /bin/cat /proc/sys/kernel/hostname
    expect_lines nid00000 nid00001
    [ "$(uname -n)" = "$host" ] || bad "this host is called $(uname -n) now"
    [ -n "$static_name" ] || return 0
    call run -q -n 2 -- "$static_name"
    expect_lines nid00000 nid00001
}

test_the_library_alone_leaves_the_kernel_as_it_is() {
    local EMUNIC_NODE_VIEW=library
    export EMUNIC_NODE_VIEW
    call run -q -- sh -c 'cat /proc/sys/kernel/hostname; readlink /proc/self/ns/uts'
    expect_lines "$host" "$(readlink /proc/self/ns/uts)"
    [ -n "$static_name" ] || return 0
    call run -q -- "$static_name"
    expect_lines "$host"
}

test_where_namespaces_are_refused_the_library_names_nodes() {
    local emunic_really=$emunic
    printf '#!/bin/sh\nexec python3 "%s" unshare "%s" "$@"\n' "$here/without_call.py" "$emunic_really" >"$dir/emunic"
    chmod +x "$dir/emunic"
    emunic=$dir/emunic
    call run -q -n 2 -- sh -c 'echo $(hostname) $(cat /proc/sys/kernel/hostname /proc/cray_xt/nid)'
    emunic=$emunic_really
    expect_status 0
    expect_lines "nid00000 $host 0" "nid00001 $host 1"
    [ -z "$err" ] || bad "said: $err"
}

test_an_option_keeps_the_name_of_the_host() {
    call run -q -n 2 --real-hostname -- sh -c \
        'echo $(hostname) ${EMUNIC_HOST-none} $(cat /proc/cray_xt/nid); readlink /proc/self/ns/uts'
    expect_lines "$host none 0" "$host none 1" "$(readlink /proc/self/ns/uts)" "$(readlink /proc/self/ns/uts)"
    call run -q --real-hostname -- "$view_rank" 0 c0-0c0s0n0
    expect_status 0
}

test_a_setting_preloads_nothing() {
    EMUNIC_NODE_VIEW=none call run -q -- sh -c 'echo $(hostname) ${LD_PRELOAD-nothing} ${EMUNIC_HOST-none}
        [ -e /proc/cray_xt ] || echo no files'
    expect_lines "$host nothing none" 'no files'
    EMUNIC_NODE_VIEW=some call run -q -n 2 -- hostname
    expect_lines nid00000 nid00001
    [ "$(grep -c "EMUNIC_NODE_VIEW: 'some' is none of auto, library, files, none" <<<"$err")" -eq 1 ] || bad "err: $err"
}

test_what_the_user_preloads_stays_first() {
    local module ASAN_OPTIONS=${ASAN_OPTIONS-}:verify_asan_link_order=0
    export ASAN_OPTIONS     # emunic itself may be sanitized
    call run -q -- sh -c 'echo $LD_PRELOAD'
    module=$out
    LD_PRELOAD=$module call run -q -- sh -c 'echo $LD_PRELOAD'
    [ "$out" = "$module" ] || bad "twice: $out"
    LD_PRELOAD=libm.so.6 call run -q -- sh -c 'echo $LD_PRELOAD; cat /proc/cray_xt/nid'
    expect_lines "libm.so.6:$module" 0
}

test_a_job_inside_a_rank_has_nodes_of_its_own() {
    local EMUNIC_NODE_VIEW
    export EMUNIC_NODE_VIEW
    for EMUNIC_NODE_VIEW in $views; do
        # shellcheck disable=SC2016
        call run -q -n 2 -- sh -c '[ $EMUNIC_RANK = 0 ] || env -u EMUNIC_SERVER "$0" run -q -m aries --place random:1 \
            -- sh -c "echo \$(hostname) \$(cat /proc/cray_xt/nid) \$EMUNIC_NID \$EMUNIC_HOST"' "$emunic"
        expect_status 0
        [[ $out =~ ^nid0*([0-9]+)\ ([0-9]+)\ ([0-9]+)\ (.*)$ ]] && [ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ] &&
            [ "${BASH_REMATCH[2]}" = "${BASH_REMATCH[3]}" ] && [ "${BASH_REMATCH[4]}" = "$host" ] ||
            bad "$EMUNIC_NODE_VIEW: $out"
    done
}

# Ranks of different nodes have different names but share this host's memory, and Open MPI knows it.
test_mpi_names_nodes_and_still_finds_who_shares_memory() {
    local EMUNIC_NODE_VIEW
    export EMUNIC_NODE_VIEW
    python3 -c 'import ctypes; ctypes.CDLL("libmpi.so.40")' 2>/dev/null || return 0
    for EMUNIC_NODE_VIEW in $views; do
        call run -q -n 4 --ppn 2 -- python3 "$here/mpi_rank.py"
        expect_status 0
        expect_lines 'rank 0 on nid00000 shares 4 sum 6 shared 6' 'rank 1 on nid00000 shares 4 sum 6 shared 6' \
            'rank 2 on nid00001 shares 4 sum 6 shared 6' 'rank 3 on nid00001 shares 4 sum 6 shared 6'
        [ -z "$err" ] || bad "$EMUNIC_NODE_VIEW: said: $err"
    done
}

run_tests ranks_of_a_node_have_its_name_and_other_nodes_others scripts_read_nid_and_cname \
    every_call_of_a_program_finds_its_node a_program_with_a_sanitizer_runs_as_before \
    a_name_in_the_kernel_is_everybodys the_library_alone_leaves_the_kernel_as_it_is \
    where_namespaces_are_refused_the_library_names_nodes an_option_keeps_the_name_of_the_host \
    a_setting_preloads_nothing what_the_user_preloads_stays_first a_job_inside_a_rank_has_nodes_of_its_own \
    mpi_names_nodes_and_still_finds_who_shares_memory
