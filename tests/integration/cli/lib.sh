# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# For the tests of the `emunic` command. Each file is one TAP program: `FILE EMUNIC`.
#
# A job is held by a named pipe: its ranks tell on `up` that they run and then wait for a line on `hold`. So a test
# acts exactly when all ranks are there, and no test sleeps. What a job leaves behind is found by a variable in the
# environment that everything of a test is started with, by the runtime folder, private to a test, and by the list of
# sockets. Where the kernel offers no event (the last process of a job that is not ours to wait for), wait_until asks
# again every 20 ms, for at most 5 s: the limit that the project promises.

set -u

emunic=${1:?usage: $0 EMUNIC}
emunic=$(cd "$(dirname "$emunic")" && pwd)/$(basename "$emunic")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(mktemp -d "${TMPDIR:-/tmp}/emunic-cli-test.XXXXXX") || exit 1
trap finish EXIT
trap 'exit 1' INT TERM HUP
unset EMUNIC_SERVER EMUNIC_COOKIE EMUNIC_LOG XDG_RUNTIME_DIR
n_tests=0
n_bad=0
background=()

finish() {
    local pid
    for pid in "${background[@]}"; do
        kill -9 "$pid" 2>/dev/null
    done
    rm -rf "$top"
}

# What a failed check says; the test goes on with the next one.
bad() {
    printf '# %s\n' "$*"
    is_good=false
}

# run_tests NAME...: functions named test_NAME, one TAP line each, each in a folder of its own.
run_tests() {
    printf '1..%d\n' $#
    local name
    for name in $(compgen -A function test_); do
        [[ " $* " == *" ${name#test_} "* ]] || { echo "Bail out! $name is written and not run"; exit 1; }
    done
    for name in "$@"; do
        n_tests=$((n_tests + 1))
        is_good=true
        dir=$top/$n_tests
        mkdir -p "$dir/runtime"
        id=cli-test-$$-$n_tests
        "test_$name"
        if $is_good; then
            printf 'ok %d - %s\n' "$n_tests" "${name//_/ }"
        else
            sed 's/^/# stderr: /' "$dir"/err* 2>/dev/null | tail -n 20
            printf 'not ok %d - %s\n' "$n_tests" "${name//_/ }"
            n_bad=$((n_bad + 1))
        fi
    done
    [ "$n_bad" -eq 0 ]
    exit
}

# The command as a test sees it: marked, with a runtime folder of its own and no signal ignored.
command_line() {
    printf '%s\0' env --default-signal=INT,HUP,TERM CLI_TEST_ID="$id" XDG_RUNTIME_DIR="$dir/runtime" \
        PATH="${path:-$PATH}" "$emunic" "$@"
}

# call ARGUMENT...: in the foreground, for at most $limit seconds (30); leaves $status, $out, $err.
call() {
    local words
    mapfile -d '' -t words < <(command_line "$@")
    timeout -k 5 "${limit:-100}" "${words[@]}" >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
    out=$(<"$dir/out")
    # Other tests ask all daemons of the host, as another user: what this one says of that is not the command's.
    err=$(grep -v 'warn: pid [0-9]* uid 65534: not allowed on the admin socket' "$dir/err")
}

expect_status() {
    [ "$status" -eq "$1" ] || bad "status is $status, not $1"
}

expect_out() {
    grep -qE -- "$1" <<<"$out" || bad "no '$1' on stdout: $out"
}

expect_err() {
    grep -qE -- "$1" <<<"$err" || bad "no '$1' on stderr: $err"
}

# One line, and nothing on stdout.
expect_error_line() {
    expect_err "$1"
    [ "$(wc -l <<<"$err")" -eq 1 ] || bad "more than one line on stderr: $err"
    [ -z "$out" ] || bad "something on stdout: $out"
}

# wait_until COMMAND...: at most 5 s.
wait_until() {
    local i
    for ((i = 0; i < 250; i++)); do
        "$@" && return 0
        read -r -t 0.02 <><(:) || :
    done
    return 1
}

# Processes of this test, by the environment they were started with.
leftovers() {
    grep -lzxs "CLI_TEST_ID=$id" /proc/[0-9]*/environ | cut -d/ -f3
}

nobody_left() {
    [ -z "$(leftovers)" ]
}

# No process, file or socket of this test after at most 5 s.
expect_nothing_left() {
    local pid
    wait_until nobody_left || for pid in $(leftovers); do
        bad "left: pid $pid $(tr '\0' ' ' <"/proc/$pid/cmdline")"
        kill -9 "$pid"
    done
    [ -z "$(ls -A "$dir/runtime")" ] || bad "left in the runtime folder: $(find "$dir/runtime")"
    if [ -n "${run_pid:-}" ] && grep -q "@emunic/run-[0-9]*-[0-9a-f]*-$run_pid/" /proc/net/unix; then
        bad "left: a socket of run $run_pid"
    fi
}

# ---- jobs held by a pipe ----

# The names of emunics that end like that of run $run_pid: its own, and perhaps a stranger's.
servers_of_run() {
    sed -n "s:.*@emunic/\(run-[0-9]*-[0-9a-f]*-$run_pid\)/admin$:\1:p" /proc/net/unix | sort -u
}

# start_job OPTION...: a job whose ranks wait. Leaves $run_pid, and files rank.N with the process of each rank.
start_job() {
    local words i n=${n_ranks:-2}
    mkfifo "$dir/up" "$dir/hold"
    exec 7<>"$dir/up" 8<>"$dir/hold"
    mapfile -d '' -t words < <(command_line run -n "$n" "$@" -- "$here/held_rank.sh" "$dir")
    "${words[@]}" >"$dir/out" 2>"$dir/err" </dev/null 7>&- 8>&- &
    run_pid=$!
    for ((i = 0; i < n; i++)); do
        read -r -t 20 -u 7 || { bad "the ranks do not come up"; return 1; }
    done
}

# Lets the ranks go.
release_job() {
    local i
    for ((i = 0; i < ${n_ranks:-2}; i++)); do
        echo go >&8
    done
}

# Waits for `run`; leaves $status, $err, $took_ms (since $began_ms).
await_run() {
    if ! wait_until has_ended "$run_pid"; then
        bad "run does not end within 5 s"
        kill -9 "$run_pid"
    fi
    wait "$run_pid" 2>/dev/null
    status=$?
    out=$(<"$dir/out")
    err=$(<"$dir/err")
    exec 7>&- 8>&-
}

has_ended() {
    local state
    state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) || return 0
    [ -z "$state" ] || [ "$state" = Z ]
}

child_named() {
    pgrep -P "$1" -x "$2" | head -n 1
}

# The job's emunic, as it tells itself.
server_pid() {
    "$emunic" status --json | python3 -c '
import json, sys
for server in json.load(sys.stdin)["servers"]:
    if server["server"].endswith("-" + sys.argv[1]):
        print(server["pid"])' "$run_pid"
}

# Its name, which nobody can guess.
server_name() {
    sed -n "s:.*@emunic/\(run-[0-9]*-[0-9a-f]*-$run_pid\)/admin\$:\1:p" /proc/net/unix | head -n 1
}

# start_server NAME OPTION...: `emunic serve`, ready when this returns. Leaves $serve_pid; stderr in err.serve.
start_server() {
    local words name=$1 line
    shift
    mapfile -d '' -t words < <(command_line serve --name "$name" "$@")
    rm -f "$dir/serve"
    mkfifo "$dir/serve"
    "${words[@]}" 2>"$dir/serve" </dev/null &
    serve_pid=$!
    background+=("$serve_pid")
    exec 9<"$dir/serve"
    read -r -t 20 -u 9 line || bad "the server says nothing"
    [[ $line == *"server $name is ready"* ]] || bad "the server says: $line"
    # What it says later must not fill a pipe that nobody reads.
    cat <&9 >>"$dir/err.serve" &
    exec 9<&-
}
