/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast large transfers go: put_bandwidth/SIZE and get_bandwidth/SIZE by BTE, 4 KiB to 16 MiB, one transfer under
 * way, its completion consumed before the next. That is the demanding case: nothing hides what a transfer costs besides
 * its copy.
 */
#include "tests/bench/gni_pair.h"

static void measure(struct pair *pair, const char *name, gni_post_type_t type)
{
    for (size_t len = BENCH_SIZE_MIN; len <= BENCH_SIZE_MAX; len *= BENCH_SIZE_STEP) {
        gni_post_descriptor_t transfer = pair_descriptor(pair, type, GNI_CQMODE_LOCAL_EVENT, len);
        double time_us = pair_blocking_us(pair, &transfer, bench_rounds(&pair->options, len));

        bench_print_sized(name, len, (double)len / time_us * 1e-3, "GB/s");
    }
}

int main(int argc, char **argv)
{
    struct pair pair = { 0 };

    pair_open(&pair, bench_options(argc, argv), BENCH_SIZE_MAX);
    ex_barrier();
    if (pair.job.rank == 0) {
        measure(&pair, "put_bandwidth", GNI_POST_RDMA_PUT);
        measure(&pair, "get_bandwidth", GNI_POST_RDMA_GET);
    }
    pair_close(&pair);
    return 0;
}
