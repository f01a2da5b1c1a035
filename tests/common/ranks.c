/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Test processes on one host: forked, with shared memory and a barrier, ended with their parent.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/common/fixture.h"

static _Noreturn void give_up(const char *what, int error)
{
    fprintf(stderr, "fixture: %s: %s\n", what, strerror(error));
    exit(1);
}

struct shared {
    pthread_barrier_t barrier;
    _Alignas(64) char bytes[FX_SHARED_BYTES];
};

void fx_spawn(struct fx *fx, unsigned n_ranks, int (*body)(struct fx_rank *rank), void *arg, struct fx_ranks *ranks_out)
{
    struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t attr;

    fx_needs_emunic(); /* a launcher admits the processes that it launched, not their children */
    if (shared == MAP_FAILED)
        give_up("mmap", errno);
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attr, n_ranks);
    *ranks_out = (struct fx_ranks){ .n_ranks = n_ranks, .shared = shared->bytes, .owned = shared };
    fflush(NULL);
    for (unsigned r = 0; r < n_ranks; r++) {
        ranks_out->pids[r] = fork();
        if (ranks_out->pids[r] < 0)
            give_up("fork", errno);
        if (ranks_out->pids[r] == 0) {
            struct fx_rank rank = { .fx = fx,
                                    .rank = r,
                                    .n_ranks = n_ranks,
                                    .shared = shared->bytes,
                                    .barrier = &shared->barrier,
                                    .arg = arg };

            prctl(PR_SET_PDEATHSIG, SIGKILL);
            fx_forget(fx);
            fx_set_node(fx->nids[r % fx->n_ranks]);
            _exit(body(&rank));
        }
    }
}

bool fx_is_over(struct fx_ranks *ranks)
{
    for (unsigned r = 0; r < ranks->n_ranks; r++) {
        int status = -1;

        if (ranks->pids[r] > 0 && waitpid(ranks->pids[r], &status, WNOHANG) == ranks->pids[r]) {
            ranks->pids[r] = 0;
            if (status != 0)
                ranks->n_failed++;
        }
        if (ranks->pids[r] > 0)
            return false;
    }
    return true;
}

unsigned fx_join(struct fx_ranks *ranks)
{
    for (unsigned r = 0; r < ranks->n_ranks; r++) {
        int status = -1;

        if (ranks->pids[r] == 0)
            continue;
        while (waitpid(ranks->pids[r], &status, 0) < 0 && errno == EINTR)
            ;
        if (status != 0)
            ranks->n_failed++;
    }
    munmap(ranks->owned, sizeof(struct shared));
    return ranks->n_failed;
}

unsigned fx_run(struct fx *fx, unsigned n_ranks, int (*body)(struct fx_rank *rank), void *arg)
{
    struct fx_ranks ranks;

    fx_spawn(fx, n_ranks, body, arg, &ranks);
    return fx_join(&ranks);
}
