/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A detached thread for each set of descriptors. The record of a user is shared by these threads and by who has begun
 * them; the last of them frees it.
 *
 * A process that ends does not wait for such a thread. But the kernel keeps what is left of it while FUSE does not
 * answer: no signal ends that.
 */
#include "emunic/base/closing.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

struct emu_closing {
    _Atomic uint32_t n_holders; /* sets under way, and the owner until it leaves */
};

struct set {
    struct emu_closing *closing; /* counted */
    struct emu_fds fds;
};

static void put(struct emu_closing *closing)
{
    if (atomic_fetch_sub(&closing->n_holders, 1) == 1)
        free(closing);
}

static void *close_all(void *arg)
{
    struct set *set = arg;

    emu_fds_close(&set->fds);
    put(set->closing);
    free(set);
    return NULL;
}

/* Only files in memory (memfd, tmpfs, hugetlbfs) have seals; nobody outside the kernel is asked about them. */
static bool is_memory(int fd)
{
    return fcntl(fd, F_GET_SEALS) >= 0;
}

static bool start(struct set *set)
{
    pthread_attr_t attributes;
    pthread_t thread;
    bool is_started;

    if (pthread_attr_init(&attributes) != 0)
        return false;
    is_started = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
                 pthread_create(&thread, &attributes, close_all, set) == 0;
    pthread_attr_destroy(&attributes);
    return is_started;
}

static void close_elsewhere(struct emu_closing **closing, const struct emu_fds *fds)
{
    struct set *set = calloc(1, sizeof(*set));

    if (!*closing) {
        *closing = calloc(1, sizeof(**closing));
        if (*closing)
            atomic_store(&(*closing)->n_holders, 1);
    }
    if (*closing)
        atomic_fetch_add(&(*closing)->n_holders, 1);
    if (set && *closing) {
        *set = (struct set){ .closing = *closing, .fds = *fds };
        if (start(set))
            return;
    }
    free(set); /* they stay open: better than to wait */
}

void emu_closing_begin(struct emu_closing **closing, struct emu_fds *fds)
{
    struct emu_fds others = { .n_fds = 0 };

    for (unsigned i = 0; i < fds->n_fds; i++) {
        if (fds->fd[i] >= 0 && !is_memory(fds->fd[i])) {
            others.fd[others.n_fds++] = fds->fd[i];
            fds->fd[i] = -1;
        }
    }
    emu_fds_close(fds);
    if (others.n_fds > 0)
        close_elsewhere(closing, &others);
}

bool emu_closing_has_room(const struct emu_closing *closing)
{
    return !closing || atomic_load(&closing->n_holders) <= EMU_CLOSING_MAX;
}

void emu_closing_leave(struct emu_closing *closing)
{
    if (closing)
        put(closing);
}
