/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests on the admin socket: domains that begin and end, faults, the network, limits, reports.
 *
 * An input is a list of requests: kind, how many bytes of its body are given, those bytes; then perhaps a descriptor of
 * a file with bytes of the input. Every 16th request is sent as the bytes are. A domain ends with its connection; fault
 * rules are cleared at the end; what is broken of the network stays so for later inputs.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emunic/abi/control.h"
#include "emunic/abi/fault.h"
#include "tests/fuzz/targets/server.h"
#include "tests/fuzz/targets/target.h"

#define REQUESTS_MAX 16u
#define FILE_MAX     2048u

static void send_raw(struct fuzz_client *client, struct fuzz_bytes *in)
{
    uint8_t bytes[300];
    size_t n = fuzz_u16(in) % sizeof(bytes);

    fuzz_take(in, bytes, n);
    (void)!send(client->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    fuzz_server_turn();
}

/* The rest of a request of that kind lies in a file: nodes of ranks, rules of faults. */
static int make_file(struct fuzz_bytes *in)
{
    static uint8_t bytes[FILE_MAX];
    size_t n = fuzz_u16(in) % sizeof(bytes);
    int fd = memfd_create("admin", MFD_ALLOW_SEALING);

    fuzz_take(in, bytes, n);
    fuzz_require(fd >= 0 && pwrite(fd, bytes, n, 0) == (ssize_t)n, "a file is written");
    return fd;
}

/* Small numbers, so that some are good; the end of emunic is no finding. */
static void aim(struct emu_msg *msg, uint8_t how)
{
    if (msg->type == EMU_MSG_SHUTDOWN)
        msg->type = EMU_MSG_STATUS;
    if (msg->type == EMU_MSG_DOMAIN_CREATE && (how & 0x10)) {
        msg->domain.ptag %= 256;
        msg->domain.n_ranks %= 8;
        msg->domain.flags &= 1;
        msg->domain.owner_uid = geteuid();
    }
    /* This process is the only one: no signal is for it. */
    if (msg->type == EMU_MSG_DOMAIN_END)
        msg->domain.signal = 0;
}

static void ask(struct fuzz_client *client, struct fuzz_bytes *in)
{
    struct emu_msg msg = { .magic = EMU_MSG_MAGIC, .abi_version = EMU_ABI_VERSION };
    uint8_t how = fuzz_u8(in);
    struct emu_fds fds;
    int fd = -1;

    if (how % 16 == 15) {
        send_raw(client, in);
        return;
    }
    msg.type = (uint16_t)((how & 0x80 ? 0 : EMU_MSG_DOMAIN_CREATE) +
                          fuzz_u8(in) % (EMU_MSG_TYPES - EMU_MSG_DOMAIN_CREATE + 2));
    fuzz_take(in, msg.bytes, fuzz_u8(in) % (sizeof(msg.bytes) + 1));
    aim(&msg, how);
    if (how & 0x40)
        fd = make_file(in);
    if (fuzz_client_ask(client, &msg, &fd, fd >= 0, &fds)) {
        fuzz_count(msg.result >= 0);
        emu_fds_close(&fds);
    }
    if (fd >= 0)
        close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes in = { data, size };
    struct emu_msg clear = { .magic = EMU_MSG_MAGIC,
                             .abi_version = EMU_ABI_VERSION,
                             .type = EMU_MSG_FAULT_CLEAR,
                             .fault = { .domain_id = EMU_FAULT_ALL_DOMAINS } };
    struct fuzz_client client;

    fuzz_client_open_admin(&client);
    for (unsigned i = 0; i < REQUESTS_MAX && in.left > 0; i++)
        ask(&client, &in);
    fuzz_client_close(&client);
    fuzz_client_open_admin(&client);
    (void)fuzz_client_ask(&client, &clear, NULL, 0, NULL);
    fuzz_client_close(&client);
    return 0;
}
