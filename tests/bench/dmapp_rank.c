/* SPDX-License-Identifier: BSD-3-Clause */
/* The measurements of pgas.h with DMAPP. */
#include <stdlib.h>

#include <dmapp.h>
#include <pmi.h>

#define HAS_SIGNAL 0
#include "tests/bench/pgas.h"

static dmapp_jobinfo_t job;
static dmapp_c_pset_handle_t pset;

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        dmapp_return_t rc_ = (call);                                                                                   \
        if (rc_ != DMAPP_RC_SUCCESS) {                                                                                 \
            fprintf(stderr, "%s: %s\n", #call, dmapp_err_str[rc_]);                                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static inline void op_put_flag(struct pgas *p, uint64_t value, int pe)
{
    MUST(dmapp_put_flag(&p->data, &job.sheap_seg, pe, &value, 1, DMAPP_QW, (void *)(uintptr_t)&p->flag, value));
}

static inline uint64_t op_get(uint64_t *at, int pe)
{
    uint64_t word;

    MUST(dmapp_get(&word, at, &job.sheap_seg, pe, 1, DMAPP_QW));
    return word;
}

static inline uint64_t op_fadd_n(uint64_t *at, uint64_t n, int pe)
{
    uint64_t word;

    MUST(dmapp_afadd_qw(&word, at, &job.sheap_seg, pe, (int64_t)n));
    return word;
}

static inline void op_put_nbi(uint64_t *at, uint64_t *from, int pe)
{
    MUST(dmapp_put_nbi(at, &job.sheap_seg, pe, from, 1, DMAPP_QW));
}

static inline void op_complete(void)
{
    MUST(dmapp_gsync_wait());
}

static inline void op_put_large(void *at, void *from, size_t bytes, int pe)
{
    MUST(dmapp_put(at, &job.sheap_seg, pe, from, bytes / 16, DMAPP_DQW));
}

static inline void op_put_keys_nbi(uint32_t *at, uint32_t *from, size_t n, int pe)
{
    MUST(dmapp_put_nbi(at, &job.sheap_seg, pe, from, n, DMAPP_DW));
}

static inline void op_xor(uint64_t *at, uint64_t value, int pe)
{
    MUST(dmapp_axor_qw_nbi(at, &job.sheap_seg, pe, (int64_t)value));
}

static inline void op_put_signal(struct pgas *p, uint64_t value, int pe)
{
    op_put_flag(p, value, pe);
}

static inline void op_wait_flag(struct pgas *p, uint64_t value)
{
    while (p->flag != value)
        ;
}

static void op_barrier(void)
{
    MUST(dmapp_c_barrier_join(pset));
    MUST(dmapp_c_pset_wait(pset));
}

static void op_sum(void)
{
    int64_t in = own_pe;
    int64_t out;

    MUST(dmapp_c_greduce_start(pset, &in, &out, 1, DMAPP_C_INT64, DMAPP_C_SUM));
    MUST(dmapp_c_pset_wait(pset));
}

int main(int argc, char **argv)
{
    struct bench_options options = bench_options(argc, argv);
    dmapp_c_pset_desc_t world = { .type = DMAPP_C_PSET_DELIMITER_STRIDED };

    MUST(dmapp_init(NULL, NULL));
    MUST(dmapp_get_jobinfo(&job));
    own_pe = job.pe;
    n_pes = job.npes;
    if (options.is_pinned)
        bench_pin(own_pe);
    mine = dmapp_sheap_malloc(sizeof(*mine));
    memset(mine, 0, sizeof(*mine));
    world.u.stride_type.n_pes = (uint32_t)n_pes;
    world.u.stride_type.stride_pe = 1;
    MUST(dmapp_c_pset_create(&world, 1, 0, NULL, &pset));
    PMI_Barrier();
    MUST(dmapp_c_pset_export(pset));
    measure(&options);
    MUST(dmapp_finalize());
    return 0;
}
