#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# `emunic serve`: starting, static domains, jobs of others, and the orderly end.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# stops SIGNAL: status 0 and nothing left.
stops() {
    kill "-$1" "$serve_pid"
    wait "$serve_pid"
    status=$?
    expect_status 0
    expect_nothing_left
}

test_SIGTERM_ends_it_with_status_0() { start_server "s-$id"; stops TERM; }
test_SIGINT_ends_it_with_status_0() { start_server "s-$id"; stops INT; }

test_a_second_one_of_the_same_name_is_refused() {
    start_server "s-$id"
    call serve --name "s-$id"
    expect_status 1
    expect_error_line "a server named 's-$id' is running already"
    stops TERM
}

test_a_wrong_machine_is_refused() {
    call serve --machine aries:groups=0
    expect_status 1
    expect_error_line "emunic serve: .*groups=0"
}

test_static_domains_have_a_rank_on_each_node() {
    start_server "s-$id" --domain 100:0x5420000:1234:7 --domain 101:9 --nodes 3
    call status --server "s-$id"
    expect_status 0
    expect_out 'ptag 100, cookie 0x05420000, user 1234, 3 ranks on 3 nodes, 0 attached \(limit 7\)'
    expect_out "ptag 101, cookie 0x00000009, user $(id -u), 3 ranks on 3 nodes, 0 attached \(no limit\)"
    stops TERM
}

test_a_cookie_is_given_only_once() {
    call serve --name "s-$id" --domain 100:5 --domain 101:5
    expect_status 1
    expect_error_line 'ptag 101 cookie 0x00000005: the cookie is taken'
}

test_more_nodes_than_the_machine_has_are_refused() {
    call serve --name "s-$id" --machine aries:groups=1,chassis=1,blades=1 --nodes 5 --domain 100:5
    expect_status 1
    expect_error_line '--nodes: machine .* has 4 nodes, not 5'
}

test_ranks_started_by_hand_join_a_static_domain() {
    local rank
    rank=$(dirname "$(dirname "$emunic")")/mpi-shim/rank/emunic-rank
    [ -x "$rank" ] || rank=$(dirname "$emunic")/../libexec/emunic/emunic-rank
    start_server "s-$id" --domain 100:77
    out=$(OMPI_COMM_WORLD_RANK=2 EMUNIC_SERVER=s-$id EMUNIC_COOKIE=77 EMUNIC_PTAG=100 "$rank" \
        sh -c 'echo $EMUNIC_NID $PMI_GNI_PTAG $PMI_GNI_LOC_ADDR' 2>&1)
    [ "$out" = '2 100 2' ] || bad "the rank sees: $out"
    out=$(OMPI_COMM_WORLD_RANK=4 EMUNIC_SERVER=s-$id EMUNIC_COOKIE=77 EMUNIC_PTAG=100 "$rank" true 2>&1)
    status=$?
    expect_status 1
    expect_out 'rank 4 cannot join .*no such rank'
    stops TERM
}

test_jobs_use_it_and_its_machine() {
    start_server "s-$id" --machine aries:groups=1,chassis=1,blades=2
    call run -n 8 --server "s-$id" -- sh -c 'echo $EMUNIC_SERVER $EMUNIC_NID'
    expect_status 0
    expect_out "^s-$id 7$"
    call run -n 9 --server "s-$id" -- true
    expect_status 1
    expect_error_line 'need 9 nodes, machine aries:groups=1,chassis=1,blades=2 has 8'
    call status --server "s-$id" --json
    expect_out '"domains": \[\]'
    stops TERM
}

run_tests SIGTERM_ends_it_with_status_0 SIGINT_ends_it_with_status_0 a_second_one_of_the_same_name_is_refused \
    a_wrong_machine_is_refused static_domains_have_a_rank_on_each_node a_cookie_is_given_only_once \
    more_nodes_than_the_machine_has_are_refused ranks_started_by_hand_join_a_static_domain \
    jobs_use_it_and_its_machine
