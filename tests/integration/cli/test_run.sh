#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# `emunic run`: what is refused before anything starts, statuses, and what ranks find in their environment.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# ends_with STATUS PATTERN WORD...: one line, nothing left.
ends_with() {
    local status_wanted=$1 pattern=$2
    shift 2
    call "$@"
    expect_status "$status_wanted"
    expect_error_line "$pattern"
    expect_nothing_left
}
refused() { ends_with 1 "$@"; }
misused() { ends_with 2 "$@"; }

test_a_wrong_machine_is_refused() {
    misused "emunic run: --machine: no machine 'nosuch'; there are aries, bluegene-l, " \
        run -n 2 --machine nosuch -- true
    misused "no machine 'gemnii'; did you mean 'gemini'\?" run -n 2 --machine gemnii -- true
    misused "/nosuch.yaml: No such file" run -n 2 --machine ./nosuch.yaml -- true
    misused "emunic run: --machine: .*'groups=0'" run -n 2 --machine aries:groups=0 -- true
    misused "emunic run: --machine: .*'colour=3'" run -n 2 --machine aries:colour=3 -- true
}

test_a_machine_that_is_too_small_is_refused_with_advice() {
    local small=aries:groups=1,chassis=1,blades=1
    refused '9 ranks with 2 per node need 5 nodes, machine .* has 4: .*--ppn.*--machine' \
        run -n 9 --ppn 2 --machine $small -- true
    call run -n 8 --ppn 2 --machine $small -- true
    expect_status 0
}

test_a_list_places_the_ranks() {
    ranks_see -n 3 --place nids:9,2,40-50
    see 0 EMUNIC_NID 9
    see 1 EMUNIC_NID 2
    see 2 EMUNIC_NID 40
}

test_a_wrong_placement_is_refused() {
    call run -n 2 --place sideways -- true
    expect_status 2
    expect_error_line "--place: 'sideways' is none of linear, scatter, random:SEED, nids:LIST"
    call run -n 2 --place random: -- true
    expect_status 2
    call run -n 3 --place nids:5,9 -- true
    expect_status 2
    expect_error_line "--place: 'nids:5,9' has fewer nodes than the 3 of 3 ranks with 1 per node"
    call run -n 1 --place nids:5,70000 -- true
    expect_status 2
    expect_error_line "--place: 'nids:5,70000': machine"
    expect_nothing_left
}

# places NIDS OPTION...: on which nodes the ranks are, in their order.
places() {
    local wanted=$1
    shift
    call run -q "$@" -- sh -c 'echo $EMUNIC_RANK $EMUNIC_NID'
    expect_status 0
    [ "$(sort -n <<<"$out" | cut -d' ' -f2 | tr '\n' ' ')" = "$wanted " ] || bad "$*: $(sort -n <<<"$out" | tr '\n' ',')"
}

test_nodes_below_the_first_one_are_not_taken() {
    local small=aries:groups=1,chassis=1,blades=1
    places '0 1 2' -n 3
    places '1 2 3' -n 3 --first-nid 1
    places '7 7 8' -n 3 --ppn 2 --first-nid 7
    places '4 1 5' -n 3 --place scatter --machine aries:groups=2,chassis=1,blades=1 --first-nid 1
    places '0 1 2 3' -n 4 --machine $small
    refused '4 ranks with 1 per node need 4 nodes from node 1 on, machine .* has 4' \
        run -n 4 --machine $small --first-nid 1 -- true
    call run --first-nid x -- true
    expect_status 2
    expect_error_line "--first-nid: 'x' is not a number"
}

test_emunic_runs_where_it_is_told() {
    local first
    first=$(/usr/bin/python3 -c 'import os; print(min(os.sched_getaffinity(0)))')
    call run -q --bind "$first" -- "$emunic" status
    expect_status 0
    expect_out "^  on processors $first: told so"
    call run -q -- "$emunic" status
    expect_out '^  on processors .*: the scheduler chooses, because no rank is bound'
    call run --bind 1,,2 -- true
    expect_status 2
    expect_error_line "--bind: '1,,2' is neither auto, none nor a list of processors"
    call run --bind 4000 -- true
    expect_status 1
    expect_err 'none of the processors 4000 may be used here'
    call run --bind none --server x -- true
    expect_status 2
    expect_error_line '--bind and --server exclude each other'
    expect_nothing_left
}

test_a_wrong_program_is_refused() {
    refused 'no-such-program: no such program' run -n 2 -- no-such-program
    refused '/nowhere/prog: no such program' run -n 2 -- /nowhere/prog
    refused "$dir: Is a directory" run -n 2 -- "$dir"
    echo text >"$dir/text"
    refused "$dir/text: Permission denied" run -n 2 -- "$dir/text"
}

test_a_missing_mpirun_is_refused() {
    local path=/nowhere:$dir
    refused 'emunic run: mpirun is not in PATH' run -n 2 -- /bin/true
}

test_a_file_that_cannot_be_written_is_refused() {
    refused '--json: /nowhere/x: No such file' run --json /nowhere/x -- true
}

test_a_server_that_does_not_run_is_refused() {
    refused "no server named 'nobody-$$' runs here" run -n 2 --server nobody-$$ -- true
}

test_statuses_pass_through() {
    local status_wanted
    for status_wanted in 0 1 3 255; do
        call run -q -n 2 -- sh -c "exit $status_wanted"
        expect_status "$status_wanted"
        expect_nothing_left
    done
}

test_the_first_failing_rank_decides() {
    # Rank 1 waits for ever on a pipe that nobody writes to.
    mkfifo "$dir/never"
    call run -q -n 2 -- sh -c "[ \$EMUNIC_RANK = 0 ] && exit 7; read -r x <$dir/never"
    expect_status 7
    expect_nothing_left
}

test_a_signal_gives_128_and_its_number() {
    local signal
    for signal in 6 9 11 15; do
        # shellcheck disable=SC2016
        call run -q -n 2 -- sh -c "[ \$EMUNIC_RANK = 1 ] && kill -$signal \$\$; exit 0"
        expect_status $((128 + signal))
        expect_nothing_left
    done
}

# fails_at LINE COMMAND OPTION...: rank 2 of 4 does that, the others never end by themselves; nothing but the line.
fails_at() {
    local line=$1 command=$2
    shift 2
    [ -p "$dir/never" ] || mkfifo "$dir/never"
    call run -n 4 --ppn 2 --machine aries:groups=3 --place scatter "$@" -- \
        sh -c "[ \$EMUNIC_RANK = 2 ] && { $command; }; read -r x <$dir/never"
    [ "$err" = "emunic run: rank 2 on node c2-0c0s0n0 (nid 384) $line" ] || bad "stderr: $err"
    expect_nothing_left
}

test_one_line_names_the_first_failing_rank_with_its_node_and_its_end() {
    fails_at 'ended with status 9' 'exit 9'
    fails_at 'was ended by signal 11 (Segmentation fault)' 'kill -11 $$'
    fails_at 'was ended by signal 9 (Killed)' 'kill -9 $$' --quiet
    fails_at 'ended with status 200' 'exit 200'
    expect_status 200
    call run -n 2 -- true
    [ -z "$err" ] || bad "stderr: $err"
}

test_what_ranks_say_themselves_is_left_as_it_is() {
    local text='[h:1] [[1,0],0] ACTIVATE PROC [[1,1],0] STATE CALLED ABORT AT a'
    call run -n 1 -- sh -c 'printf "%s\n--\nno end" "$0" >&2; exit 2' "$text"
    [ "$err" = "$text"$'\n--\nno endemunic run: rank 0 on node c0-0c0s0n0 (nid 0) ended with status 2' ] ||
        bad "stderr: $err"
}

test_mpirun_explains_if_asked() {
    call run --verbose -n 2 -- sh -c 'exit 4'
    expect_status 4
    expect_err '^-----'
    expect_err 'Primary job'
    expect_err '^emunic run: rank [01] on node c0-0c0s0n[01] \(nid [01]\) ended with status 4$'
    grep -q ACTIVATE <<<"$err" && bad "stderr: $err"
}

test_what_mpirun_has_to_say_is_not_lost() {
    export OMPI_MCA_odls_base_verbose=5
    call run -n 2 -- true
    unset OMPI_MCA_odls_base_verbose
    expect_status 0
    expect_err 'odls:launch spawning child'
}

# ignores_sigpipe FILE: what /proc/PID/status says.
ignores_sigpipe() {
    local ignored
    ignored=$(awk '$1 == "SigIgn:" { print $2 }' "$1")
    [ -n "$ignored" ] || bad "no SigIgn in $1: $(<"$1")"
    (((16#$ignored & 1 << 12) != 0))
}

# A rank that dies early leaves mpirun with a broken pipe.
test_a_broken_pipe_ends_ranks_and_not_mpirun() {
    local real rank
    real=$(command -v mpirun)
    mkdir "$dir/bin"
    printf '#!/bin/sh\ncat /proc/self/status >"%s"\nexec "%s" "$@"\n' "$dir/of_mpirun" "$real" >"$dir/bin/mpirun"
    chmod +x "$dir/bin/mpirun"
    PATH=$dir/bin:$PATH call run -n 2 -- sh -c 'cat /proc/self/status >"$0.$EMUNIC_RANK"' "$dir/of_rank"
    expect_status 0
    ignores_sigpipe "$dir/of_mpirun" || bad "mpirun does not ignore SIGPIPE"
    for rank in 0 1; do
        ! ignores_sigpipe "$dir/of_rank.$rank" || bad "rank $rank ignores SIGPIPE"
    done
}

test_output_of_ranks_comes_through_and_stdin_goes_to_rank_0() {
    local words
    mapfile -d '' -t words < <(command_line run -n 2 -- sh -c '[ $EMUNIC_RANK = 0 ] && cat; echo to-stderr >&2')
    out=$(echo hello | "${words[@]}" 2>"$dir/err")
    status=$?
    err=$(<"$dir/err")
    expect_status 0
    [ "$out" = hello ] || bad "out: $out"
    [ "$(grep -c to-stderr <<<"$err")" -eq 2 ] || bad "err: $err"
}

# ranks_see: each rank's environment in $dir/env.N
ranks_see() {
    call run "$@" -- sh -c "env >$dir/env.\$EMUNIC_RANK"
    expect_status 0
}

see() {
    grep -qx "$2=$3" "$dir/env.$1" || bad "rank $1: $2 is '$(sed -n "s/^$2=//p" "$dir/env.$1")', not '$3'"
}

get() {
    sed -n "s/^$2=//p" "$dir/env.$1"
}

test_ranks_see_what_a_cray_launcher_sets() {
    local rank nid cookie ptag
    ranks_see -n 6 --ppn 2 --place scatter --machine aries:groups=3
    cookie=$(get 0 PMI_GNI_COOKIE)
    ptag=$(get 0 PMI_GNI_PTAG)
    [ "$cookie" -gt 0 ] && [ "$cookie" -lt $((1 << 31)) ] || bad "cookie $cookie"
    [ "$ptag" -ge 3 ] && [ "$ptag" -le 253 ] || bad "ptag $ptag"
    for rank in 0 1 2 3 4 5; do
        nid=$((rank / 2 * 384))
        see $rank PMI_GNI_PTAG "$ptag"
        see $rank PMI_GNI_COOKIE "$cookie"
        see $rank PMI_GNI_DEV_ID 0
        see $rank PMI_GNI_LOC_ADDR $nid
        see $rank CRAY_COOKIES "$cookie"
        see $rank CRAY_NUM_COOKIES 1
        see $rank ALPS_APP_PE $rank
        see $rank ALPS_APP_ID '[0-9]*'
        see $rank ALPS_APP_DEPTH 1
        see $rank PMI_NO_FORK 1
        see $rank PMI_NO_PREINITIALIZE 1
        see $rank OMPI_NO_USE_CRAY_PMI 1
        see $rank EMUNIC_SERVER 'run-[0-9]*-[0-9a-f]*-[0-9]*'
        see $rank EMUNIC_NID $nid
        see $rank EMUNIC_NIDS '0\*2,384\*2,768\*2'
        see $rank EMUNIC_COOKIE "$cookie"
        see $rank EMUNIC_PTAG "$ptag"
        see $rank EMUNIC_RANK $rank
        see $rank PTL_MY_RID $rank
        see $rank PTL_NIDMAP 0:0:384:384:768:768
        see $rank PTL_PIDMAP 0:1:2:3:4:5
        see $rank EMUNIC_CABINET_COLUMNS 12
        see $rank LD_LIBRARY_PATH "/.*"
        see $rank OMPI_COMM_WORLD_SIZE 6
        [ -z "$(get $rank OPAL_OUTPUT_STDERR_FD)$(get $rank PMIX_OUTPUT_STDERR_FD)$(get $rank EVENT_NOEPOLL)" ] ||
            bad "variables of mpirun alone"
        [ -z "$(get $rank OMPI_MCA_state_base_verbose)" ] ||
            bad "variables of mpirun alone"
    done
}

test_ranks_see_the_environment_of_run() {
    export CLI_TEST_PLAIN='a b' CLI_TEST_X=1
    ranks_see -n 2 -x CLI_TEST_X -x CLI_TEST_SET=five
    unset CLI_TEST_PLAIN CLI_TEST_X
    see 0 CLI_TEST_PLAIN 'a b'
    see 1 CLI_TEST_PLAIN 'a b'
    see 1 CLI_TEST_X 1
    see 1 CLI_TEST_SET five
}

test_a_portals_map_of_the_user_stays_and_that_of_an_outer_job_goes() {
    export PTL_PIDMAP=7:8
    ranks_see -n 2
    see 1 PTL_PIDMAP 7:8
    [ -z "$(get 1 PTL_MY_RID)$(get 1 PTL_NIDMAP)" ] || bad "rank 1: $(grep PTL_ "$dir/env.1")"
    EMUNIC_RANK=3 ranks_see -n 3
    unset PTL_PIDMAP
    see 1 PTL_PIDMAP 0:1:2
    see 1 PTL_MY_RID 1
}

test_malloc_asks_for_huge_pages_where_that_is_wanted() {
    unset GLIBC_TUNABLES
    ranks_see -n 1
    [ -z "$(get 0 GLIBC_TUNABLES)" ] || bad "tunables: $(get 0 GLIBC_TUNABLES)"
    ranks_see -n 1 --huge-pages yes
    see 0 GLIBC_TUNABLES glibc.malloc.hugetlb=1
    EMUNIC_HUGE_PAGES=1 ranks_see -n 1
    see 0 GLIBC_TUNABLES glibc.malloc.hugetlb=1
    EMUNIC_HUGE_PAGES=1 ranks_see -n 1 --huge-pages no
    [ -z "$(get 0 GLIBC_TUNABLES)" ] || bad "tunables: $(get 0 GLIBC_TUNABLES)"
    GLIBC_TUNABLES=glibc.malloc.arena_max=2 ranks_see -n 1 --huge-pages yes
    see 0 GLIBC_TUNABLES glibc.malloc.arena_max=2:glibc.malloc.hugetlb=1
    GLIBC_TUNABLES=glibc.malloc.hugetlb=0 ranks_see -n 1 --huge-pages yes
    see 0 GLIBC_TUNABLES glibc.malloc.hugetlb=0
    call run -q --huge-pages perhaps -- true
    expect_status 2
}

# see_addresses OPTION...: in $dir/places where a program's data, heap and stack begin in each rank, one line each.
see_addresses() {
    call run -q -n 4 "$@" -- sh -c 'echo $(sed -n "s/^\([0-9a-f]*\)-.*\(heap\]\|stack\]\|sed\)$/\1/p" /proc/self/maps)'
    expect_status 0
    sort -u <<<"$out" >"$dir/places"
}

test_addresses_are_the_same_in_every_rank() {
    see_addresses
    [ "$(wc -l <"$dir/places")" -eq 1 ] || bad "places: $(<"$dir/places")"
    [ -z "$err" ] || bad "said: $err"
    call run -q -n 2 -- sh -c 'cat /proc/self/personality'
    [ "$out" = $'00040000\n00040000' ] || bad "personalities: $out"
}

test_an_option_keeps_addresses_random() {
    [ "$(<"/proc/self/personality")" = 00000000 ] && [ "$(<"/proc/sys/kernel/randomize_va_space")" != 0 ] || return 0
    see_addresses --aslr
    [ "$(wc -l <"$dir/places")" -gt 1 ] || bad "places: $(<"$dir/places")"
    EMUNIC_ASLR=1 see_addresses
    [ "$(wc -l <"$dir/places")" -gt 1 ] || bad "places: $(<"$dir/places")"
    EMUNIC_ASLR=0 see_addresses
    [ "$(wc -l <"$dir/places")" -eq 1 ] || bad "places: $(<"$dir/places")"
}

test_the_daemon_and_mpirun_keep_their_addresses_random() {
    local pid
    start_job
    for pid in "$(server_pid)" "$(child_named "$run_pid" mpirun)" "$run_pid"; do
        [ "$(<"/proc/$pid/personality")" = "$(<"/proc/self/personality")" ] ||
            bad "$(tr '\0' ' ' <"/proc/$pid/cmdline")"
    done
    [ "$(<"/proc/$(<"$dir/rank.0")/personality")" = 00040000 ] || bad "a rank's personality"
    release_job
    await_run
    expect_status 0
}

# In a container that refuses personality().
test_a_refusal_is_told_once_and_the_job_goes_on() {
    local emunic_really=$emunic
    printf '#!/bin/sh\nexec python3 "%s" personality "%s" "$@"\n' "$here/without_call.py" "$emunic_really" \
        >"$dir/emunic"
    chmod +x "$dir/emunic"
    emunic=$dir/emunic
    call run -n 3 -- sh -c 'cat /proc/self/personality'
    emunic=$emunic_really
    expect_status 0
    [ "$out" = $'00000000\n00000000\n00000000' ] || bad "personalities: $out"
    [ "$(grep -c 'personality() is refused' <<<"$err")" -eq 1 ] || bad "err: $err"
}

test_our_libraries_come_first_and_others_stay() {
    export LD_LIBRARY_PATH=/cli/test/lib
    ranks_see -n 1
    unset LD_LIBRARY_PATH
    see 0 LD_LIBRARY_PATH '/.*:/cli/test/lib\(:.*\)\?'
}

test_what_is_preloaded_is_the_users() {
    local EMUNIC_NODE_VIEW=none LD_PRELOAD_BEFORE=${LD_PRELOAD-}
    # AddressSanitizer wants to be the first library of a program.
    local ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
    export ASAN_OPTIONS EMUNIC_NODE_VIEW
    ranks_see -n 1
    [ "$(get 0 LD_PRELOAD)" = "$LD_PRELOAD_BEFORE" ] || bad "LD_PRELOAD is $(get 0 LD_PRELOAD)"
    export LD_PRELOAD=libm.so.6
    ranks_see -n 1
    unset LD_PRELOAD
    [ -z "$LD_PRELOAD_BEFORE" ] || export LD_PRELOAD=$LD_PRELOAD_BEFORE
    see 0 LD_PRELOAD libm.so.6
}

test_ranks_have_no_descriptors_but_their_own() {
    call run -q -n 40 -- sh -c 'ls -1 /proc/$$/fd; :'
    expect_status 0
    [ "$(sort -n <<<"$out" | uniq -c | tr -s ' \n' ' ')" = ' 40 0 40 1 40 2 ' ] || bad "$(sort -n <<<"$out" | uniq -c)"
}

test_two_jobs_at_once_have_different_credentials() {
    start_job
    cat "/proc/$(<"$dir/rank.0")/environ" | tr '\0' '\n' >"$dir/first"
    ranks_see -n 2
    [ "$(sed -n 's/^EMUNIC_COOKIE=//p' "$dir/first")" != "$(get 0 EMUNIC_COOKIE)" ] || bad "the cookies are equal"
    [ "$(sed -n 's/^EMUNIC_SERVER=//p' "$dir/first")" != "$(get 0 EMUNIC_SERVER)" ] || bad "the servers are equal"
    release_job
    await_run
    expect_status 0
    expect_nothing_left
}

test_forty_ranks_on_three_nodes() {
    call run -q -n 40 --ppn 16 -- sh -c 'echo $EMUNIC_NID'
    expect_status 0
    [ "$(sort <<<"$out" | uniq -c | tr -s ' \n' ' ')" = ' 16 0 16 1 8 2 ' ] || bad "nodes: $(sort <<<"$out" | uniq -c)"
    expect_nothing_left
}

test_a_rank_without_a_job_says_so() {
    local rank
    rank=$(dirname "$(dirname "$emunic")")/mpi-shim/rank/emunic-rank
    [ -x "$rank" ] || rank=$(dirname "$emunic")/../libexec/emunic/emunic-rank
    out=$(env -u PMIX_RANK -u OMPI_COMM_WORLD_RANK "$rank" true 2>&1)
    status=$?
    expect_status 1
    expect_out 'emunic-rank: no rank'
    out=$(OMPI_COMM_WORLD_RANK=3 "$rank" true 2>&1)
    status=$?
    expect_status 1
    expect_out 'rank 3: EMUNIC_COOKIE is not set'
    out=$(OMPI_COMM_WORLD_RANK=3 EMUNIC_COOKIE=7 EMUNIC_SERVER=nobody-$$ "$rank" true 2>&1)
    status=$?
    expect_status 1
    expect_out "rank 3 cannot join its job on server 'nobody-$$': no such server runs here"
}

run_tests a_wrong_machine_is_refused a_machine_that_is_too_small_is_refused_with_advice a_wrong_placement_is_refused \
    nodes_below_the_first_one_are_not_taken \
    emunic_runs_where_it_is_told \
    a_wrong_program_is_refused a_missing_mpirun_is_refused a_file_that_cannot_be_written_is_refused \
    a_server_that_does_not_run_is_refused statuses_pass_through the_first_failing_rank_decides \
    a_signal_gives_128_and_its_number one_line_names_the_first_failing_rank_with_its_node_and_its_end \
    what_ranks_say_themselves_is_left_as_it_is mpirun_explains_if_asked \
    a_broken_pipe_ends_ranks_and_not_mpirun what_mpirun_has_to_say_is_not_lost \
    output_of_ranks_comes_through_and_stdin_goes_to_rank_0 \
    ranks_see_what_a_cray_launcher_sets ranks_see_the_environment_of_run \
    a_list_places_the_ranks a_portals_map_of_the_user_stays_and_that_of_an_outer_job_goes addresses_are_the_same_in_every_rank \
    malloc_asks_for_huge_pages_where_that_is_wanted \
    an_option_keeps_addresses_random the_daemon_and_mpirun_keep_their_addresses_random \
    a_refusal_is_told_once_and_the_job_goes_on our_libraries_come_first_and_others_stay \
    what_is_preloaded_is_the_users ranks_have_no_descriptors_but_their_own \
    two_jobs_at_once_have_different_credentials forty_ranks_on_three_nodes a_rank_without_a_job_says_so
