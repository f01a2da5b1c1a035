#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One rank of a held job: held_rank.sh DIR; see lib.sh. It has a child of its own, which ignores SIGTERM and SIGHUP, as
# some do. Its output goes nowhere: Open MPI takes a rank for running while anybody holds its stdout.
(trap '' TERM HUP INT; exec tail -f /dev/null) >/dev/null 2>&1 &
trap 'echo usr1 >"$1/usr1.$EMUNIC_RANK"' USR1
echo $$ >"$1/rank.$EMUNIC_RANK"
echo up >"$1/up"
until read -r <"$1/hold"; do :; done
exit "${HELD_STATUS:-0}"
