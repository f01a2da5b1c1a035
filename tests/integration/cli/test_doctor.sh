#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# `emunic doctor`: what it finds on whatever host this is, and what it says when something is missing.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# fact EXPRESSION: true of the JSON in $out, as `report`.
fact() {
    /usr/bin/python3 -c 'import json, sys; report = json.load(sys.stdin); sys.exit(not eval(sys.argv[1]))' \
        "$1" <<<"$out" || bad "not true: $1"
}

test_tables_name_each_part() {
    call doctor
    [ "$status" -le 1 ] || bad "status is $status"
    for part in cores 'RDMA devices' "libfabric's providers.*" permissions; do
        expect_out "^$part\$"
    done
    expect_out '^  memfd +good '
    expect_out '^  on processors [0-9,-]+: .'
}

test_json_agrees_with_the_kernel() {
    call doctor --json
    fact 'report["schema"] == 1'
    fact "report['cores']['allowed'] == $(nproc)"
    fact "0 < report['cores']['yield_ns'] < 10**7"
    fact 'report["cores"]["processors"] >= report["cores"]["cores"] >= 1'
    fact 'report["placement"]["processors"] and report["placement"]["why"]'
    fact "len(report['devices']) == $(find /sys/class/infiniband -mindepth 1 -maxdepth 1 2>/dev/null | wc -l)"
    fact 'all(c["state"] in ("good", "slow", "missing") for c in report["permissions"])'
    fact 'all(c["remedy"] for c in report["permissions"] if c["state"] != "good")'
}

test_tcp_is_found_and_can_be_chosen() {
    call doctor --json --provider 'tcp;ofi_rxm'
    expect_status 0
    fact 'report["chosen"]["provider"] == "tcp;ofi_rxm"'
    fact 'report["missing"] == 0'
}

test_the_environment_chooses_and_the_option_comes_first() {
    EMUNIC_PROVIDER=sockets call doctor --json
    fact 'report["chosen"]["provider"] == "sockets"'
    EMUNIC_PROVIDER=sockets call doctor --json --provider tcp
    fact 'report["chosen"]["provider"].startswith("tcp")'
}

test_a_provider_that_is_not_there_is_missing() {
    call doctor --json --provider no-such-thing
    expect_status 1
    fact 'report["chosen"] is None'
    fact 'any("no-such-thing" in line for line in report["advice"])'
}

test_without_mpirun_it_says_what_to_install() {
    path=/nowhere call doctor
    expect_status 1
    expect_out '^  mpirun +missing '
    expect_out '^  mpirun .*: install Open MPI'
}

test_few_files_are_slow() {
    (ulimit -n 256 && call doctor --json)
    out=$(<"$dir/out")
    fact '[c["state"] for c in report["permissions"] if c["name"] == "files"] == ["slow"]'
}

run_tests tables_name_each_part json_agrees_with_the_kernel tcp_is_found_and_can_be_chosen \
    the_environment_chooses_and_the_option_comes_first a_provider_that_is_not_there_is_missing \
    without_mpirun_it_says_what_to_install few_files_are_slow
