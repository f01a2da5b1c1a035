#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Reductions by ranks that are processes of their own, on both data paths: test_allreduce.sh EMUNIC GNI_ALLREDUCE.
allreduce=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# reduce RANKS PPN CHILDREN ENGINES
reduce() {
    call run -n "$1" --ppn "$2" --datapath "$datapath" -- "$allreduce" -n 20 -c "$3"
    expect_status 0
    expect_out "^allreduce: $1 ranks, $4 engines of $3 children: 100 reductions, all right"
    expect_nothing_left
}

test_a_deep_tree_on_the_direct_path() { datapath=auto reduce 7 1 2 6; }
test_a_deep_tree_on_the_routed_path() { datapath=routed reduce 7 1 2 6; }
test_ranks_share_the_engines_of_their_node() { datapath=auto reduce 6 3 3 3; }
test_a_flat_tree() { datapath=auto reduce 8 4 32 1; }

test_a_node_with_too_few_engines_ends_the_job() {
    call run -n 6 --ppn 6 -- "$allreduce" -c 2
    [ "$status" -ne 0 ] || bad "status is 0"
    expect_err 'GNI_CeCreate\(.*\): GNI_RC_ERROR_RESOURCE'
    expect_nothing_left
}

run_tests a_deep_tree_on_the_direct_path a_deep_tree_on_the_routed_path ranks_share_the_engines_of_their_node \
    a_flat_tree a_node_with_too_few_engines_ends_the_job
