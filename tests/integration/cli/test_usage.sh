#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Command lines: help, version, and one precise line for each wrong one.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

test_help_has_an_example_and_goes_to_stdout() {
    local verb
    for verb in '' run serve status links fault sim settings doctor; do
        # shellcheck disable=SC2086  # no verb is no word
        call $verb --help
        expect_status 0
        expect_out '^Example:'
        expect_out '^  emunic '
        [ -z "$err" ] || bad "something on stderr: $err"
        # shellcheck disable=SC2086
        call $verb -h
        expect_status 0
    done
}

test_help_names_no_verb_that_does_not_exist() {
    local verb
    call --help
    for verb in top report; do
        grep -qw "$verb" <<<"$out" && bad "help names $verb"
        call "$verb"
        expect_status 2
        call --help
    done
}

test_version_tells_tool_and_abi() {
    call --version
    expect_status 0
    expect_out '^emunic [0-9]+\.[0-9]+\.[0-9]+$'
    expect_out '^ABI [0-9]+$'
}

# wrong PATTERN WORD...: status 2 and one line.
wrong() {
    local pattern=$1
    shift
    call "$@"
    expect_status 2
    expect_error_line "$pattern.*; try --help\$"
}

test_wrong_usage_gets_one_precise_line() {
    wrong 'what to do is missing'
    wrong "'top' is not a verb" top
    wrong 'emunic run: the program is missing' run
    wrong 'emunic run: the program is missing' run -n 2 --
    wrong "emunic run: -n: '12x' is not a number of ranks" run -n 12x -- true
    wrong "emunic run: -n: '0' is not a number" run -n0 true
    wrong "emunic run: -n: '-3' is not a number" run -n -3 true
    wrong "emunic run: -n: needs a value" run -n
    wrong "emunic run: --ppn: '0' is not a number" run --ppn=0 true
    wrong "emunic run: --machine: needs a value" run --machine
    wrong "emunic run: --nid: no such option" run --nid 3 true
    wrong "emunic run: -z: no such option" run -z true
    wrong "emunic run: -z: no such option" run -qz true
    wrong "emunic run: --quiet=3: takes no value" run --quiet=3 true
    wrong "emunic run: --datapath: 'fast' is neither" run --datapath fast true
    wrong "emunic run: --server: 'a b' is not a server name" run --server 'a b' true
    wrong "emunic run: -x: '=3' is not VAR" run -x =3 true
    wrong "emunic run: --hosts and --server exclude each other" run --hosts localhost --server s true
    wrong "emunic run: --provider, --peer-timeout and --secure need --hosts" run --provider tcp true
    wrong "emunic run: --provider, --peer-timeout and --secure need --hosts" run --secure true
    wrong "emunic run: --peer-timeout: '0' is not a number of seconds" run --hosts localhost --peer-timeout 0 true
    wrong "emunic run: --timeout: '0' is not a number of seconds" run --timeout 0 true
    wrong "emunic run: --members: 'x' is not" run --members x true
    wrong "emunic serve: --domain: '5' is not PTAG:COOKIE" serve --domain 5
    wrong "emunic serve: --domain: '256:1' is not PTAG:COOKIE" serve --domain 256:1
    wrong "emunic serve: --domain: '5:1:0:2:3' is not PTAG:COOKIE" serve --domain 5:1:0:2:3
    wrong "emunic serve: --name: 'a/b' is not a server name" serve --name a/b
    wrong "emunic serve: --nodes: '0' is not" serve --nodes 0
    wrong "emunic serve: 'x': takes options only" serve x
    wrong "emunic doctor: 'x': takes options only" doctor x
    wrong "emunic doctor: --provider: needs a value" doctor --provider
    wrong "emunic status: --paths: no such option" status --paths
    wrong "emunic status: 'x': takes options only" status x
    wrong "emunic links: --nid: no such option" links --nid 12x
    wrong "emunic links: --server: 'a b' is not a server name" links --server 'a b'
}

test_a_typo_is_told_what_was_meant_perhaps() {
    wrong "emunic run: --mahcine: no such option \\(did you mean --machine\\?\\)" run --mahcine aries true
    wrong "emunic run: --mahcine: no such option \\(did you mean --machine\\?\\)" run --mahcine=aries true
    wrong "emunic serve: --noeds: no such option \\(did you mean --nodes\\?\\)" serve --noeds 2
    wrong "emunic status: --jason: no such option \\(did you mean --json\\?\\)" status --jason
    wrong "emunic links: --sever: no such option \\(did you mean --server\\?\\)" links --sever x
    wrong "emunic fault: --domian: no such option \\(did you mean --domain\\?\\)" fault --domian 1 list
    wrong "emunic doctor: --provdier: no such option \\(did you mean --provider\\?\\)" doctor --provdier tcp
    wrong "emunic sim: --jsno: no such option \\(did you mean --json\\?\\)" sim list --jsno
    wrong "emunic run: --p: may be --ppn, --place, --provider, --peer-timeout, --paths" run --p 3 true
    wrong "emunic run: --colour: no such option" run --colour 3 true
    grep -q mean <<<"$err" && bad "stderr: $err"
    wrong "'stats' is not a verb \\(did you mean status\\?\\)" stats
    wrong "'ru' is not a verb \\(did you mean run\\?\\)" ru
    wrong "'colour' is not a verb" colour
    grep -q mean <<<"$err" && bad "stderr: $err"
    true
}

test_options_take_values_with_and_without_equals_sign() {
    call run --ranks=2 --ppn 2 --place=linear -- true
    expect_status 0
    call run -n2 --ppn=2 --place linear true
    expect_status 0
}

# Man pages of build and source tree: beside the tests.
test_options_of_the_help_are_in_the_man_page() {
    local page verb options option
    for page in run.1 serve.8 status.1 links.1 fault.1 sim.1 settings.1 doctor.1; do
        verb=${page%.*}
        call "$verb" --help
        options=$out
        if [ "$verb" = sim ]; then
            for verb in list run explain traffic messages; do
                call sim "$verb" --help
                options+=$out
            done
        fi
        sed 's/\\-/-/g' "$here/../../../docs/man/emunic-$page" >"$dir/page"
        while read -r option; do
            grep -qE -- "(^|[^-a-z])$option([^-a-z]|\$)" "$dir/page" || bad "emunic-$page does not tell $option"
        done < <(grep -oE '^ +(-., )?--[a-z-]+' <<<"$options" | grep -oE -- '--[a-z-]+' | grep -vx -- --help)
    done
}

test_what_follows_the_program_belongs_to_it() {
    call run -n 1 echo -n 5 --help
    expect_status 0
    [ "$out" = '5 --help' ] || bad "out: $out"
}

run_tests help_has_an_example_and_goes_to_stdout help_names_no_verb_that_does_not_exist version_tells_tool_and_abi \
    wrong_usage_gets_one_precise_line a_typo_is_told_what_was_meant_perhaps \
    options_take_values_with_and_without_equals_sign options_of_the_help_are_in_the_man_page what_follows_the_program_belongs_to_it
