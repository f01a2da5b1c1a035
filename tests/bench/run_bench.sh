#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# All benchmarks, after the alternatives are built.
#
#   run_bench.sh BUILD_DIR [OPTION of bench.py]...
set -eu
here=$(cd "$(dirname "$0")" && pwd)
"$here/alternatives.sh" "$1"
exec /usr/bin/python3 -B "$here/bench.py" "$@"
