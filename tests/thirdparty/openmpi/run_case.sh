#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Run one case of Open MPI over the emulated NIC.
#
#   run_case.sh BUILD_DIR EMUNIC CASE [virtual]   EMUNIC is the path of the emunic command; in virtual time on Aries
#   run_case.sh --list                     the cases and what they show
#
# A case is one of our check programs on emulated nodes under `emunic run`, with message layer ob1 and transports ugni
# and self only: between ranks there is no other way. It passes when the job ended with 0, rank 0 said what was checked,
# Open MPI logged nothing, the emulated NIC counted no failed transaction, carried something between every two nodes
# that talk, and at least as many bytes as the program knows must have crossed.
#
# shows: ompi-traffic, ompi-credentials
#
# Exit status: 0 passed, 1 failed, 2 wrong usage, 77 Open MPI is not built (build.sh was skipped or has not run).
# Environment: CASE_LIMIT_S (default 240), seconds after which the job is ended and the case fails.
set -u -o pipefail

# case, program, its argument, ranks, ranks per node, settings (options of `emunic run` begin with --, others are
# variables; mca: is Open MPI's prefix; none: -), what it shows
any_length=mca:btl_ugni_get_limit=33554432
udreg='mca:btl_ugni_rcache=udreg mca:mpi_leave_pinned=1 mca:rcache_udreg_print_stats=1'
cases="
pingpong            check_pingpong    -    4 1 -                               # two-sided, 0 bytes to 16 MiB
pingpong_any        check_pingpong    any  4 1 $any_length                     # every length, by PUT where GET cannot
pingpong_routed     check_pingpong    -    4 1 --datapath=routed               # all by emunic
pingpong_cma        check_pingpong    -    4 1 EMUNIC_MEMORY=cma               # memory that stays private
pingpong_udreg      check_pingpong    -    4 1 $udreg                          # registration cache of libudreg
exchange            check_exchange    -    4 1 -                               # non-blocking, many under way
exchange_routed     check_exchange    -    4 1 --datapath=routed               # all by emunic
exchange_udreg      check_exchange    -    4 1 $udreg                          # buffers unmapped and mapped again
onesided            check_onesided    -    4 1 mca:osc=rdma                    # put, get, atomics
onesided_routed     check_onesided    -    4 1 mca:osc=rdma --datapath=routed  # all by emunic
onesided_cma        check_onesided    -    4 1 mca:osc=rdma EMUNIC_MEMORY=cma  # memory that stays private
collectives         check_collectives -    4 1 -                               # all kinds, all roots
collectives_shared  check_collectives -    6 2 -                               # two ranks on a node
threads             check_threads     -    4 1 -                               # MPI_THREAD_MULTIPLE, one in MPI at once
"

say() { printf 'openmpi-case: %s\n' "$*" >&2; }

if [ "${1-}" = --list ]; then
    printf '%s' "${cases#?}"
    exit 0
fi
if [ $# -lt 3 ] || [ $# -gt 4 ] || [ "${4-virtual}" != virtual ]; then
    say "usage: run_case.sh BUILD_DIR EMUNIC CASE [virtual] | --list"
    exit 2
fi

build=$(cd "$1" && pwd) || exit 2
emunic=$2
case_name=$3
work=$build/thirdparty/openmpi
limit_s=${CASE_LIMIT_S:-240}

line=$(grep "^$case_name " <<<"$cases") || { say "no case '$case_name'; try --list"; exit 2; }
read -r _ program argument ranks ppn settings <<<"${line%%#*}"
[ -f "$work/stamp" ] || { say "skipped: Open MPI is not built in $work (test openmpi-build)"; exit 77; }

mkdir -p "$work/run"
find "$work/run" -mindepth 1 -maxdepth 1 -name "$case_name.*" -mmin +60 -exec rm -rf {} +
dir=$(mktemp -d "$work/run/$case_name.XXXXXX") || exit 1

# Everything a reader needs to understand a failure, then the exit.
fail() {
    say "$case_name failed: $*"
    local file
    for file in job.err job.out; do
        [ -s "$dir/$file" ] && { say "--- $file"; tail -n 40 "$dir/$file" >&2; }
    done
    say "files kept in $dir"
    exit 1
}

# --- the job --------------------------------------------------------------------------------------------------------

export OMPI_MCA_pml=ob1 OMPI_MCA_btl=ugni,self
options=()
[ "${4-}" != virtual ] || options=(--time virtual --machine aries)
for setting in $settings; do
    case $setting in
    -) ;;
    --*) options+=("${setting%%=*}" "${setting#*=}") ;;
    mca:*) export "OMPI_MCA_${setting#mca:}" ;;
    *) export "${setting?}" ;;
    esac
done
arguments=()
[ "$argument" = - ] || arguments=("$argument")
timeout -k 20 "$limit_s" "$emunic" run -n "$ranks" --ppn "$ppn" --json "$dir/job.json" "${options[@]}" -- \
    "$work/install/bin/$program" "${arguments[@]}" >"$dir/job.out" 2>"$dir/job.err" </dev/null
status=$?
case $status in
0) ;;
124 | 137) fail "no end after $limit_s s" ;;
*) fail "emunic run ended with $status" ;;
esac

# --- what it said and what was counted ------------------------------------------------------------------------------

said=$(grep -Eo "^$program: ok, [0-9]+ bytes between ranks\$" "$dir/job.out") ||
    fail "$program did not say that it checked"
bytes=$(grep -o '[0-9]*' <<<"${said#*ok}" | head -n 1)
if grep -E 'btl/ugni|btl_ugni|mca_|\[\[.*\]' "$dir/job.err" | grep -v 'udreg: stats' >&2; then
    fail "Open MPI reported something"
fi

# nodes that talk to another, ordered pairs of them, bytes, errors
read -r nodes pairs carried errors < <(/usr/bin/python3 - "$dir/job.json" <<'PYTHON'
import json
import sys

with open(sys.argv[1]) as file:
    flows = [flow for flow in json.load(file)["flows"] if flow["src_nid"] != flow["dst_nid"]]
print(len({flow["src_nid"] for flow in flows}), len(flows), sum(flow["payload_bytes"] for flow in flows),
      sum(flow["errors"] for flow in flows))
PYTHON
) || fail "no counters in job.json"
[ "$errors" -eq 0 ] || fail "$errors transactions failed"
[ "$nodes" -eq $((ranks / ppn)) ] || fail "only $nodes nodes sent anything"
# With more than one rank on a node, part of the traffic stays there.
if [ "$ppn" -eq 1 ] && [ "$carried" -lt "$bytes" ]; then
    fail "the program moved $bytes bytes, the NICs $carried"
fi
if [[ $settings == *udreg* ]]; then
    hits=$(sed -n 's/.*udreg: stats (hit\/miss\/evicted): \([0-9]*\)\/.*/\1/p' "$dir/job.err" | sort -n | head -n 1)
    [ "${hits:-0}" -gt 0 ] || fail "a rank had no hit in libudreg's cache"
fi
printf '%s; %s bytes carried between %s pairs of nodes\n' "$said" "$carried" "$pairs"

rm -rf "$dir"
exit 0
