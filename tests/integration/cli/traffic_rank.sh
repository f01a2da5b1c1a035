#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One rank of a job in traffic: traffic_rank.sh DIR PROGRAM ARGUMENT... It leaves its process number and becomes the
# program.
echo $$ >"$1/rank.$EMUNIC_RANK"
shift
exec "$@"
