/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What does not go the short way: checks, DMAPP's calls, strided transfers, put with signal.
 *
 * Errors of DMAPP are faults of the program (a freed block) or of the network, and OpenSHMEM has no status to tell them
 * by: the job ends with a message.
 */
#include "mpi-shim/shmem/src/sma.h"

void smai_must(struct smai_remote r, dmapp_return_t rc)
{
    if (SMAI_LIKELY(rc == DMAPP_RC_SUCCESS))
        return;
    if (rc == DMAPP_RC_INVALID_PARAM)
        smai_fail(r.call, "address %p at PE %d: not allocated, or the local buffer is none", r.at, r.pe);
    if (rc == DMAPP_RC_TRANSACTION_ERROR)
        smai_fail_lost(r.call, "address %p at PE %d: %s", r.at, r.pe, dmapp_err_str[rc]);
    smai_fail(r.call, "address %p at PE %d: %s", r.at, r.pe, dmapp_err_str[rc]);
}

void smai_put_slowly(struct smai_remote r, const void *from, uint64_t len_bytes, bool is_nbi)
{
    int pe = smai_pe_of(r.ctx, r.pe, r.call);
    dmapp_seg_desc_t *seg = smai_check(r, pe, len_bytes);
    void *to = (void *)(uintptr_t)r.at;
    void *data = (void *)(uintptr_t)from;

    if (len_bytes == 0)
        return;
    if (is_nbi) {
        smai_must(r, dmapp_put_nbi(to, seg, pe, data, len_bytes, DMAPP_BYTE));
        smai_note_posted();
    } else {
        smai_must(r, dmapp_put(to, seg, pe, data, len_bytes, DMAPP_BYTE));
    }
}

void smai_get_slowly(struct smai_remote r, void *to, uint64_t len_bytes, bool is_nbi)
{
    int pe = smai_pe_of(r.ctx, r.pe, r.call);
    dmapp_seg_desc_t *seg = smai_check(r, pe, len_bytes);
    void *from = (void *)(uintptr_t)r.at;

    if (len_bytes == 0)
        return;
    if (is_nbi) {
        smai_must(r, dmapp_get_nbi(to, from, seg, pe, len_bytes, DMAPP_BYTE));
        smai_note_posted();
    } else {
        smai_must(r, dmapp_get(to, from, seg, pe, len_bytes, DMAPP_BYTE));
    }
}

/* ---- strided ---- */

static void check_strides(struct smai_remote r, const struct smai_stride *s)
{
    uint64_t span;

    if (s->remote_stride < 1 || s->local_stride < 1)
        smai_fail(r.call, "strides %td and %td: less than 1", s->remote_stride, s->local_stride);
    if (__builtin_mul_overflow((s->nelems - 1) * s->elem_bytes, (uint64_t)s->remote_stride, &span))
        smai_fail(r.call, "%zu elements are too many", s->nelems);
    smai_check(r, smai_pe_of(r.ctx, r.pe, r.call), span + s->elem_bytes);
}

/*
 * Elements one by one: each is a launch where the PE is mapped, else a request of its own that overlaps the others. All
 * are complete at the end, because the local side is the caller's again.
 */
void smai_iput(struct smai_remote r, const struct smai_stride *s)
{
    const uint8_t *from = s->local;

    if (s->nelems == 0)
        return;
    check_strides(r, s);
    for (size_t i = 0; i < s->nelems; i++) {
        smai_put(r, from, 1, s->elem_bytes, true);
        r.at = (const uint8_t *)r.at + s->remote_stride * (ptrdiff_t)s->elem_bytes;
        from += s->local_stride * (ptrdiff_t)s->elem_bytes;
    }
    smai_order(r.call);
}

void smai_iget(struct smai_remote r, const struct smai_stride *s)
{
    uint8_t *to = s->local;

    if (s->nelems == 0)
        return;
    check_strides(r, s);
    for (size_t i = 0; i < s->nelems; i++) {
        smai_get(r, to, 1, s->elem_bytes, true);
        r.at = (const uint8_t *)r.at + s->remote_stride * (ptrdiff_t)s->elem_bytes;
        to += s->local_stride * (ptrdiff_t)s->elem_bytes;
    }
    smai_order(r.call);
}

/* ---- with signal ---- */

void smai_put_signal_slowly(struct smai_remote r, const void *from, uint64_t len_bytes, struct smai_signal signal,
                            bool is_nbi)
{
    const struct smai_remote word = { r.ctx, signal.addr, r.pe, r.call };
    int pe = smai_pe_of(r.ctx, r.pe, r.call);
    dmapp_seg_desc_t *seg = smai_check(r, pe, len_bytes);
    dmapp_seg_desc_t *word_seg = smai_check(word, pe, sizeof(*signal.addr));

    if (signal.op != SHMEM_SIGNAL_SET && signal.op != SHMEM_SIGNAL_ADD)
        smai_fail(r.call, "sig_op %d: neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD", signal.op);
    if (((uintptr_t)signal.addr & 7) != 0)
        smai_fail(r.call, "sig_addr %p: not aligned", (void *)signal.addr);
    if (len_bytes > 0 && signal.op == SHMEM_SIGNAL_SET && seg == word_seg) {
        void *to = (void *)(uintptr_t)r.at;
        void *data = (void *)(uintptr_t)from;

        smai_must(r, is_nbi ? dmapp_put_flag_nbi(to, seg, pe, data, len_bytes, DMAPP_BYTE, signal.addr, signal.value) :
                              dmapp_put_flag(to, seg, pe, data, len_bytes, DMAPP_BYTE, signal.addr, signal.value));
        if (is_nbi)
            smai_note_posted();
        return;
    }
    /* The blocking put is complete before the signal begins. */
    smai_put_slowly(r, from, len_bytes, false);
    smai_amo(word, (struct smai_atomic){ .op = signal.op == SHMEM_SIGNAL_SET ? EMU_AMO_SWAP : EMU_AMO_ADD,
                                         .width_bytes = 8,
                                         .operand1 = signal.value });
}

/* ---- ordering ---- */

/* A PE that answers no request any more; -1: all do, and it was one request alone that failed. */
static int lost_pe(void)
{
    uint64_t word;

    for (int pe = 0; pe < smai.npes; pe++)
        if (dmapp_get(&word, (void *)(uintptr_t)smai.heap, &smai.heap_seg, pe, sizeof(word), DMAPP_BYTE) !=
            DMAPP_RC_SUCCESS)
            return pe;
    return -1;
}

void smai_fail_requests(const char *call, dmapp_return_t rc)
{
    int pe = rc == DMAPP_RC_TRANSACTION_ERROR ? lost_pe() : -1;

    if (pe >= 0)
        smai_fail_lost(call, "requests, PE %d answers none: %s", pe, dmapp_err_str[rc]);
    smai_fail(call, "one of the requests since the last quiet: %s", dmapp_err_str[rc]);
}

/* Something was posted, or the library is not up. */
void smai_complete(const char *call)
{
    uint64_t n_posted = atomic_load_explicit(&smai.n_posted, memory_order_acquire);
    uint64_t n_complete = atomic_load_explicit(&smai.n_complete, memory_order_relaxed);
    dmapp_return_t rc;

    if (!smai.is_up)
        smai_fail(call, "not initialised");
    rc = dmapp_gsync_wait();
    if (rc != DMAPP_RC_SUCCESS)
        smai_fail_requests(call, rc);
    while (n_complete < n_posted && !atomic_compare_exchange_weak_explicit(&smai.n_complete, &n_complete, n_posted,
                                                                           memory_order_release, memory_order_relaxed))
        ;
}
