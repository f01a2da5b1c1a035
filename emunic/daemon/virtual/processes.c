/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes in virtual time: the page of their clocks, their doorbell, their place in the model.
 *
 * A rank may be a shell that starts the program. The program then has the place of the rank: its core, its turn, and
 * its lookahead. Of several that a rank has started the first has it, until it ends; the others are processes
 * without a rank.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/watches.h"
#include "emunic/daemon/virtual/inner.h"

#define SPIN_NS     500000000u /* at first */
#define STARTS_MAX  8u         /* between a rank and the program */
#define STARTED_BIT 0x80000000u

static void doorbell_ready(struct emu_server *server, struct emu_watch *watch, uint32_t events)
{
    (void)server;
    (void)watch;
    (void)events; /* edge-triggered: the next round looks */
}

static void fill_page(const struct emu_virtual *v, struct emu_vclock_page *page, const struct emu_node_params *host)
{
    page->magic = EMU_VCLOCK_MAGIC;
    page->abi_version = EMU_ABI_VERSION;
    page->n_clocks = EMU_VCLOCKS;
    page->compute = v->options.compute;
    page->factor_ppm = v->options.factor_ppm;
    page->fixed_ps = v->options.fixed_ps;
    page->epoch_ns = v->options.epoch_ns;
    page->poll_ps = v->options.poll_ps;
    page->server_pid = (uint32_t)getpid();
    page->lookahead_ps = remote_lookahead_ps(v);
    page->put_gap_ps = host->put_gap_ps;
    page->store_kbs = host->store_kbs;
    page->launch_gap_ps = host->launch_gap_ps;
    page->launch_mdh_percent = host->launch_mdh_percent;
    page->message_send_ps = host->send_ps;
    page->message_recv_ps = host->recv_ps;
}

static int make_page(struct emu_virtual *v, struct emu_virtual_process *p, const struct emu_node_params *host)
{
    void *page;

    p->page_fd = memfd_create("emunic-clocks", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (p->page_fd < 0 || ftruncate(p->page_fd, sizeof(*p->page)) < 0 ||
        fcntl(p->page_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -errno;
    page = mmap(NULL, sizeof(*p->page), PROT_READ | PROT_WRITE, MAP_SHARED, p->page_fd, 0);
    if (page == MAP_FAILED)
        return -errno;
    p->page = page;
    fill_page(v, p->page, host);
    p->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return p->doorbell < 0 ? -errno : 0;
}

/* What it has; the rest epoll may still name. */
static void close_process(struct emu_virtual_process *p)
{
    if (p->page) {
        atomic_store(&p->page->is_over, 1);
        munmap(p->page, sizeof(*p->page));
    }
    if (p->page_fd >= 0)
        close(p->page_fd);
    if (p->doorbell >= 0)
        close(p->doorbell);
}

/* Ranks below `below` of the domain that are on the node. */
static uint32_t count_on_node(const struct emu_domain *domain, uint32_t nid, uint32_t below)
{
    uint32_t n = 0;

    for (uint32_t i = 0; domain->rank_nids && i < domain->n_ranks && i < below; i++)
        n += domain->rank_nids[i] == nid;
    return n;
}

/*
 * Processes of one node have cores of their own in the model, as many as it has: in the order of their ranks, because
 * that in which they come is the host's. Those of an older job on the node come before.
 */
static void place_rank(const struct emu_virtual *v, struct emu_virtual_process *p, const struct emu_domain *domain)
{
    uint32_t nid = domain->rank_nids[p->rank];
    uint32_t n_before = count_on_node(domain, nid, p->rank);
    const struct emu_virtual_job *job;

    LIST_FOREACH(job, &v->jobs.all, link) {
        if (job->domain->id < domain->id)
            n_before += count_on_node(job->domain, nid, UINT32_MAX);
    }
    p->proc = n_before % EMU_NIC_PROCS_MAX;
    p->is_alone = count_on_node(domain, nid, UINT32_MAX) == 1;
    p->order = (uint64_t)p->rank << 32 | nid | (p->starter ? STARTED_BIT : 0);
}

/* 0: not known. */
static pid_t parent_of(pid_t pid)
{
    char path[64], text[512];
    const char *behind_name;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    behind_name = strrchr(text, ')'); /* the state follows, then the parent */
    return behind_name && strlen(behind_name) > 4 ? (pid_t)strtol(behind_name + 4, NULL, 10) : 0;
}

/* Has a process that plays the rank's part a clock? */
static bool is_played(const struct emu_virtual *v, const struct emu_domain *domain, uint32_t rank)
{
    const struct emu_virtual_process *p;

    LIST_FOREACH(p, &v->processes, link) {
        if (p->member->domain == domain && p->rank == rank)
            return true;
    }
    return false;
}

static void find_rank(const struct emu_virtual *v, struct emu_virtual_process *p)
{
    struct emu_domain *domain = p->member->domain;
    const struct emu_member *starter;
    pid_t pid = p->member->pid;

    p->rank = p->member->rank;
    for (unsigned i = 0; p->rank == EMU_NID_NONE && i < STARTS_MAX && pid > 1; i++) {
        pid = parent_of(pid);
        starter = pid > 1 ? emu_member_find(domain, pid) : NULL;
        if (!starter || starter->rank == EMU_NID_NONE)
            continue;
        if (is_played(v, domain, starter->rank))
            return;
        p->rank = starter->rank;
        p->starter = pid;
    }
}

static void place(struct emu_virtual *v, struct emu_virtual_process *p)
{
    const struct emu_member *member = p->member;
    const struct emu_virtual_process *other;
    uint32_t n = 0;

    find_rank(v, p);
    p->order = (uint64_t)(p->rank != EMU_NID_NONE ? p->rank : v->n_came) << 32;
    v->n_came++;
    if (p->rank < member->domain->n_ranks && member->domain->rank_nids) {
        place_rank(v, p, member->domain);
        return;
    }
    LIST_FOREACH(other, &v->processes, link)
        n += other->member->domain == member->domain && other->member->node_index == member->node_index;
    p->proc = n % EMU_NIC_PROCS_MAX;
    v->n_rankless++;
}

static int make_process(struct emu_server *server, struct emu_member *member, struct emu_virtual_process **out)
{
    struct emu_virtual *v = virtual_of(server);
    struct emu_virtual_process *p = calloc(1, sizeof(*p));
    int r;

    if (!p)
        return -ENOMEM;
    *p = (struct emu_virtual_process){ .member = member,
                                       .job = member->domain->slots[EMU_DOMAIN_VIRTUAL],
                                       .sum = { .run_ps = NEVER, .look_ps = NEVER, .until_ps = NEVER },
                                       .news_ps = NEVER,
                                       .reach_ps = NEVER,
                                       .page_fd = -1,
                                       .doorbell = -1,
                                       .watch.ready = doorbell_ready };
    r = make_page(v, p, emu_machine_node_params(server->machine));
    if (r == 0)
        r = emu_server_watch(server, p->doorbell, EPOLLIN | EPOLLET, &p->watch);
    if (r < 0) {
        close_process(p);
        free(p);
        return r;
    }
    for (uint32_t i = 0; i < EMU_VCLOCKS; i++)
        p->clocks[i].news_ps = NEVER;
    place(v, p);
    p->spin_ns = SPIN_NS;
    LIST_INSERT_HEAD(&v->processes, p, link);
    member->virtual_process = p;
    *out = p;
    return 0;
}

int emu_virtual_answer_page(struct emu_request *request)
{
    struct emu_member *member = request->port->member;
    struct emu_virtual_process *p = member->virtual_process;
    int r;

    if (!virtual_of(request->port->server))
        return -EOPNOTSUPP;
    if (!p) {
        r = make_process(request->port->server, member, &p);
        if (r < 0)
            return r;
    }
    request->reply_fds[0] = p->page_fd;
    request->reply_fds[1] = p->doorbell;
    request->n_reply_fds = 2;
    return 0;
}

/*
 * How far its clocks have come. The run ends at the latest of all: how far time itself has come then depends on how
 * many polls were requests.
 */
static void note_end(struct emu_virtual *v, const struct emu_virtual_process *p)
{
    for (uint32_t i = 0; i < p->n_used; i++) {
        uint64_t now_ps = atomic_load(&p->page->clocks[i].now_ps);

        if (now_ps != NEVER && now_ps > v->ended.latest_ps)
            v->ended.latest_ps = now_ps;
    }
}

void emu_virtual_end_process(struct emu_server *server, struct emu_member *member)
{
    struct emu_virtual_process *p = member->virtual_process;

    if (!p)
        return;
    note_end(virtual_of(server), p);
    emu_lag_end_process(virtual_of(server), p);
    emu_server_bury(server, p->doorbell, &p->watch);
    LIST_REMOVE(p, link);
    emu_virtual_put_to_sleep(virtual_of(server), p);
    emu_virtual_forget_process(virtual_of(server), p);
    member->virtual_process = NULL;
    close_process(p);
}
