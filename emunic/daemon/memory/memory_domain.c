/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory domains: registrations of the ports, and the space files of processes.
 *
 * A handle number (MDH) belongs to a node and is never in use by two domains of it at one time. Numbers and generations
 * are handed out in a circle, so that a stale handle keeps failing for as long as possible. While several domains share
 * a node, the last quarter of its numbers is for domains that have few: nobody can take them all.
 *
 * When a domain may have no more numbers, registrations that do not ask for a dedicated one share those that it has, up
 * to EMU_MDH_SHARERS each. They never share with one whose memory begins in the same page, because a rebuilt handle has
 * only number and page to tell them apart. Limits and accounts are about numbers.
 *
 * Registration fills the table entry and then sets its state (release); deregistration clears the state first. emunic
 * is the only one that moves data on the routed path, and it does one thing at a time: when the reply to a
 * deregistration is sent, no transfer is touching the memory, and none will (datapath.c looks again before each slice).
 *
 * Virtual handles: a domain may reserve a block of handles on a node. A registration in the block has an ordinary
 * handle, and the block's entry of its index leads there, so that all nodes can use the same index. What is promised to
 * blocks is not handed out otherwise. A block goes with the domain's last port on the node.
 *
 * Reserved regions have their handle at once and become live with their first update. Segmented regions are
 * reached through a list of their segments, which emunic alone has: such commands never take the direct path.
 *
 * A process's space file is a sparse memfd, sealed against any change of size, in which a page's offset is its address
 * in the process. The client maps it over memory that it allocates or adopts; a registration that lies in such memory
 * uses the map method, through windows that are mapped here when first needed. Memory that the program itself has
 * mapped shared is reached alike, through files of its own (file.c).
 */
#include "emunic/daemon/memory/memory_domain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emunic/abi/abi.h"
#include "emunic/abi/event.h"
#include "emunic/daemon/commands/visit.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/quiesce.h"
#include "emunic/daemon/core/status_row.h"
#include "emunic/daemon/errors/error_stream.h"
#include "emunic/daemon/faults/fault_rules.h"
#include "emunic/daemon/memory/page_watch.h"
#include "emunic/daemon/movers/movers.h"
#include "emunic/daemon/msgq/msgq_members.h"
#include "emunic/daemon/world/accounts.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/file.h"
#include "emunic/daemon/world/node.h"
#include "emunic/daemon/world/shared_pages.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/reach.h"
#include "emunic/daemon/world/users.h"
#include "emunic/engine/amo_cache.h"
#include "emunic/engine/memory_segments.h"

#define ADDRESS_END (1ull << 47) /* user addresses; 49 bits fit a handle */

static void take_number(struct emu_node *node, uint32_t mdh, uint32_t turn, uint16_t *number_out)
{
    uint32_t number = turn * EMU_MDH_COUNT + mdh;

    node->mdhs[mdh].turns |= (uint8_t)(1u << turn);
    node->generation[number] = (uint16_t)(node->generation[number] % EMU_MD_GENERATION_MAX + 1);
    *number_out = (uint16_t)number;
}

static int take_free(struct emu_port_end *port, struct emu_node *node, bool is_dedicated, uint16_t *number_out)
{
    for (uint32_t i = 0; i < EMU_MDH_COUNT; i++) {
        uint32_t mdh = (node->next + i) % EMU_MDH_COUNT;

        if (node->mdhs[mdh].turns != 0)
            continue;
        node->mdhs[mdh] = (struct emu_mdh){ .is_dedicated = is_dedicated, .domain_id = port->domain->id };
        take_number(node, mdh, 0, number_out);
        node->next = (uint16_t)((mdh + 1) % EMU_MDH_COUNT);
        node->n_used++;
        port->domain->budget.n_handles[port->node_index]++;
        return 0;
    }
    return -ENOSPC;
}

/* Does memory that has the number begin in that page? */
static bool begins_there(const struct emu_port_end *port, const struct emu_mdh *one, uint32_t mdh, uint64_t page)
{
    const struct emu_table_md *entries = emu_table_mds(port->domain->table, port->node_index);

    for (uint32_t turn = 0; turn < EMU_MDH_SHARERS; turn++) {
        if ((one->turns >> turn & 1) != 0 && emu_page_down(entries[turn * EMU_MDH_COUNT + mdh].base) == page)
            return true;
    }
    return false;
}

/* A number that the domain has already. page: where the memory begins. */
static int take_shared(struct emu_port_end *port, struct emu_node *node, uint64_t page, uint16_t *number_out)
{
    for (uint32_t i = 0; i < EMU_MDH_COUNT; i++) {
        uint32_t mdh = (node->next_shared + i) % EMU_MDH_COUNT;
        const struct emu_mdh *one = &node->mdhs[mdh];

        if (one->turns == 0 || one->turns == (1u << EMU_MDH_SHARERS) - 1 || one->is_dedicated ||
            one->domain_id != port->domain->id || begins_there(port, one, mdh, page))
            continue;
        take_number(node, mdh, (uint32_t)__builtin_ctz(~(unsigned)one->turns), number_out);
        node->next_shared = (uint16_t)((mdh + 1) % EMU_MDH_COUNT);
        return 0;
    }
    return -ENOSPC;
}

static void give_number(struct emu_node *node, struct emu_domain *domain, uint32_t node_index, uint16_t number)
{
    struct emu_mdh *one = &node->mdhs[number % EMU_MDH_COUNT];

    one->turns &= (uint8_t) ~(1u << number / EMU_MDH_COUNT);
    if (one->turns != 0)
        return;
    node->n_used--;
    domain->budget.n_handles[node_index]--;
}

static bool is_shared(const struct emu_server *server, const struct emu_domain *domain, uint32_t nid)
{
    const struct emu_domain *other;

    LIST_FOREACH(other, &server->domains, link) {
        if (other != domain && other->table && emu_domain_node_of(other, nid) != EMU_NID_NONE)
            return true;
    }
    return false;
}

/* For an ordinary handle; those of a block were promised. */
static bool may_take_free(const struct emu_port_end *port, const struct emu_node *node)
{
    if (node->n_used + node->n_promised >= EMU_MDH_COUNT - 1)
        return false;
    return node->n_used < EMU_MDH_COUNT / 4 * 3 ||
           port->domain->budget.n_handles[port->node_index] < EMU_MDH_COUNT / 4 ||
           !is_shared(port->server, port->domain, port->nid);
}

static void set_queue(struct emu_table_md *entry, const struct emu_port_end *port, uint32_t cq)
{
    entry->cq = cq;
    if (cq == EMU_CQ_NONE)
        return;
    entry->cq_line = (uint32_t)(port->queues.cqs[cq].offset / EMU_CACHE_LINE);
    entry->cq_ring_entries = (uint32_t)port->queues.cqs[cq].producer.ring_entries;
    entry->cq_capacity = (uint32_t)port->queues.cqs[cq].producer.capacity;
    entry->cq_flags = port->queues.cqs[cq].flags | (uint32_t)port->queues.cqs[cq].serial << EMU_CQ_SERIAL_SHIFT;
}

static void set_method(struct emu_table_md *entry, struct emu_port_end *port, const struct emu_msg_memory *memory,
                       const struct emu_file *file, struct emu_md_end *md)
{
    entry->file = file ? emu_file_number(file) : 0;
    entry->file_offset = file ? memory->file_offset : 0;
    if (file)
        entry->method = EMU_MEMORY_FILE;
    else /* A client that says so wrongly only makes its own memory unreachable. */
        entry->method =
            (memory->flags & EMU_MD_MAPPED) && (memory->flags & EMU_MD_SEGMENTED) == 0 &&
                    emu_pages_promise(port->server, port->member, memory->addr, memory->length_bytes, &md->n_promised) ?
                EMU_MEMORY_MAP :
                EMU_MEMORY_CMA;
}

/* ---- segments ---- */

static int answer_segments(struct emu_request *request)
{
    const struct emu_msg_segments *segments = &request->msg->segments;
    struct emu_port_end *port = request->port;
    struct emu_msg_segments *more;
    uint32_t number;

    if (segments->first == 0)
        port->memory.n_pending = 0;
    if (segments->first != port->memory.n_pending || segments->n == 0 || segments->n > EMU_SEGMENTS_PER_MSG ||
        segments->n > EMU_SEGMENTS_MAX - port->memory.n_pending)
        return -EINVAL;
    /* Messages are kept as they come: all but the last are full. */
    if (port->memory.n_pending % EMU_SEGMENTS_PER_MSG != 0)
        return -EINVAL;
    number = port->memory.n_pending / EMU_SEGMENTS_PER_MSG;
    if (number >= port->memory.pending_max) {
        more = realloc(port->memory.pending, (number + 1) * sizeof(*more));
        if (!more)
            return -ENOMEM;
        port->memory.pending = more;
        port->memory.pending_max = number + 1;
    }
    port->memory.pending[number] = *segments;
    port->memory.n_pending += segments->n;
    return 0;
}

static struct emu_memory memory_of_part(const struct emu_port_end *port, bool is_mapped, uint64_t first,
                                        uint64_t len_bytes, uint64_t *n_promised)
{
    struct emu_member *member = port->member;
    const struct emu_window *window = NULL;
    struct emu_memory memory;

    if (is_mapped && emu_pages_promise(port->server, member, first, len_bytes, n_promised))
        window = emu_windows_get(&member->windows, member->space_fd, first, len_bytes);
    if (!window)
        return port->view.local;
    memory = emu_memory_map(window->base, window->owner_addr, window->len_bytes);
    return port->memory.amo_cache ? emu_memory_cached(port->memory.amo_cache, &memory, member->pid) : memory;
}

/* The list of the segments that were announced, each rounded out to pages. -EINVAL: one that cannot be. */
static int make_list(struct emu_port_end *port, bool is_mapped, struct emu_md_end *md)
{
    struct emu_segment_list *list;

    if (port->memory.n_pending == 0)
        return -EINVAL;
    list = calloc(1, sizeof(*list) + port->memory.n_pending * sizeof(list->parts[0]));
    if (!list)
        return -ENOMEM;
    for (uint32_t i = 0; i < port->memory.n_pending; i++) {
        const struct emu_msg_segments *message = &port->memory.pending[i / EMU_SEGMENTS_PER_MSG];
        uint64_t addr = message->segments[i % EMU_SEGMENTS_PER_MSG].addr;
        uint64_t len_bytes = message->segments[i % EMU_SEGMENTS_PER_MSG].length_bytes;
        uint64_t first = emu_page_down(addr);

        if (len_bytes == 0 || addr >= ADDRESS_END || len_bytes > ADDRESS_END - addr) {
            free(list);
            return -EINVAL;
        }
        len_bytes = emu_page_up(addr + len_bytes) - first;
        list->parts[i] =
            (struct emu_segment_part){ .offset = list->total_bytes, .addr = first, .len_bytes = len_bytes };
        list->total_bytes += len_bytes;
        if (list->total_bytes >= ADDRESS_END) {
            free(list);
            return -EINVAL;
        }
    }
    list->n = port->memory.n_pending;
    for (uint32_t i = 0; i < list->n; i++)
        list->parts[i].memory =
            memory_of_part(port, is_mapped, list->parts[i].addr, list->parts[i].len_bytes, &md->n_promised);
    port->memory.n_pending = 0;
    md->segments = list;
    return 0;
}

static int keep_list(struct emu_port_end *port, uint16_t mdh, struct emu_segment_list *list)
{
    struct emu_segment_list ***row = &port->domain->memory.segments[port->node_index];

    if (!*row)
        *row = calloc(EMU_MD_COUNT, sizeof(**row));
    if (!*row)
        return -ENOMEM;
    (*row)[mdh] = list;
    return 0;
}

/* ---- virtual handles ---- */

static int answer_reserve(struct emu_request *request)
{
    struct emu_port_end *port = request->port;
    uint32_t n = request->msg->memory.vmdh;
    struct emu_account *account = &port->domain->budget.accounts[port->node_index];
    struct emu_node *node = emu_node_of(port->server, port->nid);
    uint32_t held = port->domain->budget.n_handles[port->node_index] + account->vmdh_size - account->vmdh_used;
    uint32_t more;

    if (n == 0 || n >= EMU_MDH_COUNT)
        return -EINVAL;
    if (!node)
        return -ENOMEM;
    /* The block is the job's on this node: whoever asks for less shares it, whoever asks for more makes it grow. */
    more = n > account->vmdh_size ? n - account->vmdh_size : 0;
    if (more > EMU_MDH_COUNT - 1 - node->n_used - node->n_promised || held + more > port->domain->budget.limits.mdd)
        return -ENOMEM;
    node->n_promised += more;
    account->vmdh_size += more;
    port->memory.may_use_vmdh = true;
    return 0;
}

/* Index in the block: the one that is wanted, or the first free one. */
static int choose_virtual(const struct emu_port_end *port, uint32_t wanted, uint16_t *index_out)
{
    const struct emu_account *account = &port->domain->budget.accounts[port->node_index];
    const _Atomic uint16_t *block = emu_table_vmdhs(port->domain->table, port->node_index);

    if (!port->memory.may_use_vmdh || (wanted != EMU_VMDH_ANY && wanted >= account->vmdh_size))
        return -EINVAL;
    for (uint32_t i = 0; i < account->vmdh_size; i++) {
        if ((wanted == EMU_VMDH_ANY || wanted == i) && atomic_load_explicit(&block[i], memory_order_relaxed) == 0) {
            *index_out = (uint16_t)i;
            return 0;
        }
    }
    return -ENOSPC;
}

/* ---- registration ---- */

static int check_request(const struct emu_port_end *port, const struct emu_msg_memory *memory)
{
    const uint32_t known = EMU_MD_READ_ONLY | EMU_MD_VMDH | EMU_MD_MAPPED | EMU_MD_FILE | EMU_MD_RESERVED |
                           EMU_MD_SEGMENTED | EMU_MD_DEDICATED | EMU_MD_GART | EMU_MD_PARKS;

    if ((memory->flags & ~known) != 0 ||
        (memory->flags & (EMU_MD_RESERVED | EMU_MD_SEGMENTED)) == (EMU_MD_RESERVED | EMU_MD_SEGMENTED))
        return -EINVAL;
    if ((memory->flags & EMU_MD_FILE) && (memory->flags & (EMU_MD_RESERVED | EMU_MD_SEGMENTED)))
        return -EINVAL;
    if ((memory->flags & EMU_MD_PARKS) && ((memory->flags & EMU_MD_VMDH) || memory->vmdh >= EMU_PARKS))
        return -EINVAL;
    if ((memory->flags & EMU_MD_SEGMENTED) == 0 &&
        (memory->length_bytes == 0 || memory->addr >= ADDRESS_END || memory->length_bytes > ADDRESS_END - memory->addr))
        return -EINVAL;
    if (memory->cq != EMU_CQ_NONE && (memory->cq >= EMU_CQS_MAX || !port->queues.cqs[memory->cq].in_use))
        return -EINVAL;
    return 0;
}

/* One of its own while the domain may have more of them; else a shared one, if that will do. */
static int choose_number(struct emu_port_end *port, struct emu_node *node, const struct emu_msg_memory *memory,
                         uint16_t *number_out)
{
    bool is_virtual = (memory->flags & EMU_MD_VMDH) != 0;
    bool is_dedicated = is_virtual || (memory->flags & EMU_MD_DEDICATED) != 0;
    uint64_t page = (memory->flags & EMU_MD_SEGMENTED) ? 0 : emu_page_down(memory->addr);

    if (is_virtual || (emu_account_may_add_mdd(port) && may_take_free(port, node)))
        return take_free(port, node, is_dedicated, number_out);
    return is_dedicated ? -ENOSPC : take_shared(port, node, page, number_out);
}

/*
 * May its owner take the memory away and give it back without us? Not where others than members of this host reach it
 * (movers, other hosts), nor where what is parked would count: parked memory holds its number and its translation.
 */
static bool may_park(const struct emu_port_end *port, const struct emu_msg_memory *memory)
{
    const struct emu_domain *domain = port->domain;
    const struct emu_node *node = port->server->nodes[port->nid];

    return (memory->flags & EMU_MD_PARKS) != 0 &&
           (memory->flags & (EMU_MD_FILE | EMU_MD_RESERVED | EMU_MD_SEGMENTED)) == 0 &&
           (atomic_load(&domain->table->flags) & (EMU_TABLE_NOT_DIRECT | EMU_TABLE_VIRTUAL)) == 0 &&
           !domain->memory.is_moved && !emu_hosts_are_several(port->server) &&
           emu_limits_are_open(&domain->budget.limits) && node->n_used < EMU_MDH_COUNT / 2 &&
           emu_machine_nic(port->server->machine)->device != EMU_DEVICE_GEMINI;
}

/* Units that [addr, addr + len) touches. */
static uint64_t units_of(uint64_t addr, uint64_t len_bytes, uint64_t unit_bytes)
{
    return (addr + len_bytes - 1) / unit_bytes - addr / unit_bytes + 1;
}

static struct emu_translation translation_of(const struct emu_msg_memory *memory, const struct emu_segment_list *list)
{
    bool is_gart = (memory->flags & EMU_MD_GART) != 0;
    uint64_t unit_bytes = is_gart ? EMU_PAGE_BYTES : EMU_MRT_BLOCK_BYTES;
    struct emu_translation t = { 0 };
    uint64_t n = 0;

    if (list) {
        t.iommu_bytes = list->total_bytes;
        for (uint32_t i = 0; i < list->n; i++)
            n += units_of(list->parts[i].addr, list->parts[i].len_bytes, unit_bytes);
    } else {
        t.iommu_bytes = emu_page_up(memory->addr + memory->length_bytes) - emu_page_down(memory->addr);
        n = units_of(memory->addr, memory->length_bytes, unit_bytes);
    }
    *(is_gart ? &t.gart : &t.mrt) = n;
    return t;
}

/* Number, virtual number and list of a new memory domain. On failure nothing was taken. */
static int take_what_it_needs(struct emu_port_end *port, const struct emu_msg_memory *memory, struct emu_md_end *md)
{
    bool is_virtual = (memory->flags & EMU_MD_VMDH) != 0;
    struct emu_node *node = emu_node_of(port->server, port->nid);
    int r;

    if (!node)
        return -ENOMEM;
    if (is_virtual) {
        r = choose_virtual(port, memory->vmdh, &md->vmdh);
        if (r < 0)
            return r;
    }
    if (memory->flags & EMU_MD_SEGMENTED) {
        r = make_list(port, (memory->flags & EMU_MD_MAPPED) != 0, md);
        if (r < 0)
            return r;
    }
    md->translation = translation_of(memory, md->segments);
    r = emu_account_may_add_translation(port, &md->translation);
    if (r == 0)
        r = choose_number(port, node, memory, &md->mdh);
    if (r == 0 && md->segments) {
        r = keep_list(port, md->mdh, md->segments);
        if (r < 0)
            give_number(node, port->domain, port->node_index, md->mdh);
    }
    if (r < 0)
        free(md->segments);
    return r;
}

/* The same, its file and its place among its user's. */
static int take_all(struct emu_port_end *port, const struct emu_request *request, struct emu_md_end *md,
                    struct emu_file **file_out)
{
    const struct emu_msg_memory *memory = &request->msg->memory;
    struct emu_file *file = NULL;
    int r;

    emu_pages_count(port->member);
    r = emu_user_take(port->server, port->member->user, EMU_USER_PAGES, 0);
    if (r == 0)
        r = emu_user_take(port->server, port->member->user, EMU_USER_REGISTRATIONS, 1);
    if (r < 0)
        return r;
    /* Looking at the mappings of the process tells of them: they have to be those of the user who asks. */
    if (memory->flags & EMU_MD_FILE)
        r = emu_movers_check(port);
    if (r == 0 && (memory->flags & EMU_MD_FILE))
        r = emu_file_get(port->member, memory, request->fds, &file);
    if (r == 0)
        r = take_what_it_needs(port, memory, md);
    if (r < 0) {
        emu_file_put(file);
        port->member->user->n_promised -= md->n_promised;
        emu_user_give(port->member->user, EMU_USER_REGISTRATIONS, 1);
        return r;
    }
    *file_out = file;
    return 0;
}

/* The client does not move pages of such memory. */
static void count_private(const struct emu_port_end *port, const struct emu_table_md *entry, uint32_t n)
{
    if ((entry->flags & (EMU_MD_MAPPED | EMU_MD_READ_ONLY)) == 0)
        atomic_fetch_add_explicit(&emu_table_ports(port->domain->table)[port->index].n_private, n,
                                  memory_order_release);
}

static int answer_register(struct emu_request *request)
{
    struct emu_msg_memory *memory = &request->msg->memory;
    struct emu_port_end *port = request->port;
    struct emu_account *account = &port->domain->budget.accounts[port->node_index];
    struct emu_file *file = NULL;
    struct emu_table_md *entry;
    struct emu_md_end *md;
    bool parks;
    int r;

    r = check_request(port, memory);
    if (r < 0)
        return r;
    r = port->domain->paths.has_faults ? emu_fault_registration(port) : 0;
    if (r < 0)
        return r;
    md = calloc(1, sizeof(*md));
    if (!md)
        return -ENOMEM;
    r = take_all(port, request, md, &file);
    if (r < 0) {
        free(md);
        emu_error_tell_port(port, EMU_ERROR_REGISTRATION, EMU_ERROR_ADDRESS_TRANSLATION, port->memory.n_mds, 0);
        return r;
    }
    port->server->nodes[port->nid]->file[md->mdh] = file;
    md->is_virtual = (memory->flags & EMU_MD_VMDH) != 0;
    md->is_updatable = md->is_reserved = (memory->flags & EMU_MD_RESERVED) != 0;
    emu_account_add_translation(port, &md->translation);
    entry = &emu_table_mds(port->domain->table, port->node_index)[md->mdh];
    entry->generation = port->server->nodes[port->nid]->generation[md->mdh];
    entry->flags = (uint8_t)(memory->flags & ~(EMU_MD_RESERVED | EMU_MD_DEDICATED | EMU_MD_GART | EMU_MD_PARKS));
    parks = may_park(port, memory);
    memory->flags = parks ? memory->flags : memory->flags & ~EMU_MD_PARKS;
    set_method(entry, port, memory, file, md);
    entry->port = port->index;
    set_queue(entry, port, memory->cq);
    entry->base = md->segments ? 0 : memory->addr;
    entry->length_bytes = md->segments ? md->segments->total_bytes : memory->length_bytes;
    count_private(port, entry, 1);
    /* Pairs with the acquire in the engine: a live state means a whole entry. */
    if (!md->is_reserved)
        atomic_store_explicit(&entry->state, EMU_MD_LIVE + (parks ? 1 + memory->vmdh : 0), memory_order_release);
    if (md->is_virtual) {
        account->vmdh_used++;
        port->server->nodes[port->nid]->n_promised--;
        atomic_store_explicit(&emu_table_vmdhs(port->domain->table, port->node_index)[md->vmdh], md->mdh,
                              memory_order_release);
    }
    LIST_INSERT_HEAD(&port->memory.mds, md, link);
    port->memory.n_mds++;
    memory->mdh = md->mdh;
    memory->generation = entry->generation;
    memory->vmdh = md->is_virtual ? md->vmdh : EMU_VMDH_ANY;
    return 0;
}

static void release(struct emu_server *server, struct emu_domain *domain, uint32_t nid, uint16_t mdh)
{
    struct emu_node *node = server->nodes[nid];

    emu_file_put(node->file[mdh]);
    node->file[mdh] = NULL;
    give_number(node, domain, emu_domain_node_of(domain, nid), mdh);
}

static void drop(struct emu_port_end *port, struct emu_md_end *md)
{
    struct emu_account *account = &port->domain->budget.accounts[port->node_index];
    struct emu_table_md *entry = &emu_table_mds(port->domain->table, port->node_index)[md->mdh];

    if (port->memory.amo_cache)
        emu_amo_cache_forget(port->memory.amo_cache, port->member->pid);
    emu_msgq_md_ends(port, md->mdh, entry);
    if (md->is_virtual) {
        atomic_store_explicit(&emu_table_vmdhs(port->domain->table, port->node_index)[md->vmdh], 0,
                              memory_order_release);
        account->vmdh_used--;
        port->server->nodes[port->nid]->n_promised++;
    }
    emu_account_drop_translation(port, &md->translation);
    /* Only emunic follows the list, in this thread, and looks at the state before each slice (datapath.c). */
    if (md->segments) {
        port->domain->memory.segments[port->node_index][md->mdh] = NULL;
        free(md->segments);
    }
    atomic_store_explicit(&entry->state, 0, memory_order_release);
    count_private(port, entry, (uint32_t)-1);
    LIST_REMOVE(md, link);
    port->memory.n_mds--;
    port->member->user->n_promised -= md->n_promised;
    emu_user_give(port->member->user, EMU_USER_REGISTRATIONS, 1);
    free(md);
}

static int deregister(struct emu_port_end *port, uint16_t mdh, uint16_t generation)
{
    struct emu_md_end *md;

    LIST_FOREACH(md, &port->memory.mds, link) {
        if (md->mdh != mdh)
            continue;
        if (emu_table_mds(port->domain->table, port->node_index)[mdh].generation != generation)
            return -EINVAL;
        drop(port, md);
        return 0;
    }
    return -EINVAL;
}

static int answer_update(struct emu_request *request)
{
    const struct emu_msg_memory *memory = &request->msg->memory;
    struct emu_port_end *port = request->port;
    struct emu_table_md *entry;
    struct emu_md_end *md;

    if (memory->mdh >= EMU_MD_COUNT || (memory->flags & ~EMU_MD_MAPPED) != 0)
        return -EINVAL;
    LIST_FOREACH(md, &port->memory.mds, link) {
        if (md->mdh == memory->mdh)
            break;
    }
    entry = &emu_table_mds(port->domain->table, port->node_index)[memory->mdh];
    if (!md || !md->is_updatable || entry->generation != memory->generation || memory->addr < entry->base ||
        memory->length_bytes == 0 || memory->length_bytes > entry->length_bytes ||
        memory->addr - entry->base > entry->length_bytes - memory->length_bytes)
        return -EINVAL;
    if (!md->is_reserved)
        return 0; /* live already: its pages are reached where they are */
    emu_pages_count(port->member);
    if ((memory->flags & EMU_MD_MAPPED) && memory->length_bytes == entry->length_bytes &&
        emu_pages_promise(port->server, port->member, memory->addr, memory->length_bytes, &md->n_promised))
        entry->method = EMU_MEMORY_MAP;
    md->is_reserved = false;
    atomic_store_explicit(&entry->state, 1, memory_order_release);
    return 0;
}

static void queue_end(struct emu_port_end *port, uint32_t cq)
{
    struct emu_table_md *entries = emu_table_mds(port->domain->table, port->node_index);
    struct emu_md_end *md;

    LIST_FOREACH(md, &port->memory.mds, link) {
        if (entries[md->mdh].cq == cq)
            entries[md->mdh].cq = EMU_CQ_NONE;
    }
}

/* ---- numbers that somebody inside may still mean ---- */

struct numbers {
    uint32_t n;
    uint16_t mdhs[];
};

/* A mover is at it, or other hosts' data are being moved from or to it. */
static bool is_visited(const struct emu_server *server, const struct emu_quiesce *q)
{
    const struct numbers *numbers = q->ctx;

    if (q->domain->memory.is_moved && emu_movers_touch(server, q->domain))
        return true;
    for (uint32_t i = 0; i < numbers->n; i++) {
        if (emu_visit_holds(server, q->domain, q->nid, numbers->mdhs[i]))
            return true;
    }
    return false;
}

static void numbers_are_left(struct emu_server *server, struct emu_quiesce *q)
{
    const struct numbers *numbers = q->ctx;

    for (uint32_t i = 0; i < numbers->n; i++)
        release(server, q->domain, q->nid, numbers->mdhs[i]);
}

static const struct emu_quiesce_ops numbers_ops = { .left = numbers_are_left, .is_busy = is_visited };

static int answer_deregister(struct emu_request *request)
{
    const struct emu_msg_memory *memory = &request->msg->memory;
    struct emu_port_end *port = request->port;
    struct numbers *numbers = malloc(sizeof(*numbers) + sizeof(numbers->mdhs[0]));
    struct emu_quiesce *q = numbers ? emu_quiesce_create(port->domain, &numbers_ops, numbers) : NULL;
    int r;

    if (!q)
        return -ENOMEM;
    r = deregister(port, memory->mdh, memory->generation);
    if (r < 0) {
        emu_quiesce_cancel(q);
        return r;
    }
    /* Handles of all generations that its owner gave out are stale. */
    if (memory->vmdh > 0 && memory->vmdh <= EMU_MD_GENERATION_MAX)
        port->server->nodes[port->nid]->generation[memory->mdh] = (uint16_t)memory->vmdh;
    numbers->n = 1;
    numbers->mdhs[0] = memory->mdh;
    q->nid = port->nid;
    return emu_quiesce_answer(request->connection, q, request->msg);
}

/* Movers come to its memory when they can: what they have under way would miss words of the cache. */
static int port_begin(struct emu_port_end *port)
{
    int r = port->member->is_moved ? 0 : emu_amo_cache_of(port->server, port->nid, &port->memory.amo_cache);

    if (r == 0 && port->memory.amo_cache)
        port->view.local = emu_memory_cached(port->memory.amo_cache, &port->view.local, port->member->pid);
    return r;
}

/* All of them go. */
static void port_end(struct emu_port_end *port)
{
    uint32_t n = port->memory.n_mds;
    struct numbers *numbers = n > 0 ? malloc(sizeof(*numbers) + n * sizeof(numbers->mdhs[0])) : NULL;
    struct emu_quiesce *q = numbers ? emu_quiesce_create(port->domain, &numbers_ops, numbers) : NULL;
    struct emu_md_end *md;

    if (q)
        numbers->n = 0;
    else if (n > 0)
        emu_log(EMU_LOG_ERROR, "out of memory: handles of a dead port stay in use");
    while ((md = LIST_FIRST(&port->memory.mds))) {
        if (q)
            numbers->mdhs[numbers->n++] = md->mdh;
        drop(port, md);
    }
    if (!q)
        return;
    q->nid = port->nid;
    emu_quiesce_start(port->server, q);
}

/* ---- space files ---- */

static int get_space(struct emu_member *member)
{
    int fd;
    int r;

    if (member->space_fd >= 0)
        return member->space_fd;
    fd = memfd_create("emunic-space", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)EMU_SPACE_BYTES) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
        r = -errno;
        close(fd);
        return r;
    }
    member->space_fd = fd;
    return fd;
}

/* ---- requests ---- */

static int answer_space(struct emu_request *request)
{
    return emu_request_pass(request, get_space(request->port->member), false);
}

/* Direct path: what a member needs of another one. A domain that is routed for good keeps its segments apart. */
static int answer_peer(struct emu_request *request)
{
    struct emu_msg_peer *asked = &request->msg->peer;
    const struct emu_domain *domain = request->port->domain;
    const struct emu_port_end *peer = asked->port < EMU_PORTS_MAX ? domain->ports[asked->port] : NULL;
    bool is_segment = request->msg->type == EMU_MSG_PEER_SEGMENT;
    int fd;

    if (!peer)
        return -ENOENT;
    if (domain->paths.is_routed_for_good)
        return -EPERM;
    asked->generation = emu_table_ports(domain->table)[asked->port].generation;
    asked->length_bytes = is_segment ? peer->segment_bytes : EMU_SPACE_BYTES;
    fd = is_segment ? peer->segment_fd : peer->member->space_fd;
    return fd < 0 ? -ENOENT : emu_request_pass(request, fd, false);
}

static int answer_peer_file(struct emu_request *request)
{
    const struct emu_domain *domain = request->port->domain;
    int fd = domain->paths.is_routed_for_good ? -EPERM : emu_file_of(domain, &request->msg->file);

    return emu_request_pass(request, fd, false);
}

static const struct emu_request_row requests[] = {
    { EMU_MSG_MEM_REGISTER, EMU_MSG_MEM_REGISTER, EMU_NEEDS_PORT, answer_register },
    { EMU_MSG_MEM_DEREGISTER, EMU_MSG_MEM_DEREGISTER, EMU_NEEDS_PORT, answer_deregister },
    { EMU_MSG_SPACE, EMU_MSG_SPACE, EMU_NEEDS_PORT, answer_space },
    { EMU_MSG_PEER_SEGMENT, EMU_MSG_PEER_SPACE, EMU_NEEDS_PORT, answer_peer },
    { EMU_MSG_PEER_FILE, EMU_MSG_PEER_FILE, EMU_NEEDS_PORT, answer_peer_file },
    { EMU_MSG_VMDH_RESERVE, EMU_MSG_VMDH_RESERVE, EMU_NEEDS_PORT, answer_reserve },
    { EMU_MSG_MEM_UPDATE, EMU_MSG_MEM_UPDATE, EMU_NEEDS_PORT, answer_update },
    { EMU_MSG_MEM_SEGMENTS, EMU_MSG_MEM_SEGMENTS, EMU_NEEDS_PORT, answer_segments },
};

static void put_node_status(const struct emu_server *server, uint32_t nid, uint64_t *row)
{
    const struct emu_amo_cache *cache = server->nodes[nid] ? server->nodes[nid]->amo_cache : NULL;
    const struct emu_amo_cache_counts *counts = cache ? emu_amo_cache_counts(cache) : NULL;

    if (!counts)
        return;
    row[EMU_STATUS_NODE_AMO_COMMANDS] = counts->commands;
    row[EMU_STATUS_NODE_AMO_HITS] = counts->hits;
    row[EMU_STATUS_NODE_AMO_HOST_READS] = counts->host_reads;
    row[EMU_STATUS_NODE_AMO_HOST_WRITES] = counts->host_writes;
}

static int create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    (void)options;
    (void)why;
    return emu_page_watch_create(server);
}

const struct emu_part emu_memory_part = {
    .name = "memory",
    .requests = requests,
    .n_requests = EMU_ROWS(requests),
    .create = create,
    .destroy = emu_page_watch_destroy,
    .loop = { .round = emu_page_watch_round },
    .ports = { .begin = port_begin, .end = port_end, .queue_end = queue_end },
    .status = { .node = put_node_status },
};
