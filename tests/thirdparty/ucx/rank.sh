#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# One rank of a ucx_perftest case; started by `emunic run` for run_case.sh, see there.
#
#   rank.sh CLIENT_OPTIONS...
#
# ucx_perftest exchanges its addresses over TCP: rank 0 is the server, rank 1 the client, on the same host unless
# CASE_SERVER is the server's address. The server tries ports until it gets one; once the port is really in LISTEN
# state and belongs to that server, its number goes through the named pipe CASE_DIR/port, where the client waits. So
# nobody sleeps on a guess and no port is taken twice.

set -u

dir=$CASE_DIR
perftest=$CASE_UCX/bin/ucx_perftest
common=(-f -v -b "$dir/batch")
rank=${PMI_RANK:-${PMIX_RANK:-${OMPI_COMM_WORLD_RANK:-${ALPS_APP_PE:-}}}}

# listens PID PORT: true when PORT is in LISTEN state (0A) through a socket of PID.
listens() {
    local inode
    inode=$(awk -v port="$(printf '%04X' "$2")" \
        '$4 == "0A" { split($2, local, ":"); if (local[2] == port) print $10 }' /proc/net/tcp /proc/net/tcp6)
    [ -n "$inode" ] || return 1
    find "/proc/$1/fd" -lname "socket:\[$inode\]" 2>/dev/null | grep -q .
}

serve() {
    local try port pid
    # Below the range that Linux hands out for outgoing connections.
    for ((try = 0; try < 50; try++)); do
        port=$((20000 + ($$ * 13 + try * 101) % 12000))
        "$perftest" -p "$port" "${common[@]}" >"$dir/server.out" 2>&1 &
        pid=$!
        while kill -0 "$pid" 2>/dev/null; do
            if listens "$pid" "$port"; then
                echo "$port" >"$dir/port"
                wait "$pid"
                return
            fi
            sleep 0.01
        done
        grep -q 'bind() failed' "$dir/server.out" || break
    done
    echo none >"$dir/port"
    return 1
}

connect() {
    local port
    read -r port <"$dir/port"
    [ "$port" != none ] || return 1
    "$perftest" "${CASE_SERVER:-127.0.0.1}" -p "$port" "$@" "${common[@]}" >"$dir/client.out" 2>"$dir/client.err"
}

case $rank in
0) serve ;;
1) connect "$@" ;;
*) echo "rank.sh: rank '$rank' is neither 0 nor 1" >&2; exit 2 ;;
esac
