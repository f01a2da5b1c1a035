/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network that breaks while it runs.
 *
 * `emunic fault fail` and `repair` change the fault map. Each change quiesces the network, as the machines' own
 * management does before it loads new routes: no new request starts, what is on the way goes on, then traffic is
 * released over the new routes. Programs only pause; nothing is lost or changes its order, because requests wait in
 * their rings.
 *
 *   released ── change ──> quiesced ── EMUNIC_QUIESCE has passed, nothing on the way ──> released
 *                           └─ change: the time starts anew
 *
 * In virtual time all of this has its durations there, and there is no limit to what is on the way: the model loads the
 * new routes when it is empty. A machine that is broken at virtual time 0 begins so.
 *
 * What is on the way may take longer than DRAIN_NS: then traffic is released all the same, and a transfer whose target
 * is out of reach ends with an error.
 *
 * While anything is down every domain is routed, and each command asks here first. One whose target (or the way back)
 * cannot be reached ends as a packet lost on the machine does: status "network" at its initiator; a short message has
 * used up its attempts. The library's own writes (credits, greetings, voids in place of lost messages) end nobody's
 * transaction, so they are kept and made when there is a way again: a channel outlives the fault. Whether a pair can be
 * reached is for world/ways.c to say. When all is whole again the domains go back to their own path.
 *
 * Lane losses and failures count as errors of their link. On machines whose monitors write one, the watcher's log gets
 * its lines (watcher.c).
 * Source: spec/machines.md 2.4, 3.4.
 */
#include "emunic/daemon/network/network.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/base/log.h"
#include "emunic/daemon/core/domain_life.h"
#include "emunic/daemon/errors/error_stream.h"
#include "emunic/daemon/network/watcher.h"
#include "emunic/daemon/orders/order_request.h"
#include "emunic/daemon/orders/orders.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/flows.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/server_time.h"
#include "emunic/daemon/world/ways.h"
#include "emunic/daemon/world/word_list.h"
#include "emunic/fabric/link.h"

#define DRAIN_NS 5000000000ull

struct pending {
    struct emu_msg_network change;
    uint64_t at_ns;
};

struct emu_network {
    struct emu_ways ways; /* the faults are ours */
    struct pending pending[EMU_NETWORK_PENDING_MAX];
    uint32_t n_pending;
    struct emu_link_load *past; /* owned, by link: carried before the last change */
    uint32_t *errors;           /* owned, by link */
};

/* NULL until something breaks. */
static struct emu_network *network_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_NETWORK];
}

/* ---- asking ---- */

const struct emu_link_load *emu_network_past_loads(const struct emu_server *server)
{
    return network_of(server) ? network_of(server)->past : NULL;
}

uint32_t emu_network_link_errors(const struct emu_server *server, uint32_t link)
{
    return network_of(server) ? network_of(server)->errors[link] : 0;
}

/* ---- changing ---- */

static void destroy(struct emu_server *server);

static int make(struct emu_server *server)
{
    const uint32_t n_links = emu_machine_n_links(server->machine);
    struct emu_network *n;
    int r = -ENOMEM;

    if (network_of(server))
        return 0;
    n = calloc(1, sizeof(*n));
    if (!n)
        return r;
    n->past = calloc(n_links, sizeof(*n->past));
    n->errors = calloc(n_links, sizeof(*n->errors));
    if (n->past && n->errors)
        r = emu_fault_map_create(server->machine, &n->ways.faults);
    n->ways.schedule_ns = UINT64_MAX;
    server->slots[EMU_SERVER_NETWORK] = n;
    server->slots[EMU_SERVER_WAYS] = &n->ways;
    if (r < 0)
        destroy(server);
    return r;
}

static void destroy(struct emu_server *server)
{
    struct emu_network *n = network_of(server);

    emu_watcher_destroy(server);
    if (!n)
        return;
    emu_fault_map_destroy(n->ways.faults);
    free(n->past);
    free(n->errors);
    free(n);
    server->slots[EMU_SERVER_NETWORK] = NULL;
    server->slots[EMU_SERVER_WAYS] = NULL;
}

static int set_link(struct emu_server *server, uint32_t link, bool is_up, bool one_way)
{
    struct emu_network *n = network_of(server);
    uint32_t reverse;
    int r = emu_link_reverse(server->machine, link, &reverse);

    if (r < 0)
        return r;
    r = emu_fault_map_set_link(n->ways.faults, link, is_up);
    if (r == 0 && !one_way)
        r = emu_fault_map_set_link(n->ways.faults, reverse, is_up);
    if (r == 0 && !is_up) {
        n->errors[link]++;
        if (!one_way && reverse != link)
            n->errors[reverse]++;
    }
    return r;
}

static int set_lanes(struct emu_server *server, const struct emu_msg_network *change)
{
    struct emu_link link;
    uint32_t all;
    int r;

    emu_link_get(server->machine, change->index, &link);
    all = link.lanes >= 32 ? UINT32_MAX : (1u << link.lanes) - 1;
    r = emu_fault_map_set_lanes(network_of(server)->ways.faults, change->index,
                                (change->flags & EMU_NETWORK_REPAIR) ? all : change->lane_mask);
    if (r == 0 && (change->flags & EMU_NETWORK_REPAIR) == 0) {
        network_of(server)->errors[change->index]++;
        emu_watcher_lose_lanes(server, change->index, change->lane_mask);
    }
    return r;
}

static int mend_all(struct emu_network *n, const struct emu_machine *m)
{
    struct emu_fault_map *faults;
    int r = emu_fault_map_create(m, &faults);

    if (r < 0)
        return r;
    emu_fault_map_destroy(n->ways.faults);
    n->ways.faults = faults;
    return 0;
}

static int apply(struct emu_server *server, const struct emu_msg_network *change)
{
    bool is_up = (change->flags & EMU_NETWORK_REPAIR) != 0;

    switch (change->thing) {
    case EMU_NETWORK_LINK:
        return set_link(server, change->index, is_up, (change->flags & EMU_NETWORK_ONE_WAY) != 0);
    case EMU_NETWORK_LANES:
        return set_lanes(server, change);
    case EMU_NETWORK_ROUTER:
        return emu_fault_map_set_router(network_of(server)->ways.faults, change->index, is_up);
    case EMU_NETWORK_NODE:
        return emu_fault_map_set_node(network_of(server)->ways.faults, change->index, is_up);
    case EMU_NETWORK_ALL:
        return is_up ? mend_all(network_of(server), server->machine) : -EINVAL;
    default:
        return -EINVAL;
    }
}

static void tell_domains(struct emu_server *server, uint16_t code, const struct emu_msg_network *change)
{
    struct emu_error_record record = { .code = code, .category = EMU_ERROR_INFORMATIONAL };
    const struct emu_domain *domain;

    if (change) {
        record.category = (change->flags & EMU_NETWORK_REPAIR) ? EMU_ERROR_INFORMATIONAL : EMU_ERROR_CRITICAL;
        record.info[0] = (uint64_t)change->thing << 32 | change->index;
        record.info[1] = change->lane_mask;
        record.info[2] = (change->flags & EMU_NETWORK_REPAIR) != 0;
    }
    LIST_FOREACH(domain, &server->domains, link)
        emu_error_tell_here(server, domain, record);
}

static void set_paths(struct emu_server *server)
{
    struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        domain->paths.is_routed_around = emu_network_is_disturbed(server);
        emu_domain_set_path(domain);
    }
}

/* When the first change of the schedule is due. */
static void note_schedule(struct emu_network *n)
{
    n->ways.schedule_ns = UINT64_MAX;
    for (uint32_t i = 0; i < n->n_pending; i++) {
        if (n->pending[i].at_ns < n->ways.schedule_ns)
            n->ways.schedule_ns = n->pending[i].at_ns;
    }
}

static void quiesce(struct emu_server *server)
{
    struct emu_network *n = network_of(server);

    n->ways.changes++;
    n->ways.quiesces += n->ways.quiesced_at_ns == 0 && emu_server_now_ns(server) != 0;
    n->ways.quiesced_at_ns = emu_server_now_ns(server);
}

static int change_now(struct emu_server *server, const struct emu_msg_network *change)
{
    int r;

    /* What was sent until now went over the routes of until now. */
    r = emu_flows_mark(server, network_of(server)->past);
    if (r == 0)
        r = apply(server, change);
    if (r < 0)
        return r;
    quiesce(server);
    tell_domains(server, EMU_ERROR_NETWORK, change);
    set_paths(server);
    return 0;
}

/* Everything that apply() would refuse. */
static int check(const struct emu_server *server, const struct emu_msg_network *change)
{
    const struct emu_machine *m = server->machine;
    bool is_repair = (change->flags & EMU_NETWORK_REPAIR) != 0;
    struct emu_link link;

    if ((change->flags & ~(uint32_t)(EMU_NETWORK_REPAIR | EMU_NETWORK_ONE_WAY)) != 0 || change->after_ns > INT64_MAX)
        return -EINVAL;
    switch (change->thing) {
    case EMU_NETWORK_LINK:
        return change->index < emu_machine_n_links(m) ? 0 : -ERANGE;
    case EMU_NETWORK_LANES:
        if (emu_link_get(m, change->index, &link) < 0)
            return -ERANGE;
        return is_repair || (change->lane_mask != 0 && (link.lanes >= 32 || change->lane_mask >> link.lanes == 0)) ?
                   0 :
                   -EINVAL;
    case EMU_NETWORK_ROUTER:
        return change->index < emu_machine_n_routers(m) ? 0 : -ERANGE;
    case EMU_NETWORK_NODE:
        return change->index < emu_machine_n_nodes(m) ? 0 : -ERANGE;
    case EMU_NETWORK_ALL:
        return is_repair ? 0 : -EINVAL;
    default:
        return -EINVAL;
    }
}

int emu_network_change(struct emu_server *server, const struct emu_msg_network *change)
{
    struct emu_network *n;
    int r = check(server, change);

    if (r == 0)
        r = make(server);
    if (r < 0)
        return r;
    if (change->after_ns == 0)
        return change_now(server, change);
    n = network_of(server);
    if (n->n_pending == EMU_NETWORK_PENDING_MAX)
        return -ENOSPC;
    n->pending[n->n_pending++] =
        (struct pending){ .change = *change, .at_ns = emu_server_now_ns(server) + change->after_ns };
    note_schedule(n);
    return 0;
}

/* ---- state ---- */

#define STATE_WORDS 3u
enum { LINK_ERRORS = EMU_NETWORK_ALL }; /* a row of the state beside those of enum emu_network_thing */

static void put_row(struct emu_word_list *list, uint32_t thing, uint32_t index, uint32_t value)
{
    uint64_t *at = emu_word_list_extend(list, STATE_WORDS);

    if (at) {
        at[0] = thing;
        at[1] = index;
        at[2] = value;
    }
}

static uint32_t all_lanes(const struct emu_machine *m, uint32_t id)
{
    struct emu_link link;

    if (emu_link_get(m, id, &link) < 0)
        return 0;
    return link.lanes >= 32 ? UINT32_MAX : (1u << link.lanes) - 1;
}

static void put_state(const struct emu_server *server, const struct emu_domain *domain, struct emu_word_list *list)
{
    const struct emu_fault_map *faults = emu_network_faults(server);
    const struct emu_machine *m = server->machine;

    (void)domain;
    if (!faults)
        return;
    for (uint32_t i = 0; i < emu_machine_n_routers(m); i++) {
        if (!emu_fault_map_router_up(faults, i))
            put_row(list, EMU_NETWORK_ROUTER, i, 0);
    }
    for (uint32_t i = 0; i < emu_machine_n_nodes(m); i++) {
        if (!emu_fault_map_node_up(faults, i))
            put_row(list, EMU_NETWORK_NODE, i, 0);
    }
    for (uint32_t i = 0; i < emu_machine_n_links(m); i++) {
        if (!emu_fault_map_link_itself_up(faults, i))
            put_row(list, EMU_NETWORK_LINK, i, 0);
        if (emu_fault_map_lane_mask(faults, i) != all_lanes(m, i))
            put_row(list, EMU_NETWORK_LANES, i, emu_fault_map_lane_mask(faults, i));
        if (network_of(server)->errors[i] > 0)
            put_row(list, LINK_ERRORS, i, network_of(server)->errors[i]);
    }
}

static int take_row(struct emu_fault_map *faults, uint32_t *errors, uint32_t n_links, struct emu_words *words)
{
    uint32_t thing = (uint32_t)emu_words_take(words, LINK_ERRORS);
    uint32_t index = (uint32_t)emu_words_take(words, UINT32_MAX);
    uint32_t value = (uint32_t)emu_words_take(words, UINT32_MAX);

    if (words->is_bad)
        return -EINVAL;
    switch (thing) {
    case EMU_NETWORK_LINK:
        return emu_fault_map_set_link(faults, index, false);
    case EMU_NETWORK_LANES:
        return emu_fault_map_set_lanes(faults, index, value);
    case EMU_NETWORK_ROUTER:
        return emu_fault_map_set_router(faults, index, false);
    case EMU_NETWORK_NODE:
        return emu_fault_map_set_node(faults, index, false);
    case LINK_ERRORS:
        if (index >= n_links)
            return -ERANGE;
        errors[index] = value;
        return 0;
    default:
        return -EINVAL;
    }
}

static bool is_same_map(const struct emu_machine *m, const struct emu_fault_map *a, const struct emu_fault_map *b)
{
    for (uint32_t i = 0; i < emu_machine_n_routers(m); i++) {
        if (emu_fault_map_router_up(a, i) != emu_fault_map_router_up(b, i))
            return false;
    }
    for (uint32_t i = 0; i < emu_machine_n_nodes(m); i++) {
        if (emu_fault_map_node_up(a, i) != emu_fault_map_node_up(b, i))
            return false;
    }
    for (uint32_t i = 0; i < emu_machine_n_links(m); i++) {
        if (emu_fault_map_link_itself_up(a, i) != emu_fault_map_link_itself_up(b, i) ||
            emu_fault_map_lane_mask(a, i) != emu_fault_map_lane_mask(b, i))
            return false;
    }
    return true;
}

/* Takes `faults` over, or not: then it is left. */
static bool become(struct emu_server *server, struct emu_fault_map *faults)
{
    struct emu_network *n = network_of(server);

    if (is_same_map(server->machine, faults, n->ways.faults))
        return false;
    if (emu_flows_mark(server, n->past) < 0) {
        emu_log(EMU_LOG_ERROR, "network: no memory to follow the head's");
        return false;
    }
    emu_fault_map_destroy(n->ways.faults);
    n->ways.faults = faults;
    quiesce(server);
    set_paths(server);
    return true;
}

static bool take_state(struct emu_server *server, struct emu_domain *domain, struct emu_words *words)
{
    const uint32_t n_links = emu_machine_n_links(server->machine);
    struct emu_fault_map *faults = NULL;
    uint32_t *errors = NULL;
    int r = 0;

    (void)domain;
    if (words->left == 0 && !network_of(server))
        return true;
    if (make(server) < 0)
        return true; /* no memory: nothing that the sender could help */
    errors = calloc(n_links, sizeof(*errors));
    if (!errors || emu_fault_map_create(server->machine, &faults) < 0) {
        free(errors);
        return true;
    }
    while (r == 0 && words->left > 0)
        r = take_row(faults, errors, n_links, words);
    if (r == 0)
        memcpy(network_of(server)->errors, errors, n_links * sizeof(*errors));
    if (r < 0 || !become(server, faults))
        emu_fault_map_destroy(faults);
    free(errors);
    return r == 0 || r == -ENOMEM;
}

/* ---- schedules ---- */

/* The first that is due, in the order of their times; -1 none. */
static int find_due(const struct emu_network *n, uint64_t now_ns)
{
    int due = -1;

    for (uint32_t i = 0; i < n->n_pending; i++) {
        if (n->pending[i].at_ns <= now_ns && (due < 0 || n->pending[i].at_ns < n->pending[due].at_ns))
            due = (int)i;
    }
    return due;
}

/* On all hosts. */
static int order_change(struct emu_server *server, const struct emu_msg_network *network)
{
    struct emu_change *change = calloc(1, sizeof(*change));

    if (change)
        change->network = *network;
    return emu_order_begin(server, EMU_MSG_NETWORK, change);
}

static void make_due_changes(struct emu_server *server)
{
    struct emu_network *n = network_of(server);
    uint64_t now_ns = emu_server_now_ns(server);
    int due;

    while ((due = find_due(n, now_ns)) >= 0) {
        struct emu_msg_network change = n->pending[due].change;
        int r;

        /* In order, because several may be due at the same time. */
        n->n_pending--;
        for (uint32_t i = (uint32_t)due; i < n->n_pending; i++)
            n->pending[i] = n->pending[i + 1];
        change.after_ns = 0;
        r = order_change(server, &change);
        if (r < 0)
            emu_log(EMU_LOG_ERROR, "network: a change of the schedule is left out: no memory (%d)", r);
    }
    note_schedule(n);
}

/* ---- releasing ---- */

static bool is_anything_on_the_way(const struct emu_server *server)
{
    const struct emu_port_end *port;

    LIST_FOREACH(port, &server->ports, link) {
        if (port->transfers.n > 0)
            return true;
    }
    return false;
}

static bool may_release(const struct emu_server *server)
{
    const struct emu_server_time *time = emu_server_virtual_time(server);
    uint64_t age_ns = emu_server_now_ns(server) - network_of(server)->ways.quiesced_at_ns;

    if (age_ns < server->settings.quiesce_ns)
        return false;
    return time ? time->n_under_way == 0 : age_ns >= DRAIN_NS || !is_anything_on_the_way(server);
}

static unsigned look(struct emu_server *server)
{
    struct emu_network *n = network_of(server);

    emu_watcher_round(server);
    if (n && n->n_pending > 0)
        make_due_changes(server);
    if (!emu_network_is_quiesced(server) || !may_release(server))
        return 0;
    n->ways.quiesced_at_ns = 0;
    tell_domains(server, EMU_ERROR_ROUTES, NULL);
    emu_parts_released(server);
    set_paths(server);
    return 0;
}

/* Virtual time asks for itself (emu_network_next_ns()). */
static uint64_t next_ns(const struct emu_server *server)
{
    uint64_t watcher_ns = emu_watcher_next_ns(server);
    uint64_t network_ns = emu_server_virtual_time(server) ? UINT64_MAX : emu_network_next_ns(server);

    return watcher_ns < network_ns ? watcher_ns : network_ns;
}

/* ---- the part ---- */

static int read_change(struct emu_connection *c, const struct emu_msg *msg, const struct emu_fds *fds,
                       struct emu_change *change)
{
    (void)c;
    (void)fds;
    change->network = msg->network;
    return 0;
}

static void put_change(const struct emu_change *change, struct emu_word_list *list)
{
    uint64_t *at = emu_word_list_extend(list, EMU_HOST_NETWORK_WORDS);

    if (at)
        emu_host_network_put(at, &change->network);
}

static bool take_change(const struct emu_server *server, struct emu_words *words, struct emu_change *change)
{
    (void)server;
    emu_host_network_take(words, &change->network);
    return true;
}

static int act_on_change(struct emu_server *server, struct emu_change *change, const struct emu_change_order *order)
{
    (void)order;
    return emu_network_change(server, &change->network);
}

static int begin_domain(struct emu_server *server, struct emu_domain *domain)
{
    domain->paths.is_routed_around = emu_network_is_disturbed(server);
    return 0;
}

static const struct emu_change_row changes[] = {
    { .type = EMU_MSG_NETWORK, .read = read_change, .put = put_change, .take = take_change, .act = act_on_change },
};
static const struct emu_state_row states[] = { { EMU_MSG_NETWORK, false, put_state, take_state } };

const struct emu_part emu_network_part = {
    .name = "network",
    .destroy = destroy,
    .changes = changes,
    .n_changes = EMU_ROWS(changes),
    .states = states,
    .n_states = EMU_ROWS(states),
    .loop = { .round = look, .next_ns = next_ns },
    .domains = { .begin = begin_domain },
};
