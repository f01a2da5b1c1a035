/* SPDX-License-Identifier: BSD-3-Clause */
/* A library with the name of one of the runtime, which asks for the time (test_program_clock.c). */
#include <time.h>

__attribute__((visibility("default"))) int runtime_asks_for_the_time(struct timespec *now_out);

int runtime_asks_for_the_time(struct timespec *now_out)
{
    int r = clock_gettime(CLOCK_MONOTONIC, now_out);

    return r == 0 ? 0 : -1; /* not a jump: the call comes back to here */
}
