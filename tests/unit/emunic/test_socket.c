/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets and messages: names, credentials, descriptors that travel with a message, and everything that is no message
 * of ours. After each test the process has as many descriptors open as before.
 */
#include "emunic/base/socket.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int ends[2]; /* a connection: [0] sends, [1] receives and does not block */
static int fds_before;

static int count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static int connect_ends(void **state)
{
    (void)state;
    fds_before = count_fds();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    return fcntl(ends[1], F_SETFL, O_NONBLOCK);
}

static int close_ends(void **state)
{
    (void)state;
    close(ends[0]);
    close(ends[1]);
    return count_fds() == fds_before ? 0 : -1;
}

static struct emu_msg message(void)
{
    struct emu_msg msg = {
        .magic = EMU_MSG_MAGIC, .type = EMU_MSG_WHERE, .abi_version = EMU_ABI_VERSION, .sequence = 9
    };

    for (unsigned i = 0; i < sizeof(msg.bytes); i++)
        msg.bytes[i] = (uint8_t)i;
    return msg;
}

/* Sends any bytes with any number of copies of one descriptor. */
static void send_raw(const void *data, size_t len_bytes, unsigned n_fds)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * 64)];
    } ancillary = { 0 };
    struct iovec part = { (void *)(uintptr_t)data, len_bytes };
    struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
    int fd = memfd_create("payload", MFD_CLOEXEC);

    assert_true(fd >= 0);
    if (n_fds > 0) {
        header.msg_control = ancillary.bytes;
        header.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
        ancillary.header.cmsg_level = SOL_SOCKET;
        ancillary.header.cmsg_type = SCM_RIGHTS;
        ancillary.header.cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
        for (unsigned i = 0; i < n_fds; i++)
            memcpy(CMSG_DATA(&ancillary.header) + i * sizeof(int), &fd, sizeof(int));
    }
    assert_int_equal(sendmsg(ends[0], &header, MSG_NOSIGNAL), (ssize_t)len_bytes);
    close(fd);
}

/* ---- names ---- */

static void test_server_names_are_short_and_plain(void **state)
{
    char longest[EMU_SERVER_NAME_MAX + 2];

    (void)state;
    assert_true(emu_server_name_is_valid("a"));
    assert_true(emu_server_name_is_valid("user-1000"));
    assert_true(emu_server_name_is_valid("A.b_c-9"));
    assert_false(emu_server_name_is_valid(""));
    assert_false(emu_server_name_is_valid("a/b"));
    assert_false(emu_server_name_is_valid("a b"));
    assert_false(emu_server_name_is_valid("a\n"));
    assert_false(emu_server_name_is_valid("\xc3\xa4"));
    memset(longest, 'x', sizeof(longest));
    longest[EMU_SERVER_NAME_MAX] = '\0';
    assert_true(emu_server_name_is_valid(longest));
    longest[EMU_SERVER_NAME_MAX] = 'x';
    longest[EMU_SERVER_NAME_MAX + 1] = '\0';
    assert_false(emu_server_name_is_valid(longest));
}

static void own_name(char *name, size_t len)
{
    snprintf(name, len, "unit-socket-%d", (int)getpid());
}

static void test_wrong_name_is_an_invalid_argument(void **state)
{
    (void)state;
    assert_int_equal(emu_socket_listen("a/b", EMU_SOCKET_CONTROL), -EINVAL);
    assert_int_equal(emu_socket_connect("", EMU_SOCKET_ADMIN), -EINVAL);
}

static void test_name_is_taken_until_its_listener_closes(void **state)
{
    char name[64];
    int fd;
    int again;

    (void)state;
    own_name(name, sizeof(name));
    assert_int_equal(emu_socket_connect(name, EMU_SOCKET_CONTROL), -ECONNREFUSED);
    fd = emu_socket_listen(name, EMU_SOCKET_CONTROL);
    assert_true(fd >= 0);
    assert_int_equal(emu_socket_listen(name, EMU_SOCKET_CONTROL), -EADDRINUSE);
    again = emu_socket_listen(name, EMU_SOCKET_ADMIN); /* the other socket has a name of its own */
    assert_true(again >= 0);
    close(again);
    assert_int_equal(emu_socket_connect(name, EMU_SOCKET_ADMIN), -ECONNREFUSED);
    close(fd);
    fd = emu_socket_listen(name, EMU_SOCKET_CONTROL);
    assert_true(fd >= 0);
    close(fd);
}

static void test_listener_and_connection_are_of_the_promised_kind(void **state)
{
    char name[64];
    struct ucred peer;
    int listener;
    int fd;

    (void)state;
    own_name(name, sizeof(name));
    listener = emu_socket_listen(name, EMU_SOCKET_CONTROL);
    assert_true(listener >= 0);
    assert_true(fcntl(listener, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(listener, F_GETFD) & FD_CLOEXEC);
    fd = emu_socket_connect(name, EMU_SOCKET_CONTROL);
    assert_true(fd >= 0);
    assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(emu_socket_peer(fd, &peer), 0);
    assert_int_equal(peer.pid, getpid());
    assert_int_equal(peer.uid, geteuid());
    close(fd);
    close(listener);
}

static void test_credentials_of_what_is_no_socket_are_an_error(void **state)
{
    struct ucred peer = { .pid = 77 };

    (void)state;
    assert_true(emu_socket_peer(-1, &peer) < 0);
    assert_true(emu_socket_peer(STDOUT_FILENO, &peer) < 0);
    assert_int_equal(peer.pid, 77);
}

/* ---- messages ---- */

static void test_message_arrives_as_it_was_sent(void **state)
{
    struct emu_msg sent = message();
    struct emu_msg got;
    struct emu_fds fds = { .n_fds = 3 };

    (void)state;
    assert_int_equal(emu_msg_send(ends[0], &sent, NULL, 0), 0);
    assert_int_equal(emu_msg_receive(ends[1], &got, &fds), 0);
    assert_memory_equal(&got, &sent, sizeof(sent));
    assert_int_equal(fds.n_fds, 0);
}

static void test_messages_keep_their_order_and_borders(void **state)
{
    struct emu_msg msg = message();

    (void)state;
    for (msg.sequence = 1; msg.sequence <= 20; msg.sequence++)
        assert_int_equal(emu_msg_send(ends[0], &msg, NULL, 0), 0);
    for (uint32_t i = 1; i <= 20; i++) {
        assert_int_equal(emu_msg_receive(ends[1], &msg, NULL), 0);
        assert_int_equal(msg.sequence, i);
    }
    assert_int_equal(emu_msg_receive(ends[1], &msg, NULL), -EAGAIN);
}

static void test_descriptors_arrive_open_and_close_on_exec(void **state)
{
    struct emu_msg msg = message();
    int fd = memfd_create("payload", MFD_CLOEXEC);
    int all[EMU_MSG_FDS_MAX] = { fd, fd, fd, fd };
    struct emu_fds fds;
    char back[5] = { 0 };

    (void)state;
    assert_int_equal(pwrite(fd, "hello", 5, 0), 5);
    assert_int_equal(emu_msg_send(ends[0], &msg, all, EMU_MSG_FDS_MAX), 0);
    close(fd);
    assert_int_equal(emu_msg_receive(ends[1], &msg, &fds), 0);
    assert_int_equal(fds.n_fds, EMU_MSG_FDS_MAX);
    for (unsigned i = 0; i < EMU_MSG_FDS_MAX; i++) {
        assert_true(fcntl(fds.fd[i], F_GETFD) & FD_CLOEXEC);
        assert_int_equal(pread(fds.fd[i], back, 5, 0), 5);
        assert_memory_equal(back, "hello", 5);
    }
    emu_fds_close(&fds);
    assert_int_equal(fds.n_fds, 0);
}

static void test_taken_descriptor_is_not_closed_with_the_rest(void **state)
{
    struct emu_msg msg = message();
    int both[2] = { ends[0], ends[0] };
    struct emu_fds fds;
    int taken;

    (void)state;
    assert_int_equal(emu_msg_send(ends[0], &msg, both, 2), 0);
    assert_int_equal(emu_msg_receive(ends[1], &msg, &fds), 0);
    taken = fds.fd[0];
    fds.fd[0] = -1;
    emu_fds_close(&fds);
    assert_true(fcntl(taken, F_GETFD) >= 0);
    close(taken);
}

static void test_descriptors_that_nobody_wants_are_closed(void **state)
{
    struct emu_msg msg = message();

    (void)state;
    send_raw(&msg, sizeof(msg), 3);
    assert_int_equal(emu_msg_receive(ends[1], &msg, NULL), 0);
    assert_int_equal(count_fds(), fds_before + 2);
}

static void test_more_descriptors_than_fit_leak_none(void **state)
{
    struct emu_msg msg = message();
    struct emu_fds fds;

    (void)state;
    send_raw(&msg, sizeof(msg), 40);
    assert_int_equal(emu_msg_receive(ends[1], &msg, &fds), 0);
    assert_in_range(fds.n_fds, 0, EMU_MSG_FDS_MAX);
    emu_fds_close(&fds);
    assert_int_equal(count_fds(), fds_before + 2);
}

static void test_too_many_descriptors_are_not_sent(void **state)
{
    struct emu_msg msg = message();
    int all[EMU_MSG_FDS_MAX + 1] = { 0 };

    (void)state;
    assert_int_equal(emu_msg_send(ends[0], &msg, all, EMU_MSG_FDS_MAX + 1), -EINVAL);
    assert_int_equal(emu_msg_receive(ends[1], &msg, NULL), -EAGAIN);
}

static void test_wrong_size_is_not_our_protocol(void **state)
{
    static const size_t sizes[] = { 1, 15, 16, sizeof(struct emu_msg) - 1, sizeof(struct emu_msg) + 1, 4096 };
    uint8_t bytes[4096] = { 0 };
    struct emu_msg msg = message();
    struct emu_fds fds = { .n_fds = 0 };

    (void)state;
    memcpy(bytes, &msg, sizeof(msg));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        send_raw(bytes, sizes[i], 2);
        assert_int_equal(emu_msg_receive(ends[1], &msg, &fds), -EPROTO);
        assert_int_equal(fds.n_fds, 0);
        assert_int_equal(count_fds(), fds_before + 2); /* what came with it is closed */
    }
}

static void test_wrong_magic_is_not_our_protocol(void **state)
{
    struct emu_msg msg = message();
    struct emu_fds fds = { .n_fds = 0 };

    (void)state;
    msg.magic ^= 1;
    send_raw(&msg, sizeof(msg), 2);
    assert_int_equal(emu_msg_receive(ends[1], &msg, &fds), -EPROTO);
    assert_int_equal(fds.n_fds, 0);
}

static void test_end_of_the_connection_is_told_apart(void **state)
{
    struct emu_msg msg = message();

    (void)state;
    assert_int_equal(emu_msg_receive(ends[1], &msg, NULL), -EAGAIN);
    emu_msg_send(ends[0], &msg, NULL, 0);
    shutdown(ends[0], SHUT_RDWR);
    assert_int_equal(emu_msg_receive(ends[1], &msg, NULL), 0); /* what was sent before still comes */
    assert_int_equal(emu_msg_receive(ends[1], &msg, NULL), -ECONNRESET);
    assert_int_equal(emu_msg_send(ends[1], &msg, NULL, 0), -EPIPE); /* and no SIGPIPE */
}

static void test_full_connection_does_not_block_its_sender(void **state)
{
    struct emu_msg msg = message();
    int r = 0;

    (void)state;
    for (unsigned i = 0; i < 1000000 && r == 0; i++)
        r = emu_msg_send(ends[1], &msg, NULL, 0); /* nobody reads */
    assert_int_equal(r, -EAGAIN);
}

#define UNIT(name)      cmocka_unit_test(name)
#define CONNECTED(name) cmocka_unit_test_setup_teardown(name, connect_ends, close_ends)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_server_names_are_short_and_plain),
        UNIT(test_wrong_name_is_an_invalid_argument),
        UNIT(test_name_is_taken_until_its_listener_closes),
        UNIT(test_listener_and_connection_are_of_the_promised_kind),
        UNIT(test_credentials_of_what_is_no_socket_are_an_error),
        CONNECTED(test_message_arrives_as_it_was_sent),
        CONNECTED(test_messages_keep_their_order_and_borders),
        CONNECTED(test_descriptors_arrive_open_and_close_on_exec),
        CONNECTED(test_taken_descriptor_is_not_closed_with_the_rest),
        CONNECTED(test_descriptors_that_nobody_wants_are_closed),
        CONNECTED(test_more_descriptors_than_fit_leak_none),
        CONNECTED(test_too_many_descriptors_are_not_sent),
        CONNECTED(test_wrong_size_is_not_our_protocol),
        CONNECTED(test_wrong_magic_is_not_our_protocol),
        CONNECTED(test_end_of_the_connection_is_told_apart),
        CONNECTED(test_full_connection_does_not_block_its_sender),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
