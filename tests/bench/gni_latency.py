#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""The quick comparison: an 8-byte put with remote event and the put rate, beside UCX over posix shared memory and the
machine's own limits, as ratios.

    gni_latency.py BUILD [OPTIONS of bench.py]
"""

import sys

import bench

if __name__ == "__main__":
    sys.argv += ["--no-plots"]
    for part in ("hand_over", "direct adopted: gni_latency_rank", "UCX posix"):
        sys.argv += ["--only", part]
    sys.exit(bench.main())
