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

# processors: those that this test may use, one per line.
processors() {
    /usr/bin/python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")'
}

test_it_runs_where_it_is_told() {
    local first
    first=$(processors | head -n 1)
    start_server "s-$id" --bind "$first"
    call status --server "s-$id"
    expect_out "^  on processors $first: told so"
    [ "$(taskset -cp "$serve_pid" | sed 's/.*: //')" = "$first" ] || bad "it runs on $(taskset -cp "$serve_pid")"
    stops TERM
    start_server "s-$id" --bind none
    call status --server "s-$id" --json
    expect_out '"bind": "none"'
    stops TERM
    call serve --bind 4000-4001
    expect_status 1
    expect_error_line 'none of the processors 4000-4001 may be used here'
    call serve --bind 0-
    expect_status 2
    expect_error_line "--bind: '0-' is neither auto, none nor a list of processors"
}

test_it_leaves_the_cores_of_bound_ranks() {
    local rank first
    rank=$(dirname "$(dirname "$emunic")")/mpi-shim/rank/emunic-rank
    [ -x "$rank" ] || rank=$(dirname "$emunic")/../libexec/emunic/emunic-rank
    first=$(processors | head -n 1)
    start_server "s-$id" --domain 100:77
    out=$(OMPI_COMM_WORLD_RANK=2 EMUNIC_SERVER=s-$id EMUNIC_COOKIE=77 EMUNIC_PTAG=100 taskset -c "$first" "$rank" \
        "$emunic" status --server "s-$id" --json 2>&1)
    if [ "$(processors | wc -l)" = 1 ]; then
        expect_out 'the scheduler chooses'
    else
        /usr/bin/python3 -c 'import json, sys
placement = json.load(sys.stdin)["servers"][0]["placement"]
assert sys.argv[1] not in placement["processors"].replace("-", ",").split(","), placement
assert "rank" in placement["why"], placement' "$first" <<<"$out" || bad "$out"
    fi
    # It comes back when they have gone.
    wait_until roams || bad 'it stays where it was'
    stops TERM
}

# roams: the server s-$id runs where the scheduler puts it.
roams() {
    "$emunic" status --server "s-$id" 2>/dev/null | grep -q '^  on processors .*: the scheduler chooses'
}

test_a_wrong_machine_is_refused() {
    call serve --machine aries:groups=0
    expect_status 2
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

# hosts_files: a key and a hosts file with addresses that no other test has.
hosts_files() {
    address=127.$((128 + $$ / 65536 % 64)).$(($$ / 256 % 256)).$((1 + $$ % 254))
    printf '# two\nred %s:7101 1\nblue %s:7102 3 # the larger one\n' "$address" "$address" >"$dir/hosts"
    (umask 077 && head -c 32 /dev/urandom >"$dir/key")
}

# host_is NAME STATE: how the server s-$id sees it.
host_is() {
    "$emunic" status --server "s-$id" 2>/dev/null | grep -Eq "^ +[01] +$1 +$2 "
}

test_two_hosts_make_one_machine() {
    hosts_files
    start_server "s-$id" --hosts "$dir/hosts" --host red --key-file "$dir/key" --domain 100:77
    local red=$serve_pid
    start_server "t-$id" --hosts "$dir/hosts" --host blue --key-file "$dir/key"
    local blue=$serve_pid
    wait_until host_is blue up || bad 'the second host does not come up'
    call status --server "t-$id"
    expect_status 0
    expect_out ' red +up +whole +[0-9]+ +[0-9]+ +1 '
    expect_out ' blue +here +whole +[0-9]+ +[0-9]+ +3 '
    expect_out 'ptag 100, cookie 0x0000004d, user .*, 4 ranks on 4 nodes'
    kill "$blue"
    wait "$blue"
    wait_until host_is blue down || bad 'the second host does not go down'
    start_server "t-$id" --hosts "$dir/hosts" --host blue --key-file "$dir/key"
    blue=$serve_pid
    wait_until host_is blue up || bad 'the second host does not come back'
    kill "$blue"
    wait "$blue"
    serve_pid=$red
    stops TERM
}

test_hosts_need_a_key_that_nobody_else_can_read() {
    hosts_files
    call serve --hosts "$dir/hosts" --host red
    expect_status 2
    expect_error_line '--hosts needs --key-file'
    chmod 0640 "$dir/key"
    call serve --hosts "$dir/hosts" --host red --key-file "$dir/key"
    expect_status 1
    expect_error_line '--key-file: others may read .*/key: make its mode 0600'
    (umask 077 && printf short >"$dir/short")
    call serve --hosts "$dir/hosts" --host red --key-file "$dir/short"
    expect_status 1
    expect_error_line '--key-file: .*/short has not 16 to 4096 bytes'
}

test_hosts_and_their_domains_must_be_sound() {
    hosts_files
    call serve --hosts "$dir/hosts" --host green --key-file "$dir/key"
    expect_status 1
    expect_error_line "no host 'green' in"
    call serve --hosts "$dir/hosts" --host blue --key-file "$dir/key" --domain 100:77
    expect_status 1
    expect_error_line '--domain: domains are given to the first host, red'
    call serve --name "s-$id" --hosts "$dir/hosts" --host red --key-file "$dir/key" --domain 100:77 --nodes 5
    expect_status 1
    expect_error_line '--nodes: the hosts do not have 5 nodes, but 4'
    printf 'red 127.0.0.1\nred 127.0.0.2\n' >"$dir/twice"
    call serve --hosts "$dir/twice" --host red --key-file "$dir/key"
    expect_status 1
    expect_error_line 'twice: line 2 names a host for the second time'
    call serve --key-file "$dir/key"
    expect_status 2
    expect_error_line 'need --hosts'
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

test_limits_of_users_are_shown_and_kept() {
    start_server "cli-$id" --domain 7:77 --user-limit ports=3 --user-limit connections=11
    call status --server "cli-$id"
    expect_status 0
    expect_out "^  USER +REQUESTS +CONNECTIONS +PORTS +REGISTRATIONS +PAGES +DATAGRAMS +REGIONS +TRANSFERS +REFUSED"
    expect_out "^ +$(id -u) +[0-9]+ +1/11 +0/3 "
    call status --server "cli-$id" --json
    expect_out "\"ports\": ?\{\"used\": ?0, ?\"limit\": ?3, ?\"refused\": ?0\}"
    kill "$serve_pid"
    wait "$serve_pid"
    call serve --name "cli-$id" --user-limit ports=0
    expect_status 2
    expect_err "--user-limit: 'ports=0' is not KIND=N"
    call serve --name "cli-$id" --user-limit port=1
    expect_status 2
}

run_tests it_runs_where_it_is_told it_leaves_the_cores_of_bound_ranks SIGTERM_ends_it_with_status_0 SIGINT_ends_it_with_status_0 a_second_one_of_the_same_name_is_refused \
    a_wrong_machine_is_refused static_domains_have_a_rank_on_each_node a_cookie_is_given_only_once \
    more_nodes_than_the_machine_has_are_refused ranks_started_by_hand_join_a_static_domain \
    jobs_use_it_and_its_machine two_hosts_make_one_machine hosts_need_a_key_that_nobody_else_can_read \
    hosts_and_their_domains_must_be_sound \
    limits_of_users_are_shown_and_kept
