/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers that are killed: what those see that talk to them. Specification: spec/ugni.md 1.5, 4.2, 7.22.
 */
#include "tests/conformance/loss.h"

/* ---- a peer that is killed ---- */

struct peer_facts {
    gni_mem_handle_t mem_hndl;
    gni_smsg_attr_t box;
    uint64_t addr;
    _Atomic bool is_ready;
};

#define PEER_BYTES (128u << 20)

static struct peer_facts *facts;

/* A peer with memory and a mailbox, which then does nothing or writes into our memory without end. */
static pid_t start_peer(bool writes)
{
    pid_t pid;

    facts = mmap(NULL, sizeof(*facts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(facts != MAP_FAILED);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct mailbox box;
        struct gx_side side;
        void *mem;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fx.admin.fd);
        gx_open(&side, &fx, 2, 66, 0);
        mem = mmap(NULL, PEER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        FX_CHECK(GNI_MemRegister(side.nic, (uint64_t)(uintptr_t)mem, PEER_BYTES, NULL, GNI_MEM_READWRITE, (uint32_t)-1,
                                 &facts->mem_hndl) == GNI_RC_SUCCESS);
        mb_open(&box, side.nic, side.dst_cq, GNI_SMSG_TYPE_MBOX, 2, 64, 0);
        FX_CHECK(GNI_EpCreate(side.nic, side.src_cq, &side.ep) == GNI_RC_SUCCESS);
        FX_CHECK(GNI_EpBind(side.ep, a.nic_addr, a.inst_id) == GNI_RC_SUCCESS);
        facts->box = box.attr;
        facts->addr = (uint64_t)(uintptr_t)mem;
        atomic_store(&facts->is_ready, true);
        for (;;) {
            gni_post_descriptor_t d = gx_put(&side, &a, 0, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
            gni_post_descriptor_t *done;

            if (!writes)
                pause();
            if (GNI_PostFma(side.ep, &d) == GNI_RC_SUCCESS)
                gx_complete(side.src_cq, &done);
        }
    }
    while (!atomic_load(&facts->is_ready))
        sched_yield();
    return pid;
}

static void kill_peer(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void forget_peer(void)
{
    munmap(facts, sizeof(*facts));
}

static gni_ep_handle_t bind_to_peer(void)
{
    gni_ep_handle_t ep;

    assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, 2, 66), GNI_RC_SUCCESS);
    return ep;
}

static gni_post_descriptor_t put_to_peer(uint64_t length)
{
    return (gni_post_descriptor_t){ .type = GNI_POST_FMA_PUT,
                                    .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                    .length = length,
                                    .local_addr = (uint64_t)(uintptr_t)a.mem,
                                    .local_mem_hndl = a.mem_hndl,
                                    .remote_addr = facts->addr,
                                    .remote_mem_hndl = facts->mem_hndl };
}

static void test_posts_to_a_killed_peer_fail_and_others_go_on(void **state)
{
    uint64_t end_ns = emu_clock_ns() + LIMIT_NS;
    pid_t pid = start_peer(false);
    gni_ep_handle_t ep = bind_to_peer();
    gni_post_descriptor_t d = put_to_peer(8);
    gni_post_descriptor_t *done = NULL;
    gni_return_t rc = GNI_RC_SUCCESS;
    uint32_t recoverable = 1;
    gni_cq_entry_t entry = 0;

    (void)state;
    assert_int_equal(GNI_PostFma(ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
    kill_peer(pid);
    while (rc == GNI_RC_SUCCESS && emu_clock_ns() < end_ns) {
        assert_int_equal(GNI_PostFma(ep, &d), GNI_RC_SUCCESS);
        rc = gx_next(a.src_cq, &entry);
        assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), rc);
    }
    assert_int_equal(rc, GNI_RC_TRANSACTION_ERROR);
    assert_ptr_equal(done, &d);
    assert_int_equal(GNI_CqErrorRecoverable(entry, &recoverable), GNI_RC_SUCCESS);
    assert_int_equal(recoverable, 0);
    d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    assert_int_equal(GNI_PostFma(a.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpUnbind(ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    forget_peer();
}

static void test_transfers_with_a_peer_that_is_killed_meanwhile_end(void **state)
{
    uint8_t *local = mmap(NULL, PEER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    gni_mem_handle_t local_hndl;

    (void)state;
    assert_true(local != MAP_FAILED);
    assert_int_equal(GNI_MemRegister(a.nic, (uint64_t)(uintptr_t)local, PEER_BYTES, NULL, GNI_MEM_READWRITE,
                                     (uint32_t)-1, &local_hndl),
                     GNI_RC_SUCCESS);
    for (unsigned round = 0; round < 3; round++) {
        pid_t pid = start_peer(false);
        gni_ep_handle_t ep = bind_to_peer();
        gni_post_descriptor_t posts[4];

        for (unsigned i = 0; i < 4; i++) {
            posts[i] = put_to_peer(PEER_BYTES);
            posts[i].type = i % 2 ? GNI_POST_RDMA_GET : GNI_POST_RDMA_PUT;
            posts[i].local_addr = (uint64_t)(uintptr_t)local;
            posts[i].local_mem_hndl = local_hndl;
            assert_int_equal(GNI_PostRdma(ep, &posts[i]), GNI_RC_SUCCESS);
        }
        kill_peer(pid);
        for (unsigned i = 0; i < 4; i++) {
            gni_post_descriptor_t *done = NULL;
            gni_cq_entry_t entry = 0;
            gni_return_t rc = next_within_limit(a.src_cq, &entry);

            assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_TRANSACTION_ERROR);
            assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), rc);
            assert_true(done >= posts && done < posts + 4);
        }
        assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
        forget_peer();
    }
    assert_int_equal(GNI_MemDeregister(a.nic, &local_hndl), GNI_RC_SUCCESS);
    munmap(local, PEER_BYTES);
}

static void test_messages_to_a_killed_peer_fail_with_their_msg_id(void **state)
{
    uint64_t end_ns = emu_clock_ns() + LIMIT_NS;
    pid_t pid = start_peer(false);
    gni_ep_handle_t ep = bind_to_peer();
    gni_cq_entry_t entry = 0;
    struct mailbox box;
    gni_post_descriptor_t probe = put_to_peer(8);
    gni_post_descriptor_t *done;
    gni_return_t rc = GNI_RC_SUCCESS;

    (void)state;
    mb_open(&box, a.nic, a.dst_cq, GNI_SMSG_TYPE_MBOX, 2, 64, 0);
    assert_int_equal(GNI_SmsgInit(ep, &box.attr, &facts->box), GNI_RC_SUCCESS);
    kill_peer(pid);
    /* Until it is known to be dead: its mailbox can be written no more. */
    probe.remote_addr = (uint64_t)(uintptr_t)facts->box.msg_buffer;
    probe.remote_mem_hndl = facts->box.mem_hndl;
    while (rc == GNI_RC_SUCCESS && emu_clock_ns() < end_ns) {
        assert_int_equal(GNI_PostFma(ep, &probe), GNI_RC_SUCCESS);
        rc = gx_complete(a.src_cq, &done);
    }
    assert_int_equal(GNI_SmsgSend(ep, "x", 2, NULL, 0, 4711), GNI_RC_SUCCESS);
    assert_int_equal(next_within_limit(a.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(GNI_CQ_GET_MSG_ID(entry), 4711);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    mb_close(&box);
    forget_peer();
}

static void test_datagram_to_a_killed_peer_can_be_cancelled(void **state)
{
    pid_t pid = start_peer(false);
    gni_ep_handle_t ep = bind_to_peer();
    gni_post_state_t post_state = GNI_POST_COMPLETED;

    (void)state;
    assert_int_equal(GNI_EpPostDataWId(ep, "x", 2, NULL, 0, 1), GNI_RC_SUCCESS);
    kill_peer(pid);
    assert_int_equal(GNI_EpPostDataTestById(ep, 1, &post_state, NULL, NULL), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_PENDING);
    assert_int_equal(GNI_EpPostDataCancelById(ep, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataTestById(ep, 1, &post_state, NULL, NULL), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_TERMINATED);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    forget_peer();
}

/* Takes everything off the queue of a that came from outside; an error entry may tell of a write that was cut off. */
static unsigned take_all(void)
{
    gni_cq_entry_t entry;
    gni_return_t rc;
    unsigned taken = 0;

    while ((rc = GNI_CqGetEvent(a.dst_cq, &entry)) != GNI_RC_NOT_DONE) {
        assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_ERROR_RESOURCE || rc == GNI_RC_TRANSACTION_ERROR);
        taken += rc == GNI_RC_SUCCESS;
    }
    return taken;
}

static void test_queue_works_on_after_peers_were_killed_while_they_wrote_to_it(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 25; round++) {
        pid_t pid = start_peer(true);
        gni_post_descriptor_t d = gx_put(&b, &a, 0, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
        uint64_t end_ns = emu_clock_ns() + LIMIT_NS;
        gni_post_descriptor_t *done;
        unsigned events = 0;
        bool has_own = false;

        while (events < 10 + 37 * round && emu_clock_ns() < end_ns)
            events += take_all();
        kill_peer(pid);
        take_all();
        /* An event of somebody else comes through, whatever the dead one has left. */
        assert_int_equal(GNI_EpSetEventData(b.ep, 0, 0xb000 + round), GNI_RC_SUCCESS);
        assert_int_equal(GNI_PostFma(b.ep, &d), GNI_RC_SUCCESS);
        assert_int_equal(gx_complete(b.src_cq, &done), GNI_RC_SUCCESS);
        end_ns = emu_clock_ns() + LIMIT_NS;
        while (!has_own && emu_clock_ns() < end_ns) {
            gni_cq_entry_t entry = 0;
            gni_return_t rc = GNI_CqGetEvent(a.dst_cq, &entry);

            has_own = rc == GNI_RC_SUCCESS && GNI_CQ_GET_INST_ID(entry) == 0xb000 + round;
        }
        assert_true(has_own);
        forget_peer();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALONE(test_posts_to_a_killed_peer_fail_and_others_go_on),
        ALONE(test_transfers_with_a_peer_that_is_killed_meanwhile_end),
        ALONE(test_messages_to_a_killed_peer_fail_with_their_msg_id),
        ALONE(test_datagram_to_a_killed_peer_can_be_cancelled),
        ALONE(test_queue_works_on_after_peers_were_killed_while_they_wrote_to_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
