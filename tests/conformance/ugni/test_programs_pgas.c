/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the runtimes of global address spaces depend on, each in the way that the program does it: Chapel's comm/ugni,
 * GASNet-EX's aries-conduit. docs/generated/ugni-programs.md lists the habits and their tests. Specification:
 * spec/ugni.md 5.4, 5.5.
 */
#include <pthread.h>
#include <unistd.h>

#include "tests/conformance/programs.h"
#include "tests/conformance/tree.h"

#define CHAPEL_MODES                                                                                                   \
    (GNI_CDM_MODE_FORK_NOCOPY | GNI_CDM_MODE_ERR_NO_KILL | GNI_CDM_MODE_FMA_DEDICATED |                                \
     GNI_CDM_MODE_CQ_NIC_LOCAL_PLACEMENT)

/* ---- chapel ---- */

static int open_chapel_pair(void **state)
{
    (void)state;
    return open_pair_in_mode(CHAPEL_MODES);
}

#define chapel_test(name) cmocka_unit_test_setup_teardown(name, open_chapel_pair, close_pair)

struct domain {
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    gni_cq_handle_t cq;
    gni_ep_handle_t eps[2]; /* to node 0, to node 1 */
    uint32_t address;
};

static void open_domain(struct domain *d, uint32_t nid, uint32_t inst_id, uint32_t modes)
{
    fx_set_node(nid);
    assert_int_equal(GNI_CdmCreate(inst_id, (uint8_t)fx.ptag, fx.cookie, modes, &d->cdm), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CdmAttach(d->cdm, 0, &d->address, &d->nic), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqCreate(d->nic, 128, 0, GNI_CQ_NOBLOCK, NULL, NULL, &d->cq), GNI_RC_SUCCESS);
}

static void bind_domain(struct domain *d, const struct domain peers[2])
{
    for (unsigned n = 0; n < 2; n++) {
        assert_int_equal(GNI_EpCreate(d->nic, d->cq, &d->eps[n]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(d->eps[n], peers[n].address, 0), GNI_RC_SUCCESS);
    }
}

/*
 * As many domains as a process of many threads has, with the same instance ids on either node; end points to both
 * nodes, one's own included; memory registered on the first handle, used with all. shows: chapel-domains,
 * chapel-everybody, chapel-handles, gasnet-secondary
 */
static void test_chapel_opens_many_domains_and_registers_on_the_first(void **state)
{
    enum { DOMAINS = 60 };
    static struct domain domains[2][DOMAINS];
    struct domain firsts[2];
    gni_mem_handle_t handles[2];
    uint8_t *mem[2];

    (void)state;
    for (uint32_t n = 0; n < 2; n++) {
        for (uint32_t i = 0; i < DOMAINS; i++)
            open_domain(&domains[n][i], n, i, CHAPEL_MODES);
        firsts[n] = domains[n][0];
        mem[n] = pages(4096);
        assert_int_equal(GNI_MemRegister(domains[n][0].nic, ADDR(mem[n]), 4096, NULL,
                                         GNI_MEM_READWRITE | GNI_MEM_RELAXED_PI_ORDERING, (uint32_t)-1, &handles[n]),
                         GNI_RC_SUCCESS);
    }
    for (uint32_t n = 0; n < 2; n++) {
        for (uint32_t i = 0; i < DOMAINS; i++) {
            bind_domain(&domains[n][i], firsts);
            for (unsigned to = 0; to < 2; to++) {
                uint64_t *word = (uint64_t *)(void *)mem[n] + i;
                gni_post_descriptor_t d = { .type = GNI_POST_FMA_GET,
                                            .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                            .local_addr = ADDR(word),
                                            .local_mem_hndl = handles[n],
                                            .length = 8,
                                            .remote_addr = ADDR(mem[to]) + 2048,
                                            .remote_mem_hndl = handles[to] };

                memset(mem[to] + 2048, (int)(i + 1 + to), 8);
                assert_int_equal(GNI_PostFma(domains[n][i].eps[to], &d), GNI_RC_SUCCESS);
                assert_int_equal(finish_on(domains[n][i].cq, &d), STATUS_OK);
                assert_true(all_bytes_are(word, (uint8_t)(i + 1 + to), 8));
            }
        }
    }
    for (uint32_t n = 0; n < 2; n++) {
        for (uint32_t i = 0; i < DOMAINS; i++)
            assert_int_equal(GNI_CdmDestroy(domains[n][i].cdm), GNI_RC_SUCCESS);
        munmap(mem[n], 4096);
    }
}

/*
 * Exactly as many posts as entries; each must succeed, for anything else ends the program. shows: chapel-slots,
 * gasnet-dual
 */
static void test_chapel_and_gasnet_fill_their_source_queue_to_the_last_entry(void **state)
{
    gni_post_descriptor_t d[128];
    gni_post_descriptor_t *done;
    bool is_dual = *state != NULL;
    struct domain dom;
    struct domain peers[2] = { { .address = a.nic_addr }, { .address = b.nic_addr } };
    unsigned n = is_dual ? 64 : 128; /* GASNet asks for twice its descriptors */

    open_domain(&dom, 0, 500, CHAPEL_MODES | (is_dual ? GNI_CDM_MODE_DUAL_EVENTS : 0));
    bind_domain(&dom, peers);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < n; i++) {
            d[i] = word_post(i % 3 ? GNI_POST_FMA_PUT : GNI_POST_RDMA_GET, 8 * i);
            if (is_dual)
                d[i].cq_mode |= GNI_CQMODE_LOCAL_EVENT;
            assert_int_equal(post_on(dom.eps[1], &d[i]), GNI_RC_SUCCESS);
        }
        for (unsigned i = 0; i < (is_dual ? 2 * n : n); i++)
            assert_int_equal(gx_complete(dom.cq, &done), GNI_RC_SUCCESS);
        assert_int_equal(poll_once(dom.cq), GNI_RC_NOT_DONE);
    }
    assert_int_equal(GNI_CdmDestroy(dom.cdm), GNI_RC_SUCCESS);
}

/* shows: chapel-post-id */
static void test_chapel_finds_its_own_by_post_id(void **state)
{
    int marks[2];
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    gni_post_descriptor_t *done;

    (void)state;
    d.post_id = ADDR(&marks[0]);
    d.src_cq_hndl = NULL;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
    assert_true(done->post_id == ADDR(&marks[0]));
    d = word_post(GNI_POST_RDMA_PUT, 0);
    d.post_id = ADDR(&marks[1]);
    d.src_cq_hndl = a.src_cq;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
    assert_true(done->post_id == ADDR(&marks[1]));
}

/*
 * An event id of 26 bits set right before a put from the stack; the target sleeps, and finds the data behind the entry.
 * shows: chapel-message, chapel-stack
 */
static void test_chapel_active_message(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 50; i++) {
        const uint32_t id = 0x2abcd00 + i;
        uint64_t request[4] = { 1 + i, 2, 3, 4 };
        gni_post_descriptor_t d =
            gx_put(&a, &b, 64, sizeof(request), GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
        gni_cq_entry_t entry;

        d.local_addr = ADDR(request);
        d.local_mem_hndl = (gni_mem_handle_t){ 0, 0 };
        assert_int_equal(GNI_EpSetEventData(a.ep, 0, id), GNI_RC_SUCCESS);
        assert_int_equal(GNI_PostFma(a.ep, &d), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CqWaitEvent(b.dst_cq, 10000, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), id);
        assert_memory_equal(b.mem + 64, request, sizeof(request));
        assert_int_equal(finish(&d), STATUS_OK);
    }
}

#define PIECE_BYTES (16ull << 20)
#define FMA_BYTES   (1ull << 30)
#define RDMA_BYTES  0xffc00000ull

/*
 * Addresses for `bytes`, all of which show the same 16 MiB again and again: more than the machine may have memory for.
 */
static uint8_t *map_again_and_again(uint64_t bytes, int *fd_out)
{
    uint64_t whole = (bytes + PIECE_BYTES - 1) & ~(PIECE_BYTES - 1);
    int fd = memfd_create("pieces", MFD_CLOEXEC);
    uint8_t *mem;

    assert_true(fd >= 0 && ftruncate(fd, (off_t)PIECE_BYTES) == 0);
    mem = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(mem, MAP_FAILED);
    for (uint64_t at = 0; at < whole; at += PIECE_BYTES)
        assert_ptr_equal(mmap(mem + at, PIECE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), mem + at);
    *fd_out = fd;
    return mem;
}

/* shows: chapel-large */
static void test_chapel_moves_a_gibibyte_in_one_post_and_four_in_another(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    gni_mem_handle_t handles[2];
    gni_post_descriptor_t *done;
    uint64_t end_ns = emu_clock_ns() + 6 * PATIENCE_NS;
    gni_cq_entry_t entry;
    uint8_t *mem[2];
    int fds[2];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        mem[i] = map_again_and_again(RDMA_BYTES, &fds[i]);
        assert_int_equal(GNI_MemRegister(i ? b.nic : a.nic, ADDR(mem[i]), RDMA_BYTES, NULL, GNI_MEM_READWRITE,
                                         (uint32_t)-1, &handles[i]),
                         GNI_RC_SUCCESS);
    }
    fill(mem[0], PIECE_BYTES, 77);
    d.local_addr = ADDR(mem[0]);
    d.local_mem_hndl = handles[0];
    d.remote_addr = ADDR(mem[1]);
    d.remote_mem_hndl = handles[1];
    /* The longer one takes seconds: not in each way that the suite runs. */
    for (unsigned k = 0; k < (getenv("EMUNIC_MEMORY") ? 1 : 2); k++) {
        memset(mem[1], 0, PIECE_BYTES);
        d.type = k ? GNI_POST_RDMA_PUT : GNI_POST_FMA_PUT;
        d.length = k ? RDMA_BYTES : FMA_BYTES;
        assert_int_equal(post(&d), GNI_RC_SUCCESS);
        while (GNI_CqGetEvent(a.src_cq, &entry) == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns)
            ;
        assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_SUCCESS);
        assert_memory_equal(mem[1], mem[0], PIECE_BYTES);
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(GNI_MemDeregister(i ? b.nic : a.nic, &handles[i]), GNI_RC_SUCCESS);
        munmap(mem[i], (RDMA_BYTES + PIECE_BYTES - 1) & ~(PIECE_BYTES - 1));
        close(fds[i]);
    }
}

/*
 * 64 small puts as one chain with one completion, every other one to another node. shows: chapel-chain,
 * chapel-chain-nodes
 */
static void test_chapel_chain_of_64_to_two_nodes(void **state)
{
    gni_ct_put_post_descriptor_t more[63];
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    gni_ep_handle_t other_ep;
    struct gx_side other;

    (void)state;
    gx_open(&other, &fx, 2, 12, 0);
    assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &other_ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(other_ep, other.nic_addr, other.inst_id), GNI_RC_SUCCESS);
    fill(a.mem, 64 * 8, 9);
    for (size_t i = 0; i < COUNT_OF(more); i++) {
        const struct gx_side *to = i % 2 ? &b : &other;

        more[i] = (gni_ct_put_post_descriptor_t){
            .next_descr = i + 1 < COUNT_OF(more) ? &more[i + 1] : NULL,
            .ep_hndl = i % 2 ? a.ep : other_ep,
            .remote_addr = ADDR(to->mem) + 8 * (i + 1),
            .remote_mem_hndl = to->mem_hndl,
            .length = 8,
            .local_addr = ADDR(a.mem) + 8 * (i + 1),
        };
    }
    d.next_descr = more;
    assert_int_equal(GNI_CtPostFma(a.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(finish(&d), STATUS_OK);
    for (size_t i = 0; i < 64; i++)
        assert_memory_equal((i % 2 ? other.mem : b.mem) + 8 * i, a.mem + 8 * i, 8);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_EpDestroy(other_ep), GNI_RC_SUCCESS);
    gx_close(&other);
}

static uint64_t float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* shows: chapel-atomics */
static void test_chapel_atomics(void **state)
{
    const struct amo_row rows[] = {
        { GNI_FMA_ATOMIC2_FSWAP, 8, 5, 9, 0, 9, true },
        { GNI_FMA_ATOMIC2_FSWAP_S, 4, 5, 9, 0, 9, true },
        { GNI_FMA_ATOMIC2_FCSWAP, 8, 5, 5, 9, 9, true },
        { GNI_FMA_ATOMIC2_FCSWAP_S, 4, 5, 4, 9, 5, true },
        { GNI_FMA_ATOMIC2_FAND, 8, 0xff, 0x3c, 0, 0x3c, true },
        { GNI_FMA_ATOMIC2_FOR_S, 4, 0xf0, 0x0f, 0, 0xff, true },
        { GNI_FMA_ATOMIC2_FXOR, 8, 0xff, 0x0f, 0, 0xf0, true },
        { GNI_FMA_ATOMIC2_FIADD, 8, (uint64_t)-1, 3, 0, 2, true },
        { GNI_FMA_ATOMIC2_FIADD_S, 4, 0xffffffff, 3, 0, 2, true },
        { GNI_FMA_ATOMIC2_FFPADD_S, 4, float_bits(1.25f), float_bits(2.0f), 0, float_bits(3.25f), true },
        { GNI_FMA_ATOMIC2_AND_S, 4, 0xff, 0x3c, 0, 0x3c, false },
        { GNI_FMA_ATOMIC2_OR, 8, 0xf0, 0x0f, 0, 0xff, false },
        { GNI_FMA_ATOMIC2_XOR_S, 4, 0xff, 0x0f, 0, 0xf0, false },
        { GNI_FMA_ATOMIC2_IADD, 8, 40, 2, 0, 42, false },
        { GNI_FMA_ATOMIC2_FPADD_S, 4, float_bits(1.25f), float_bits(2.0f), 0, float_bits(3.25f), false },
    };

    (void)state;
    check_amos(rows, COUNT_OF(rows));
}

static _Atomic bool is_over;

/* Adds to both halves of the word at once, so that a torn read shows. */
static void *add_to_both_halves(void *arg)
{
    gni_post_descriptor_t d = gx_put(&b, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_ep_handle_t self = arg;

    d.type = GNI_POST_AMO;
    d.amo_cmd = GNI_FMA_ATOMIC2_IADD;
    d.first_operand = 0x0000000100000001;
    for (unsigned i = 0; i < 3000; i++) {
        gni_post_descriptor_t *done;

        FX_CHECK(GNI_PostFma(self, &d) == GNI_RC_SUCCESS);
        FX_CHECK(gx_complete(b.src_cq, &done) == GNI_RC_SUCCESS);
    }
    atomic_store(&is_over, true);
    return NULL;
}

/* Its atomic read is a get. shows: chapel-reads */
static void test_chapel_reads_words_whole_while_others_add(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_GET, 0);
    gni_ep_handle_t self;
    pthread_t thread;
    unsigned n = 0;

    (void)state;
    atomic_store(&is_over, false);
    memset(b.mem, 0, 8);
    assert_int_equal(GNI_EpCreate(b.nic, b.src_cq, &self), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(self, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    assert_int_equal(pthread_create(&thread, NULL, add_to_both_halves, self), 0);
    while (!atomic_load(&is_over) || n == 0) {
        uint32_t halves[2];

        assert_int_equal(run(&d), STATUS_OK);
        memcpy(halves, a.mem, sizeof(halves));
        assert_int_equal(halves[0], halves[1]);
        n++;
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(*(uint32_t *)(void *)a.mem, 3000);
    assert_int_equal(GNI_EpDestroy(self), GNI_RC_SUCCESS);
}

static int leave_everything_alive(struct fx_rank *rank)
{
    gni_post_descriptor_t d;
    struct gx_side self;
    gni_ep_handle_t ep;
    char in[128];
    char out[128] = "";

    gx_open(&self, rank->fx, rank->fx->nids[0], 70 + rank->rank, CHAPEL_MODES);
    FX_CHECK(GNI_EpCreate(self.nic, self.src_cq, &ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(ep, self.nic_addr, self.inst_id) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpPostDataWId(ep, out, sizeof(out), in, sizeof(in), 1) == GNI_RC_SUCCESS);
    d = gx_put(&self, &self, 0, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
    FX_CHECK(GNI_PostFma(ep, &d) == GNI_RC_SUCCESS);
    return 0;
}

/* The NIC has nothing of it any more. shows: chapel-exit */
static void test_chapel_ends_with_everything_alive(void **state)
{
    gni_job_res_desc_t before[2];
    gni_job_res_desc_t after[2];
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;

    (void)state;
    fx_set_node(0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(GNI_GetJobResInfo(0, (uint8_t)fx.ptag, i ? GNI_JOB_RES_CQ : GNI_JOB_RES_MDD, &before[i]),
                         GNI_RC_SUCCESS);
    assert_int_equal(fx_run(&fx, 3, leave_everything_alive, NULL), 0);
    do {
        fx_set_node(0);
        for (unsigned i = 0; i < 2; i++)
            assert_int_equal(GNI_GetJobResInfo(0, (uint8_t)fx.ptag, i ? GNI_JOB_RES_CQ : GNI_JOB_RES_MDD, &after[i]),
                             GNI_RC_SUCCESS);
    } while ((after[0].used != before[0].used || after[1].used != before[1].used) && emu_clock_ns() < end_ns);
    assert_int_equal(after[0].used, before[0].used);
    assert_int_equal(after[1].used, before[1].used);
}

/* ---- GASNet ---- */

/* Its messages: payload anywhere, a flag of 8 bytes that the target polls, and an entry. shows: gasnet-flag */
static void test_gasnet_sends_messages_as_puts_with_a_flag(void **state)
{
    (void)state;
    memset(b.mem, 0, 4096);
    for (uint64_t i = 1; i <= 200; i++) {
        _Atomic uint64_t *flag = (_Atomic uint64_t *)(void *)(b.mem + 1024);
        uint8_t payload[200];
        uint64_t length = i % sizeof(payload);
        gni_post_descriptor_t d = gx_put(&a, &b, 0, length, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
        uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
        gni_cq_entry_t entry;

        fill(payload, sizeof(payload), (uint32_t)i);
        d.type = GNI_POST_FMA_PUT_W_SYNCFLAG;
        d.local_addr = ADDR(payload);
        d.local_mem_hndl = (gni_mem_handle_t){ 0, 0 };
        d.remote_addr = ADDR(b.mem) + 1032; /* directly behind the flag */
        d.sync_flag_addr = ADDR(flag);
        d.sync_flag_value = i;
        assert_int_equal(GNI_PostFma(a.ep, &d), GNI_RC_SUCCESS);
        while (atomic_load_explicit(flag, memory_order_acquire) != i && emu_clock_ns() < end_ns)
            ;
        assert_int_equal(atomic_load(flag), i);
        assert_memory_equal(b.mem + 1032, payload, length);
        assert_int_equal(finish(&d), STATUS_OK);
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(poll_once(b.dst_cq), GNI_RC_NOT_DONE);
    }
}

/* With the bit for a remote event set, the addresses left as they were. shows: gasnet-queue-write */
static void test_gasnet_reads_queue_writes_by_rem_inst_id(void **state)
{
    gni_post_descriptor_t d;
    gni_cq_entry_t entry;

    (void)state;
    memset(&d, 0xa5, sizeof(d));
    d.type = GNI_POST_CQWRITE;
    d.cq_mode = GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT;
    d.dlvr_mode = GNI_DLVMODE_PERFORMANCE;
    d.cqwrite_value = 0xfedcba98;
    d.remote_mem_hndl = b.mem_hndl;
    d.src_cq_hndl = NULL;
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), 0xfedcba98);
    assert_int_equal(poll_once(b.dst_cq), GNI_RC_NOT_DONE); /* one entry, for which its queue has room */
}

/* The number of the sender with a nonce above it; set, posted, set back. shows: gasnet-nonce */
static void test_gasnet_puts_32_bits_of_event_data_on_both_movers(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT };

    (void)state;
    for (uint32_t i = 0; i < 64; i++) {
        gni_post_descriptor_t d = gx_put(&a, &b, 0, 64, GNI_CQMODE_LOCAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
        uint32_t event = i << 26 | 0x155;
        gni_cq_entry_t entry;

        d.type = types[i % 2];
        assert_int_equal(GNI_EpSetEventData(a.ep, 0, event), GNI_RC_SUCCESS);
        assert_int_equal(post(&d), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpSetEventData(a.ep, 0, 0), GNI_RC_SUCCESS);
        assert_int_equal(finish(&d), STATUS_OK);
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), event);
    }
}

/* It takes the first for LOCAL without looking. shows: gasnet-local-first */
static void test_gasnet_hears_of_the_local_end_first(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT };

    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        gni_post_descriptor_t d = gx_put(&a, &b, 0, 1ull << (i % 16), GNI_CQMODE_LOCAL_EVENT | GNI_CQMODE_GLOBAL_EVENT);
        gni_post_descriptor_t *done;

        d.type = types[i % 2];
        assert_int_equal(post(&d), GNI_RC_SUCCESS);
        assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
        assert_int_equal(done->cq_mode_complete, GNI_CQMODE_LOCAL_EVENT);
        assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
        assert_int_equal(done->cq_mode_complete, GNI_CQMODE_LOCAL_EVENT | GNI_CQMODE_GLOBAL_EVENT);
    }
}

/* Leaves use their ordinary end points, reduction id 0, and look until the result is there. shows: gasnet-barrier */
static void test_gasnet_barriers_are_reductions(void **state)
{
    struct gx_side sides[3];
    struct tree tree = { .n_engines = 0 };

    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        gx_open(&sides[i], &fx, i, 200 + i, 0);
    tree_build_flat(&tree, sides, 3);
    for (uint64_t round = 0; round < 100; round++) {
        for (unsigned i = 0; i < 3; i++)
            tree_contribute(&tree.leaves[i], GNI_FMA_CE_AND, round, 0, 0);
        for (unsigned i = 0; i < 3; i++)
            tree_expect(&tree.leaves[i], round);
    }
    tree_drop(&tree);
    for (unsigned i = 0; i < 3; i++)
        gx_close(&sides[i]);
}

/* shows: gasnet-123 */
static void test_gasnet_attaches_123_domains_with_descriptors_of_their_own(void **state)
{
    gni_cdm_handle_t cdms[123];
    gni_nic_handle_t nic;
    uint32_t address;

    (void)state;
    fx_set_node(3);
    for (uint32_t i = 0; i < COUNT_OF(cdms); i++) {
        assert_int_equal(GNI_CdmCreate(i, (uint8_t)fx.ptag, fx.cookie,
                                       GNI_CDM_MODE_DUAL_EVENTS | GNI_CDM_MODE_FMA_DEDICATED | GNI_CDM_MODE_ERR_NO_KILL,
                                       &cdms[i]),
                         GNI_RC_SUCCESS);
        assert_int_equal(GNI_CdmAttach(cdms[i], 0, &address, &nic), GNI_RC_SUCCESS);
    }
    for (uint32_t i = 0; i < COUNT_OF(cdms); i++)
        assert_int_equal(GNI_CdmDestroy(cdms[i]), GNI_RC_SUCCESS);
}

int main(void)
{
    static int dual;
    struct CMUnitTest tests[] = {
        chapel_test(test_chapel_opens_many_domains_and_registers_on_the_first),
        exact_pair_test(test_chapel_and_gasnet_fill_their_source_queue_to_the_last_entry),
        cmocka_unit_test_prestate_setup_teardown(test_chapel_and_gasnet_fill_their_source_queue_to_the_last_entry,
                                                 open_exact_pair, close_pair, &dual),
        chapel_test(test_chapel_finds_its_own_by_post_id),
        chapel_test(test_chapel_active_message),
        chapel_test(test_chapel_moves_a_gibibyte_in_one_post_and_four_in_another),
        chapel_test(test_chapel_chain_of_64_to_two_nodes),
        chapel_test(test_chapel_atomics),
        chapel_test(test_chapel_reads_words_whole_while_others_add),
        cmocka_unit_test(test_chapel_ends_with_everything_alive),
        dual_pair_test(test_gasnet_sends_messages_as_puts_with_a_flag),
        dual_pair_test(test_gasnet_reads_queue_writes_by_rem_inst_id),
        dual_pair_test(test_gasnet_puts_32_bits_of_event_data_on_both_movers),
        dual_pair_test(test_gasnet_hears_of_the_local_end_first),
        cmocka_unit_test(test_gasnet_barriers_are_reductions),
        cmocka_unit_test(test_gasnet_attaches_123_domains_with_descriptors_of_their_own),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
