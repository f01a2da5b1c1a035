/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Somebody with every right and a bad memory, at the admin socket: domains, reports, fault rules, job control, most of
 * it nearly right. He leaves out what would rightly make an honest job fail or wait, or what would rightly stay.
 */
#include "tests/fuzz/hostile.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emunic/abi/fault.h"
#include "tests/common/raw.h"
#include "tests/fuzz/choices.h"

/*
 * Job control. Suspends and limits only the hostile job, never so far that nobody could attach to it any more; limits
 * the injection of a node that nobody is on; leaves no job behind that nobody would end.
 */
static struct emu_msg some_job_request(const struct hostile_target *target)
{
    static const uint16_t types[] = { EMU_MSG_JOB_CONFIGURE, EMU_MSG_JOB_SUSPEND, EMU_MSG_JOB_RESUME,
                                      EMU_MSG_JOB_RESUME,    EMU_MSG_NTT_CLEAR,   EMU_MSG_INJECTION_SET };
    struct emu_msg msg = { .magic = EMU_MSG_MAGIC,
                           .abi_version = EMU_ABI_VERSION,
                           .sequence = (uint32_t)below(100),
                           .type = types[below(sizeof(types) / sizeof(types[0]))] };

    if (msg.type == EMU_MSG_INJECTION_SET) {
        msg.injection = (struct emu_msg_injection){ .nid_wanted = 700,
                                                    .flags = (uint16_t)odd_number(),
                                                    .bw = (uint16_t)below(1100),
                                                    .aot_bw = (uint16_t)below(1100) };
        return msg;
    }
    msg.job = (struct emu_msg_job){ .job_id = below(2),
                                    .timeout_ms = (uint32_t)below(5),
                                    .mdd_limit = 100,
                                    .cq_limit = 100,
                                    .fma_limit = 100,
                                    .bte_limit = (int32_t)below(9),
                                    .ce_limit = (int32_t)odd_number(),
                                    .iommu_limit = 20 + (int32_t)below(300),
                                    .mrt_limit = 1000000,
                                    .gart_limit = (int32_t)odd_number(),
                                    .ntt_base = (int32_t)odd_number(),
                                    .group_size = (uint32_t)odd_number(),
                                    .granularity = (uint32_t)below(20) };
    if (one_in(3))
        flip_bits(&msg.job.ntt_size, 24, 1 + (unsigned)below(4));
    msg.job.ptag = target->ptag;
    msg.job.cookie = target->cookie;
    msg.job.flags = one_in(2) ? EMU_JOB_NTT | (uint32_t)(below(2) * EMU_JOB_LIMITS) :
                                EMU_JOB_DECLARE | (uint32_t)(below(2) * EMU_JOB_LIMITS);
    if (msg.job.flags & EMU_JOB_DECLARE)
        msg.job.ntt_size = 0;
    return msg;
}

static struct emu_msg some_admin_request(const struct hostile_target *target)
{
    struct emu_msg msg = { .magic = EMU_MSG_MAGIC, .abi_version = EMU_ABI_VERSION, .sequence = (uint32_t)below(100) };

    msg.type = (uint16_t)(EMU_MSG_DOMAIN_CREATE + below(EMU_MSG_SHUTDOWN - EMU_MSG_DOMAIN_CREATE));
    msg.domain = (struct emu_msg_domain){ .ptag = (uint32_t)below(300),
                                          .cookie = (uint32_t)odd_number(),
                                          .owner_uid = (uint32_t)odd_number(),
                                          .member_limit = (uint32_t)odd_number(),
                                          .n_ranks = 1 + (uint32_t)below(40),
                                          .domain_id = (uint32_t)below(5),
                                          .signal = one_in(2) ? 0 : (uint32_t)odd_number(),
                                          .flags = (uint32_t)below(2) };
    if (one_in(3))
        flip_bits(msg.bytes, sizeof(struct emu_msg_domain), 1 + (unsigned)below(4));
    if (msg.type == EMU_MSG_FAULT_SET || msg.type == EMU_MSG_FAULT_CLEAR)
        msg.fault = (struct emu_msg_fault){ .flags = (uint32_t)below(2),
                                            .n_rules = (uint32_t)below(8),
                                            .id = (uint32_t)below(8) };
    if (one_in(50))
        flip_bits(&msg, 16, 1);
    /* A job that was declared and never entered stays, as it should: only some_job_request() declares. */
    if (msg.type >= EMU_MSG_JOB_CONFIGURE && msg.type <= EMU_MSG_INJECTION_SET)
        msg.type = EMU_MSG_FAULTS;
    if (msg.type == EMU_MSG_NETWORK)
        msg.network.index |= 1u << 30; /* nothing has such a number */
    if (one_in(20)) {
        msg.type = EMU_MSG_LINKS_READ;
        msg.windows.every_ps = odd_number();
    }
    if (msg.type == EMU_MSG_FAULT_SET || msg.type == EMU_MSG_FAULT_CLEAR)
        msg.fault.domain_id = target->domain_id;
    return msg;
}

/*
 * Changes of the network, mended more often than broken, so that domains are seldom routed because of them. Whatever
 * they break lies far from the honest job: its nodes and their routers (0, 1, 75) are in group 0 of two, routers and
 * nodes 160 .. 191 are not theirs, and a link more or less leaves them ways. Each one stops all traffic for a moment.
 */
static struct emu_msg some_network_request(void)
{
    struct emu_msg msg = { .magic = EMU_MSG_MAGIC,
                           .abi_version = EMU_ABI_VERSION,
                           .sequence = (uint32_t)below(100),
                           .type = EMU_MSG_NETWORK };

    msg.network = (struct emu_msg_network){ .thing = (uint32_t)below(EMU_NETWORK_ALL + 2),
                                            .index = 160 + (uint32_t)below(32),
                                            .lane_mask = (uint32_t)below(8),
                                            .flags = (uint32_t)below(4),
                                            .after_ns = one_in(2) ? 0 : below(20000000) };
    if (one_in(2))
        msg.network = (struct emu_msg_network){ .thing = EMU_NETWORK_ALL, .flags = EMU_NETWORK_REPAIR };
    if (one_in(4))
        msg.network.index = 1u << 30 | (uint32_t)odd_number(); /* nothing has such a number */
    if (one_in(4))
        flip_bits(&msg.network.lane_mask, 16, 1 + (unsigned)below(4));
    return msg;
}

/* Fault rules: what is asked for, bent a little. */
static int some_rules(void)
{
    int fd = memfd_create("faults", MFD_CLOEXEC);

    for (uint64_t n = below(10); fd >= 0 && n > 0; n--) {
        struct emu_fault_rule rule = { .classes = (uint32_t)next_random() & EMU_FAULT_TRANSACTION_BITS,
                                       .action = (uint8_t)(1 + below(EMU_FAULT_ACTIONS)),
                                       .from_nid = EMU_NID_NONE,
                                       .to_nid = EMU_NID_NONE,
                                       .rate_ppb = (uint32_t)below(EMU_FAULT_RATE_ONE) };

        if (rule.action == EMU_FAULT_FAIL)
            rule.status = (uint8_t)below(12);
        if (rule.action == EMU_FAULT_DELAY)
            rule.delay_ns = 1 + below(20000000);
        if (rule.action == EMU_FAULT_REPORT)
            rule.category = (uint8_t)(1u << below(8));
        if (one_in(4))
            rule.classes = EMU_FAULT_BIT(EMU_FAULT_DATAGRAM);
        if (one_in(4))
            flip_bits(&rule, sizeof(rule), 1 + (unsigned)below(4));
        if (write(fd, &rule, sizeof(rule)) < 0)
            break;
    }
    return fd;
}

/* Ranks as a domain wants them, or anything. */
static int some_ranks(void)
{
    int fd = memfd_create("ranks", MFD_CLOEXEC);
    uint32_t nids[64];

    for (unsigned i = 0; i < 64; i++)
        nids[i] = one_in(30) ? (uint32_t)odd_number() : (uint32_t)below(500);
    if (fd >= 0 && write(fd, nids, below(sizeof(nids) + 1)) < 0)
        return fd;
    if (fd >= 0 && one_in(4) && ftruncate(fd, (off_t)below(8u << 20)) < 0)
        return fd;
    return fd;
}

static void ask_as_admin(const struct hostile_target *target, int fd)
{
    for (uint64_t n = below(12); n > 0; n--) {
        struct emu_msg msg = one_in(100) ? some_network_request() :
                             one_in(3)   ? some_job_request(target) :
                                           some_admin_request(target);
        struct emu_fds fds;
        int ranks = one_in(4) ? -1 : msg.type == EMU_MSG_FAULT_SET ? some_rules() : some_ranks();

        if (msg.type == EMU_MSG_SHUTDOWN)
            msg.type = EMU_MSG_STATUS;
        if (emu_msg_send(fd, &msg, &ranks, ranks >= 0) == 0) {
            atomic_fetch_add(&target->counts->admin_messages, 1);
            if (emu_msg_receive(fd, &msg, &fds) == 0) {
                atomic_fetch_add(&target->counts->admin_good, msg.result == 0);
                emu_fds_close(&fds);
            } else {
                n = 1; /* thrown out */
            }
        }
        if (ranks >= 0)
            close(ranks);
    }
}

_Noreturn void hostile_admin(const struct hostile_target *target, uint64_t seed)
{
    choices_begin(seed);
    atomic_fetch_add(&target->counts->workers, 1);
    for (;;) {
        struct emu_session session;
        int fd;

        if (one_in(20)) { /* no hello, and noise */
            uint8_t noise[512];

            fd = emu_socket_connect(target->server, EMU_SOCKET_ADMIN);
            fill_random(noise, sizeof(noise));
            if (fd >= 0)
                send(fd, noise, below(sizeof(noise)), MSG_NOSIGNAL);
            close(fd);
            continue;
        }
        if (emu_session_open(&session, target->server, EMU_SOCKET_ADMIN) < 0)
            _exit(0);
        ask_as_admin(target, session.fd);
        emu_session_close(&session);
    }
}
