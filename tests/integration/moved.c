/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/integration/moved.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "emunic/engine/amo_arithmetic.h"

struct fx fx;
char folder[] = "/tmp/emunic-moved-XXXXXX";
int stall_pipe[2];
int resume_pipe[2];
struct raw member;
struct emu_msg_memory registered;
uint64_t *page;

static struct emu_session admin;

int start(void **state)
{
    (void)state;
    if (!mkdtemp(folder) || chmod(folder, 0755) < 0)
        return -1;
    return 0;
}

int stop(void **state)
{
    (void)state;
    rmdir(folder);
    return 0;
}

int start_limited(const char *limit_ns)
{
    setenv("EMUNIC_MOVER_LIMIT", limit_ns, 1);
    fx_start(&fx, NULL);
    return fx_add_domain(&fx, PTAG, COOKIE, USER, 0, &admin);
}

int start_one(void **state)
{
    (void)state;
    return start_limited(LIMIT_NS);
}

int stop_one(void **state)
{
    (void)state;
    fx_end_domain(&admin);
    return fx_stop(&fx);
}

bool is_left_out(void)
{
    if (geteuid() == 0)
        return false;
    printf("1..0 # SKIP only root can become another user and make setuid programs\n");
    return true;
}

/* ---- other users ---- */

static void become(uid_t uid)
{
    if (setgroups(0, NULL) < 0 || setgid(uid) < 0 || setuid(uid) < 0)
        _exit(99);
    prctl(PR_SET_DUMPABLE, 1); /* setuid took it; an ordinary process of that user has it */
}

int as_user(int (*body)(void))
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fx.admin.fd);
        become(USER);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(body());
    }
    waitpid(child, &status, 0);
    return status;
}

pid_t start_to_stall(int (*as_root)(void), int (*body)(void))
{
    pid_t child;
    char byte;

    assert_int_equal(pipe(stall_pipe), 0);
    assert_int_equal(pipe(resume_pipe), 0);
    child = fork();
    if (child == 0) {
        close(fx.admin.fd);
        if (as_root && as_root() < 0)
            _exit(95);
        become(USER);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(body());
    }
    close(stall_pipe[1]);
    assert_int_equal(read(stall_pipe[0], &byte, 1), 1);
    return child;
}

void end_stall(pid_t child, char how)
{
    int status = -1;

    assert_int_equal(write(resume_pipe[1], &how, 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(stall_pipe[0]);
    close(resume_pipe[0]);
    close(resume_pipe[1]);
}

/* ---- members ---- */

int register_page(struct raw *raw, void *at, struct emu_msg_memory *memory_out)
{
    struct emu_msg msg = { .type = EMU_MSG_MEM_REGISTER,
                           .memory = { .addr = (uint64_t)(uintptr_t)at, .length_bytes = PAGE, .cq = EMU_CQ_NONE } };
    int r = raw_request(raw, &msg);

    *memory_out = msg.memory;
    return r;
}

struct emu_cmd transfer(uint8_t op, const struct raw *to, const struct emu_msg_memory *memory, const void *remote,
                        uint64_t local)
{
    return (struct emu_cmd){ .op = op,
                             .remote_nid = to->attach.nid,
                             .remote_addr = (uint64_t)(uintptr_t)remote,
                             .length_bytes = 8,
                             .remote_base = memory->addr & ~(uint64_t)(PAGE - 1),
                             .mdh = memory->mdh,
                             .generation = memory->generation,
                             .source_cq = EMU_CQ_NONE,
                             .local_addr = local };
}

bool has_hung_up(const struct raw *raw)
{
    struct pollfd p = { .fd = raw->session.fd, .events = POLLIN };

    return poll(&p, 1, 0) > 0 && (p.revents & (POLLIN | POLLHUP)) != 0;
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool await_served(const struct raw *raw)
{
    uint64_t end_ms = now_ms() + PATIENCE;

    while (now_ms() < end_ms) {
        if (atomic_load(&raw->segment->head) == atomic_load(&raw->segment->tail) || has_hung_up(raw))
            return true;
        sched_yield();
    }
    return false;
}

bool await_input(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, PATIENCE) == 1;
}

void *private_page(void)
{
    void *mem = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (mem == MAP_FAILED)
        _exit(98);
    return mem;
}

int copy_program(const char *source, const char *to_path)
{
    char bytes[65536];
    ssize_t n;
    int from = open(source ? source : "", O_RDONLY);
    int to = open(to_path, O_WRONLY | O_CREAT | O_TRUNC, 0755);

    assert_true(from >= 0 && to >= 0);
    while ((n = read(from, bytes, sizeof(bytes))) > 0)
        assert_int_equal(write(to, bytes, (size_t)n), n);
    close(from);
    return to;
}

/* ---- one member, with a page ---- */

int open_member(void)
{
    page = private_page();
    if (raw_open(&member, fx.server, PTAG, COOKIE, 1, EMU_NID_NONE) != 0)
        return 1;
    return register_page(&member, page, &registered);
}

void post(uint8_t op, const uint64_t *remote, uint64_t local)
{
    struct emu_cmd cmd = transfer(op, &member, &registered, remote, local);

    cmd.amo_op = op == EMU_OP_AMO ? EMU_AMO_ADD : 0;
    cmd.amo_flags = op == EMU_OP_AMO ? EMU_AMO_FETCH : 0;
    cmd.operand1 = op == EMU_OP_AMO ? 1 : 0;
    raw_post(&member, &cmd);
}

uint64_t word(unsigned i)
{
    return ((volatile uint64_t *)page)[i];
}

int put_and_look(void)
{
    page[0] = MARK;
    page[1] = FRESH;
    post(EMU_OP_PUT, page + 1, (uint64_t)(uintptr_t)page);
    return await_served(&member) && !has_hung_up(&member) && word(1) == MARK ? 0 : 1;
}

int body_moves_private_memory(void)
{
    FX_CHECK(open_member() == 0);
    FX_CHECK(put_and_look() == 0);
    post(EMU_OP_GET, page + 1, (uint64_t)(uintptr_t)(page + 2));
    FX_CHECK(await_served(&member));
    FX_CHECK(word(2) == MARK);
    post(EMU_OP_AMO, page + 1, (uint64_t)(uintptr_t)(page + 3));
    FX_CHECK(await_served(&member));
    FX_CHECK(word(1) == MARK + 1u);
    FX_CHECK(word(3) == MARK);
    post(EMU_OP_PUT, page, 8); /* nothing is mapped at 8 */
    FX_CHECK(await_served(&member));
    FX_CHECK(!has_hung_up(&member));
    FX_CHECK(word(0) == MARK);
    return 0;
}
