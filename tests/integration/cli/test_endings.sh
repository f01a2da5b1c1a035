#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Ways for a job to end. After each: the right status, a clear line, and within 5 s no process, file or socket.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

test_a_normal_end() {
    start_job
    release_job
    await_run
    expect_status 0
    [ -z "$err" ] || bad "something on stderr: $err"
    expect_nothing_left
}

test_a_failing_rank() {
    export HELD_STATUS=3
    start_job
    unset HELD_STATUS
    release_job
    await_run
    expect_status 3
    expect_nothing_left
}

# ended_by SIGNAL STATUS: the signal to `run` alone.
ended_by() {
    start_job
    kill "-$1" "$run_pid"
    await_run
    expect_status "$2"
    expect_nothing_left
}

test_SIGINT_to_run() { ended_by INT 130; }
test_SIGTERM_to_run() { ended_by TERM 143; }
test_SIGHUP_to_run() { ended_by HUP 129; }

test_SIGTERM_to_run_twice() {
    start_job
    kill -TERM "$run_pid"
    # The second one must not be taken for the first: it comes when mpirun has begun to end its ranks.
    wait_until has_ended "$(<"$dir/rank.0")" || bad "the ranks do not end"
    kill -TERM "$run_pid" 2>/dev/null
    await_run
    expect_status 143
    expect_nothing_left
}

test_SIGTERM_to_the_whole_group() {
    set -m
    start_job
    set +m
    kill -TERM -- "-$run_pid"
    await_run
    expect_status 143
    expect_nothing_left
}

test_timeout_ends_a_job() {
    mkfifo "$dir/never"
    local words
    mapfile -d '' -t words < <(command_line run -n 2 -- sh -c "read -r x <$dir/never")
    timeout 1 "${words[@]}" >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
    expect_status 124
    expect_nothing_left
}

test_option_timeout_ends_a_job() {
    mkfifo "$dir/never"
    call run -n 2 --timeout 1 -- sh -c "read -r x <$dir/never"
    expect_status 124
    expect_error_line "the job has run for the 1 s that --timeout gives it: ending it"
    expect_nothing_left
}

test_option_timeout_leaves_a_job_that_ends_alone() {
    call run -n 2 --timeout 50 -- sh -c 'exit $EMUNIC_RANK'
    expect_status 1
    expect_nothing_left
}

test_ctrl_c_at_a_terminal() {
    local words
    mkfifo "$dir/up" "$dir/hold"
    exec 8<>"$dir/hold"
    mapfile -d '' -t words < <(command_line run -n 2 -- "$here/held_rank.sh" "$dir")
    out=$(python3 "$here/terminal.py" "$dir/up" 2 "${words[@]}" 8>&- 2>"$dir/err")
    status=$?
    exec 8>&-
    expect_status 130
    expect_nothing_left
}

test_SIGUSR1_reaches_the_ranks() {
    start_job
    kill -USR1 "$run_pid"
    wait_until test -e "$dir/usr1.0" || bad "rank 0 got nothing"
    wait_until test -e "$dir/usr1.1" || bad "rank 1 got nothing"
    release_job
    await_run
    expect_status 0
    expect_nothing_left
}

test_kill_9_of_run() {
    start_job
    kill -9 "$run_pid"
    wait "$run_pid" 2>/dev/null
    exec 7>&- 8>&-
    expect_nothing_left
    err=$(<"$dir/err")
    expect_err "launcher pid $run_pid has gone: ending its job"
}

test_kill_9_of_emunic() {
    local pid
    start_job
    pid=$(server_pid)
    kill -9 "$pid"
    await_run
    expect_status 1
    expect_err "emunic \(pid $pid\) was killed by signal 9: ending the job"
    expect_nothing_left
}

test_SIGTERM_to_emunic() {
    local pid
    start_job
    pid=$(server_pid)
    kill -TERM "$pid"
    await_run
    expect_status 1
    expect_err "emunic \(pid $pid\) has stopped: ending the job"
    expect_nothing_left
}

test_kill_9_of_mpirun() {
    local pid
    start_job
    pid=$(child_named "$run_pid" mpirun)
    kill -9 "$pid"
    await_run
    expect_status 137
    expect_err "mpirun \(pid $pid\) was killed by signal 9: ending the job"
    expect_nothing_left
}

test_kill_9_of_a_rank() {
    start_job
    kill -9 "$(<"$dir/rank.1")"
    await_run
    expect_status 137
    expect_nothing_left
}

# Open MPI 4.1 now and then waits for ever at its end.
test_a_rank_fails_and_mpirun_hangs() {
    local real
    real=$(command -v mpirun)
    mkdir "$dir/bin"
    printf '#!/bin/sh\n"%s" "$@"\nexec sleep 1000\n' "$real" >"$dir/bin/mpirun"
    chmod +x "$dir/bin/mpirun"
    PATH=$dir/bin:$PATH call run -n 2 -- sh -c '[ "$EMUNIC_RANK" = 0 ] && exec sleep 1000; kill -9 $$'
    expect_status 137
    [ "$err" = 'emunic run: rank 1 on node c0-0c0s0n1 (nid 1) was ended by a signal; mpirun did not end after that and was killed' ] ||
        bad "stderr: $err"
    expect_nothing_left
}

test_kill_9_of_run_and_mpirun() {
    local pid
    start_job
    pid=$(child_named "$run_pid" mpirun)
    kill -9 "$run_pid" "$pid"
    wait "$run_pid" 2>/dev/null
    exec 7>&- 8>&-
    expect_nothing_left
}

test_kill_9_of_emunic_and_mpirun() {
    local pid
    start_job
    pid=$(child_named "$run_pid" mpirun)
    kill -9 "$(server_pid)" "$pid"
    await_run
    [ "$status" -ne 0 ] || bad "status 0"
    expect_nothing_left
}

# Children of ranks go as well: nobody but the keeper is left to end them.
test_kill_9_of_run_and_emunic() {
    local pid
    start_job
    pid=$(server_pid)
    [ -n "$pid" ] || bad "the job has no emunic"
    kill -9 "$run_pid" "$pid"
    wait "$run_pid" 2>/dev/null
    exec 7>&- 8>&-
    expect_nothing_left
}

# The ranks have ended well, and mpirun with them.
test_processes_that_ranks_leave_behind_are_ended() {
    call run -q -n 2 -- sh -c 'setsid sh -c "sleep 600; :" </dev/null >/dev/null 2>&1 & exit 0'
    expect_status 0
    expect_nothing_left
}

test_kill_9_of_the_keeper() {
    start_job
    kill -9 "$(pgrep -P "$run_pid" -f "^emunic keeper of $run_pid")"
    release_job
    await_run
    expect_status 0
    expect_nothing_left
}

# With a server that others may use: it stays.
test_endings_with_a_server_that_stays() {
    local pid
    start_server "cli-$id"
    id=$id-job
    start_job --server "cli-${id%-job}"
    kill -9 "$run_pid"
    wait "$run_pid" 2>/dev/null
    exec 7>&- 8>&-
    expect_nothing_left

    rm "$dir/up" "$dir/hold"
    start_job --server "cli-${id%-job}"
    pid=$(child_named "$run_pid" mpirun)
    kill -9 "$pid"
    await_run
    expect_status 137
    expect_nothing_left

    rm "$dir/up" "$dir/hold"
    start_job --server "cli-${id%-job}"
    kill -9 "$serve_pid"
    await_run
    expect_status 1
    expect_err "server cli-.* \(pid $serve_pid\) has gone: ending the job"
    wait "$serve_pid" 2>/dev/null
    expect_nothing_left
    id=${id%-job}
    expect_nothing_left
}

run_tests a_normal_end a_failing_rank SIGINT_to_run SIGTERM_to_run SIGHUP_to_run SIGTERM_to_run_twice \
    SIGTERM_to_the_whole_group timeout_ends_a_job option_timeout_ends_a_job \
    option_timeout_leaves_a_job_that_ends_alone ctrl_c_at_a_terminal SIGUSR1_reaches_the_ranks kill_9_of_run \
    kill_9_of_emunic SIGTERM_to_emunic kill_9_of_mpirun kill_9_of_a_rank a_rank_fails_and_mpirun_hangs kill_9_of_run_and_mpirun \
    kill_9_of_emunic_and_mpirun kill_9_of_run_and_emunic processes_that_ranks_leave_behind_are_ended \
    kill_9_of_the_keeper endings_with_a_server_that_stays
