#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A job on each kind of machine: test_machines.sh EMUNIC GNI_PINGPONG. The links that it used are of that machine's
# classes.
pingpong=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# runs_on MACHINE CLASS...: four ranks far apart exchange messages; links of each class carried some.
runs_on() {
    local machine=$1
    local class
    shift
    call run -n 4 --place scatter --machine "$machine" --links -- "$pingpong" -i 20
    expect_status 0
    expect_out "^links of ${machine%%:*} "
    for class in processor-in processor-out "$@"; do
        expect_out "^ *c[0-9].* $class +[0-9]+ +[0-9]+ +[1-9]"
    done
}

test_a_job_runs_on_an_aries() { runs_on aries blue; }
test_a_job_runs_on_an_x1() { runs_on x1 edge; }
test_a_job_runs_on_an_xd1() { runs_on xd1 node external; }
test_a_job_runs_on_an_xd1_with_expansion_fabric() { runs_on xd1:fabrics=2 node external; }
test_a_job_runs_on_an_xd1_fat_tree() { runs_on xd1-fat-tree node spine; }
test_a_job_runs_on_topologies_of_the_literature() {
    runs_on k-ary-n-tree edge
    runs_on hyperx edge
    runs_on slim-fly edge
    runs_on dragonfly-plus local global
}

run_tests a_job_runs_on_an_aries a_job_runs_on_an_x1 a_job_runs_on_an_xd1 a_job_runs_on_an_xd1_with_expansion_fabric \
    a_job_runs_on_an_xd1_fat_tree a_job_runs_on_topologies_of_the_literature
