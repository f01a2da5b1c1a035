/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with privilege that holds a secret: says where, waits until its input ends, and tells by its status whether
 * the secret is still the same. test_moved.c makes it setuid, setgid, or one with a file capability, and executes it in
 * place of a member.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/integration/moved_target.h"

int main(void)
{
    volatile uint64_t secret = MOVED_SECRET;
    char byte;

    prctl(PR_SET_PDEATHSIG, 9);
    if (dprintf(1, "%" PRIu64 "\n", (uint64_t)(uintptr_t)&secret) < 0)
        return 1;
    while (read(0, &byte, 1) > 0)
        ;
    return secret == MOVED_SECRET ? 0 : MOVED_CHANGED;
}
