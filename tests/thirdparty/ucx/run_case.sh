#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Run one case of UCX over the emulated NIC.
#
#   run_case.sh BUILD_DIR EMUNIC CASE [virtual]   EMUNIC is the path of the emunic command; in virtual time on Aries
#   run_case.sh --list                     the cases and what they measure
#
# A case is a list of measurements for one `ucx_perftest` job between two emulated nodes (`emunic run -n 2 --ppn
# 1`), or a list of transports that `ucx_info` must find. Grouping them saves the start of a job for every line and
# opens and closes the transport many times in one process, which finds leaks of its own.
#
# A measurement that fails does not change ucx_perftest's exit status, so the result lines are counted: the case
# passes when the job ended with 0, every measurement printed exactly one line with the asked number of iterations
# and a positive time, and UCX logged no error. ucx_perftest looks at no data beyond sequence numbers, so the check
# cases run our uct_check, which looks at every byte; it also drives ugni_udt, which ucx_perftest refuses.
#
# shows: ucx-traffic
#
# Exit status: 0 passed, 1 failed, 2 wrong usage, 77 UCX is not built (build.sh was skipped or has not run).
# Environment: CASE_LIMIT_S (default 240), seconds after which the job is ended and the case fails.

# shellcheck disable=SC2317,SC2094  # lines_* are called by name; the batch file is only read
set -u -o pipefail

# --- cases ----------------------------------------------------------------------------------------------------------

# One line per measurement: name, then ucx_perftest's options. n: iterations; few where each waits for the other rank,
# because on a machine that others load every wait may cost the scheduler's slice.
#
# Limits come from UCX's src/uct/ugni: put short and bcopy and get bcopy go through FMA (2048, 2048, 2040 bytes),
# zcopy through BTE. A get whose size is no multiple of 4 is split by UCX into both. SMSG carries 2044 bytes next to
# UCX's header.
measure() {
    printf '%s_%s_%s -t %s -D %s -s %s -n %s -w %s\n' "$1" "$2" "$3" "$1" "$2" "$3" "$4" "$(($4 / 10))"
}

lines_put_lat() {
    local size
    for size in 8 64 512 2048; do measure put_lat short "$size" 1000; done
    for size in 8 512 2048; do measure put_lat bcopy "$size" 1000; done
    for size in 8 13 4096; do measure put_lat zcopy "$size" 400; done
    measure put_lat zcopy 65536 200
    measure put_lat zcopy 1048576 40
}

lines_put_bw() {
    local size
    for size in 8 256 2048; do measure put_bw short "$size" 50000; done
    for size in 8 2048; do measure put_bw bcopy "$size" 50000; done
    measure put_bw zcopy 4096 10000
    measure put_bw zcopy 65536 2000
    measure put_bw zcopy 1048576 300
}

lines_get() {
    local size
    for size in 8 13 64 512 2040; do measure get bcopy "$size" 2000; done
    for size in 8 4096 4097; do measure get zcopy "$size" 1000; done
    for size in 65536 65539; do measure get zcopy "$size" 200; done
    measure get zcopy 1048576 40
}

lines_add() {
    local size
    for size in 4 8; do measure add_lat short "$size" 1000; done
    for size in 4 8; do measure add_mr short "$size" 20000; done
}

lines_fadd() { measure fadd short 4 2000; measure fadd short 8 2000; }
lines_swap() { measure swap short 4 2000; measure swap short 8 2000; }
lines_cswap() { measure cswap short 4 2000; measure cswap short 8 2000; }

lines_am_short() {
    local size
    for size in 8 64 512 2040; do measure am_lat short "$size" 1000; done
    for size in 8 1024; do measure am_bw short "$size" 20000; done
}

lines_am_bcopy() {
    local size
    for size in 8 64 1024 2044; do measure am_lat bcopy "$size" 1000; done
    for size in 8 2044; do measure am_bw bcopy "$size" 20000; done
}

# case, kind, transport, what it shows
cases='
info        info -          ucx_info finds the three transports
check_rdma  chk  ugni_rdma  every byte of PUT, GET and atomics, all alignments
check_smsg  chk  ugni_smsg  every byte of short messages, lengths 0 to the limit, both directions at once
check_udt   chk  ugni_udt   the same with datagrams
put_lat     uct  ugni_rdma  PUT by FMA and BTE, latency, 8 B to 1 MiB
put_bw      uct  ugni_rdma  PUT by FMA and BTE, rate and bandwidth
get         uct  ugni_rdma  GET by FMA, BTE and both, aligned and not
add         uct  ugni_rdma  atomic add, 32 and 64 bit
fadd        uct  ugni_rdma  fetching add, 32 and 64 bit
swap        uct  ugni_rdma  swap, 32 and 64 bit
cswap       uct  ugni_rdma  compare and swap, 32 and 64 bit
am_short    uct  ugni_smsg  short messages, latency and rate
am_bcopy    uct  ugni_smsg  packed messages, latency and rate
'

# --- set-up ---------------------------------------------------------------------------------------------------------

say() { printf 'ucx-case: %s\n' "$*" >&2; }

if [ "${1-}" = --list ]; then
    printf '%s' "${cases#?}"
    exit 0
fi
if [ $# -lt 3 ] || [ $# -gt 4 ] || [ "${4-virtual}" != virtual ]; then
    say "usage: run_case.sh BUILD_DIR EMUNIC CASE [virtual] | --list"
    exit 2
fi

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd) || exit 2
emunic=$2
case_name=$3
options=()
[ "${4-}" != virtual ] || options=(--time virtual --machine aries)
ucx=$build/thirdparty/ucx
limit_s=${CASE_LIMIT_S:-240}

read -r _ kind transport _ < <(grep "^$case_name " <<<"$cases") ||
    { say "no case '$case_name'; try --list"; exit 2; }
[ -f "$ucx/stamp" ] || { say "skipped: UCX is not built in $ucx (test ucx-build)"; exit 77; }

mkdir -p "$ucx/run"
find "$ucx/run" -mindepth 1 -maxdepth 1 -name "$case_name.*" -mmin +60 -exec rm -rf {} +
dir=$(mktemp -d "$ucx/run/$case_name.XXXXXX") || exit 1
export CASE_DIR=$dir CASE_UCX=$ucx/install

# Everything a reader needs to understand a failure, then the exit.
fail() {
    say "$case_name failed: $*"
    local file
    for file in job.err client.err client.out server.out ranks.out; do
        [ -s "$dir/$file" ] && { say "--- $file"; tail -n 40 "$dir/$file" >&2; }
    done
    say "files kept in $dir"
    exit 1
}

# Where the processes of this job stand: what they run, sleep in and have used, and their calls if there is a gdb.
where_ranks_stand() {
    local environ pid
    grep -lsz "^CASE_DIR=$dir\$" /proc/[0-9]*/environ | while read -r environ; do
        pid=${environ//[!0-9]/}
        ps -o pid=,stat=,wchan:20=,time=,args= -p "$pid"
        case $(ps -o comm= -p "$pid") in
        ucx_perftest | uct_check)
            gdb -p "$pid" --batch -ex 'thread apply all backtrace 12' 2>/dev/null </dev/null | grep -E '^(Thread|#)'
            ;;
        esac
    done
}

# run_job NODES COMMAND...: one rank on each node. Output to job.out, job.err.
run_job() {
    local nodes=$1 job timer ended
    shift
    "$emunic" run -n "$nodes" --ppn 1 "${options[@]}" -- "$@" >"$dir/job.out" 2>"$dir/job.err" </dev/null &
    job=$!
    sleep "$limit_s" &
    timer=$!
    wait -n -p ended "$job" "$timer"
    if [ "$ended" = "$timer" ]; then
        where_ranks_stand >"$dir/ranks.out"
        kill "$job"
        timeout 20 tail -s 0.1 --pid="$job" -f /dev/null || kill -9 "$job"
        fail "no end after $limit_s s"
    fi
    kill "$timer"
    wait "$job" || fail "emunic run ended with $?"
}

no_errors_in() {
    # UCX's log lines carry the level; GNI_ in a warning is a call that failed during clean-up.
    if grep -E ' UCX +(ERROR|FATAL)|UCX +WARN.*(GNI_|ugni)|Caught signal|Assertion' "$@" >&2; then
        fail "UCX reported errors"
    fi
}

# --- kinds ----------------------------------------------------------------------------------------------------------

case_info() {
    local name
    run_job 1 "$ucx/install/bin/ucx_info" -d
    for name in ugni_rdma ugni_smsg ugni_udt; do
        grep -qE "^# +Transport: $name *$" "$dir/job.out" || { cat "$dir/job.out" >&2; fail "$name is not listed"; }
    done
    no_errors_in "$dir/job.out" "$dir/job.err"
    grep -cE '^# +Device: ARIES:0' "$dir/job.out" | grep -qx 3 || fail "the device of a transport is not ARIES:0"
    grep -E '^# +(Transport|Device):' "$dir/job.out" | grep -A1 ugni
}

case_perftest() {
    local name n got
    mkfifo "$dir/port" || fail "mkfifo"
    "lines_$case_name" >"$dir/batch"
    run_job 2 "$here/rank.sh" "$@"
    [ -f "$dir/client.out" ] || fail "the client rank has not run"

    while read -r name _; do
        n=$(sed -n "s/^$name .* -n \([0-9]*\) .*/\1/p" "$dir/batch")
        # name,iterations,median,average,overall latency (us),average,overall bandwidth (MB/s),average,overall rate
        got=$(grep "^$name," "$dir/client.out") || fail "no result for $name"
        awk -F, -v n="$n" 'NR > 1 || $2 != n || !($5 > 0) { exit 1 }' <<<"$got" || fail "bad result for $name: $got"
        awk -F, '{ printf "%-24s %9.3f us %12.2f MB/s %12d /s\n", $1, $5, $7, $9 }' <<<"$got"
    done <"$dir/batch"
    no_errors_in "$dir/client.out" "$dir/client.err" "$dir/server.out" "$dir/job.err"
}

case_check() {
    local checked width
    case $transport in
    ugni_rdma)
        checked='put_short put_bcopy put_zcopy get_bcopy get_zcopy'
        for width in 32 64; do
            checked+=" add$width and$width or$width xor$width"
            checked+=" fadd$width fand$width for$width fxor$width fswap$width fcswap$width"
        done
        ;;
    *) checked='am_short am_bcopy' ;;
    esac
    run_job 2 "$ucx/install/bin/uct_check" "$transport" ARIES:0
    cat "$dir/job.out"
    grep -qFx "uct_check: ok $transport $checked" "$dir/job.out" || fail "uct_check did not check: $checked"
    no_errors_in "$dir/job.out" "$dir/job.err"
}

case $kind in
info) case_info ;;
uct) case_perftest -x "$transport" -d ARIES:0 ;;
chk) case_check ;;
esac

rm -rf "$dir"
exit 0
