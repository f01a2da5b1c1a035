/* SPDX-License-Identifier: BSD-3-Clause */
/* The measurements of pgas.h with OpenSHMEM: what a SHMEM program would do. Built by alternatives.sh where oshcc is. */
#include <shmem.h>

#ifdef SHMEM_SIGNAL_SET
#define HAS_SIGNAL 1
#else
#define HAS_SIGNAL 0
#endif

#include "tests/bench/pgas.h"

static inline void op_put_flag(struct pgas *p, uint64_t value, int pe)
{
    shmem_uint64_p(&p->data, value, pe);
    shmem_fence();
    shmem_uint64_p((uint64_t *)(uintptr_t)&p->flag, value, pe);
}

static inline uint64_t op_get(uint64_t *at, int pe)
{
    return shmem_uint64_g(at, pe);
}

static inline uint64_t op_fadd_n(uint64_t *at, uint64_t n, int pe)
{
    return (uint64_t)shmem_long_atomic_fetch_add((long *)at, (long)n, pe);
}

static inline void op_put_nbi(uint64_t *at, uint64_t *from, int pe)
{
    shmem_uint64_put_nbi(at, from, 1, pe);
}

static inline void op_complete(void)
{
    shmem_quiet();
}

static inline void op_put_large(void *at, void *from, size_t bytes, int pe)
{
    shmem_putmem(at, from, bytes, pe);
    shmem_quiet();
}

static inline void op_put_keys_nbi(uint32_t *at, uint32_t *from, size_t n, int pe)
{
    shmem_uint32_put_nbi(at, from, n, pe);
}

static inline void op_xor(uint64_t *at, uint64_t value, int pe)
{
    shmem_uint64_atomic_xor(at, value, pe);
}

static inline void op_put_signal(struct pgas *p, uint64_t value, int pe)
{
#ifdef SHMEM_SIGNAL_SET
    shmem_uint64_put_signal(&p->data, &value, 1, (uint64_t *)(uintptr_t)&p->flag, value, SHMEM_SIGNAL_SET, pe);
#else
    op_put_flag(p, value, pe);
#endif
}

static inline void op_wait_flag(struct pgas *p, uint64_t value)
{
    shmem_uint64_wait_until((uint64_t *)(uintptr_t)&p->flag, SHMEM_CMP_EQ, value);
}

static void op_barrier(void)
{
    shmem_barrier_all();
}

static void op_sum(void)
{
    static long in;
    static long out;
    static long work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
    static long sync[2][SHMEM_REDUCE_SYNC_SIZE];
    static int turn = -1;

    if (turn < 0) {
        for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
            sync[0][i] = sync[1][i] = SHMEM_SYNC_VALUE;
        shmem_barrier_all();
        turn = 0;
    }
    in = own_pe;
    shmem_long_sum_to_all(&out, &in, 1, 0, 0, n_pes, work, sync[turn]);
    turn = !turn;
}

int main(int argc, char **argv)
{
    struct bench_options options = bench_options(argc, argv);

    shmem_init();
    own_pe = shmem_my_pe();
    n_pes = shmem_n_pes();
    if (options.is_pinned)
        bench_pin(own_pe);
    mine = shmem_malloc(sizeof(*mine));
    memset(mine, 0, sizeof(*mine));
    shmem_barrier_all();
    measure(&options);
    fflush(stdout);
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
