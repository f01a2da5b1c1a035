/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does anybody listen at a peer's address? ofi_rxm does not tell that nobody does any more: it tries again. So with tcp
 * we ask by a connection of our own, which is closed at once.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include "emunic/transport/ofi.h"

void emu_ofi_forget_question(struct ofi_peer *peer)
{
    if (peer->question_fd >= 0)
        close(peer->question_fd);
    peer->question_fd = -1;
    peer->answer = 0;
}

/* Of the kinds of address that tcp has; 0: another. */
static socklen_t length_of(const struct ofi *o)
{
    if (!emu_ofi_is_tcp(o))
        return 0;
    if (o->info->addr_format == FI_SOCKADDR_IN)
        return sizeof(struct sockaddr_in);
    return o->info->addr_format == FI_SOCKADDR_IN6 ? sizeof(struct sockaddr_in6) : 0;
}

void emu_ofi_ask(struct emu_carrier *carrier, uint64_t peer_number, bool is_wanted)
{
    struct ofi_peer *peer = emu_ofi_peer(peer_number);
    socklen_t length = length_of((struct ofi *)carrier);

    emu_ofi_forget_question(peer);
    if (!is_wanted || length == 0)
        return;
    peer->question_fd = socket(peer->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (peer->question_fd < 0 || connect(peer->question_fd, (const struct sockaddr *)&peer->address, length) == 0 ||
        errno == EINPROGRESS)
        return;
    peer->answer = errno == ECONNREFUSED ? -ECONNREFUSED : 0;
    close(peer->question_fd);
    peer->question_fd = -1;
}

int emu_ofi_answer(struct emu_carrier *carrier, uint64_t peer_number)
{
    struct ofi_peer *peer = emu_ofi_peer(peer_number);
    struct pollfd pollfd = { .fd = peer->question_fd, .events = POLLOUT };
    socklen_t length = sizeof(int);
    int answer = peer->answer;
    int error = 0;

    (void)carrier;
    if (peer->question_fd >= 0) {
        if (poll(&pollfd, 1, 0) == 0)
            return -EAGAIN;
        getsockopt(peer->question_fd, SOL_SOCKET, SO_ERROR, &error, &length);
        answer = error == ECONNREFUSED ? -ECONNREFUSED : 0;
    }
    emu_ofi_forget_question(peer);
    return answer;
}
