/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a worker: opens, connects to whoever is there, works, lets go of who was killed, connects to its next
 * life. See worker.h for the model.
 */
#include "tests/kills/worker.h"

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ENDS_SOON  1u
#define ENDS_BADLY 2u
#define CANARY     0x5au
#define MANY_PUTS  4u /* between two looks at the board; then the bytes say too little */

static const uint32_t slot_lengths[SLOTS] = { 8, 40, 600, 4096, 20000, SLOT_MAX };
static const uint32_t slot_offsets[SLOTS] = { 0, 64, 192, 1024, 5312, 25600 };

void worker_finding(struct worker *w, const char *format, ...)
{
    va_list arguments;

    if (atomic_fetch_add(&w->line->findings, 1) >= 10)
        return;
    fprintf(stderr, "worker %u, life %llu: ", w->rank, (unsigned long long)w->life);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

static uint64_t now(_Atomic uint64_t *word)
{
    return atomic_load(word);
}

static struct towards *towards(const struct worker *w, unsigned peer)
{
    return &w->line->towards[peer];
}

/* What the others note about us. */
static struct towards *of_peer(const struct worker *w, unsigned peer)
{
    return &w->board->lines[peer].towards[w->rank];
}

/* What we run on is killed, or we are. */
static bool is_doomed(const struct worker *w)
{
    return now(&w->board->ends) == ENDS_BADLY || now(&w->board->doomed[w->rank]) == w->life;
}

/* Lives have rising numbers, so a life that came and went meanwhile is no matter. */
bool worker_may_fail(struct worker *w, unsigned peer)
{
    w->has_failed = w->has_failed || is_doomed(w);
    return is_doomed(w) || now(&w->board->doomed[peer]) >= now(&towards(w, peer)->life);
}

/* The life that we are connected to has ended. */
static bool is_gone(const struct worker *w, unsigned peer)
{
    return now(&w->board->gone[peer]) >= now(&towards(w, peer)->life);
}

void worker_must(struct worker *w, bool is_good, const char *what)
{
    if (is_good)
        return;
    if (is_doomed(w))
        _exit(0);
    worker_finding(w, "%s fails", what);
    _exit(1);
}

/* ---- contents ---- */

/* Bytes of put `number`; there are none before the first. */
static uint64_t seed_of(unsigned from, unsigned slot, uint64_t number)
{
    return number ? emu_random_mix(number * 64 + from * 8 + slot) : 0;
}

static uint8_t byte_of(uint64_t seed, uint32_t at)
{
    return seed ? (uint8_t)((seed >> (at % 8 * 8)) + at / 8 * 37) : 0;
}

static void fill(uint8_t *bytes, uint64_t seed, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++)
        bytes[i] = byte_of(seed, i);
}

static bool is_filled(const uint8_t *bytes, uint64_t seed, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++) {
        if (bytes[i] != byte_of(seed, i))
            return false;
    }
    return true;
}

/* Of which put is each byte? The place of the first one that is of none, or `length`. */
static uint32_t first_wrong(const uint8_t *bytes, unsigned from, unsigned slot, const uint64_t range[2])
{
    uint32_t length = slot_lengths[slot];

    for (uint32_t i = 0; i < length; i++) {
        uint64_t number = range[0];

        while (number <= range[1] && bytes[i] != byte_of(seed_of(from, slot, number), i))
            number++;
        if (number > range[1])
            return i;
    }
    return length;
}

static uint8_t *lane_of(const struct worker *w, unsigned from)
{
    return w->region + (size_t)from * LANE_BYTES;
}

/* ---- our own memory ---- */

/* `paused`: the initiators do nothing meanwhile. */
static void check_slot(struct worker *w, unsigned from, unsigned slot, bool paused)
{
    struct towards *t = of_peer(w, from);
    const uint8_t *bytes = lane_of(w, from) + slot_offsets[slot];
    bool is_ours = now(&t->life) == w->life;
    uint64_t range[2] = { is_ours ? now(&t->done[slot]) : 0, 0 };
    uint32_t length = slot_lengths[slot];
    uint32_t wrong;

    if (is_filled(bytes, seed_of(from, slot, range[0]), length))
        return;
    range[1] = is_ours ? now(&t->started[slot]) : 0;
    if ((now(&t->life) == w->life) != is_ours || (!paused && range[1] - range[0] > MANY_PUTS))
        return;
    wrong = first_wrong(bytes, from, slot, range);
    /* While we looked, the next put may have begun. */
    if (wrong < length && (!is_ours || paused || now(&t->started[slot]) == range[1]) &&
        (now(&t->life) == w->life) == is_ours)
        worker_finding(w, "lane of %u, slot %u: byte %u is of none of the puts %llu to %llu", from, slot, wrong,
                       (unsigned long long)range[0], (unsigned long long)range[1]);
}

static void check_word(struct worker *w, unsigned from)
{
    struct towards *t = of_peer(w, from);
    _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)(lane_of(w, from) + WORD_AT);
    uint64_t least = now(&t->life) == w->life ? now(&t->adds_done[0]) : 0;
    uint64_t value = now(word);
    uint64_t most = now(&t->life) == w->life ? now(&t->adds_started[0]) : 0;

    if (value < least || value > most)
        worker_finding(w, "word of %u is %llu, not from %llu to %llu", from, (unsigned long long)value,
                       (unsigned long long)least, (unsigned long long)most);
}

static void check_common_word(struct worker *w)
{
    _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)(w->region + COMMON_AT);
    uint64_t least = 0, value, most = 0;

    for (unsigned i = 0; i < w->n_ranks; i++)
        least += now(&of_peer(w, i)->life) == w->life ? now(&of_peer(w, i)->adds_done[1]) : 0;
    value = now(word);
    for (unsigned i = 0; i < w->n_ranks; i++)
        most += now(&of_peer(w, i)->life) == w->life ? now(&of_peer(w, i)->adds_started[1]) : 0;
    if (value < least || value > most)
        worker_finding(w, "word for all is %llu, not from %llu to %llu", (unsigned long long)value,
                       (unsigned long long)least, (unsigned long long)most);
}

static void check_same(struct worker *w, const uint8_t *from, const uint8_t *to, uint8_t value)
{
    for (const uint8_t *at = from; at < to; at++) {
        if (*at != value) {
            worker_finding(w, "byte %td of the region, which nobody may write, is %02x", at - w->region, *at);
            return;
        }
    }
}

/* What lies between the slots, and around the region. */
static void check_guards(struct worker *w)
{
    check_same(w, w->region - PAGE, w->region, CANARY);
    check_same(w, w->region + REGION_BYTES, w->region + REGION_BYTES + PAGE, CANARY);
    check_same(w, w->region + COMMON_AT + 8, w->region + REGION_BYTES, 0);
    for (unsigned from = 0; from < RANKS_MAX; from++) {
        uint8_t *lane = lane_of(w, from);

        for (unsigned slot = 0; slot < SLOTS; slot++)
            check_same(w, lane + slot_offsets[slot] + slot_lengths[slot],
                       lane + (slot + 1 < SLOTS ? slot_offsets[slot + 1] : WORD_AT), 0);
        check_same(w, lane + WORD_AT + 8, lane + LANE_BYTES, 0);
    }
}

static void check_region(struct worker *w, bool paused)
{
    if (!w->backend->post)
        return;
    for (unsigned from = 0; from < w->n_ranks; from++) {
        for (unsigned slot = 0; slot < SLOTS; slot++)
            check_slot(w, from, slot, paused);
        if (paused)
            check_word(w, from);
    }
    check_guards(w);
    check_common_word(w);
    atomic_fetch_add(&w->line->bytes_checked, REGION_BYTES);
}

/* ---- operations ---- */

static bool is_busy(const struct worker *w, unsigned target, const struct op *but)
{
    for (unsigned i = 0; i < OPS_MAX; i++) {
        if (&w->ops[i] != but && w->ops[i].in_use && w->ops[i].target == target && w->ops[i].slot == but->slot &&
            (w->ops[i].kind == ADD) == (but->kind == ADD))
            return true;
    }
    return false;
}

static bool is_idle(const struct worker *w, unsigned target)
{
    for (unsigned i = 0; i < OPS_MAX; i++) {
        if (w->ops[i].in_use && w->ops[i].target == target)
            return false;
    }
    return w->sends_to[target] == 0;
}

static bool begin_put(struct worker *w, struct op *op)
{
    struct towards *t = towards(w, op->target);

    op->number = now(&t->started[op->slot]) + 1;
    fill(op->buffer, seed_of(w->rank, op->slot, op->number), (uint32_t)op->length);
    atomic_store(&t->started[op->slot], op->number);
    return w->backend->post(w, op);
}

/* Brings what was put before; not where that is unsure. */
static bool begin_get(struct worker *w, struct op *op)
{
    struct towards *t = towards(w, op->target);

    op->number = now(&t->done[op->slot]);
    if (now(&t->started[op->slot]) != op->number)
        return false;
    memset(op->buffer, CANARY, op->length);
    return w->backend->post(w, op);
}

static bool begin_add(struct worker *w, struct op *op)
{
    struct towards *t = towards(w, op->target);

    op->offset = op->slot ? COMMON_AT : (uint64_t)w->rank * LANE_BYTES + WORD_AT;
    op->length = 8;
    op->number = now(&t->adds_done[op->slot]);
    atomic_fetch_add(&t->adds_started[op->slot], 1);
    return w->backend->post(w, op);
}

static void begin(struct worker *w, unsigned target)
{
    unsigned i = 0;
    struct op *op;
    bool is_begun;

    while (i < OPS_MAX && w->ops[i].in_use)
        i++;
    if (i == OPS_MAX || !w->backend->post)
        return;
    op = &w->ops[i];
    op->kind = (enum kind)emu_random_below(&w->random, w->backend->ends_unanswered ? ADD : KINDS);
    op->target = target;
    op->slot = (unsigned)emu_random_below(&w->random, op->kind == ADD ? 2 : SLOTS);
    if (is_busy(w, target, op))
        return;
    op->offset = (uint64_t)w->rank * LANE_BYTES + slot_offsets[op->slot];
    op->length = slot_lengths[op->slot];
    op->in_use = true;
    is_begun = op->kind == PUT ? begin_put(w, op) : op->kind == GET ? begin_get(w, op) : begin_add(w, op);
    if (!is_begun)
        op->in_use = false;
}

static void check_got(struct worker *w, const struct op *op)
{
    struct towards *t = towards(w, op->target);
    uint64_t value;

    if (op->kind == GET && !is_filled(op->buffer, seed_of(w->rank, op->slot, op->number), (uint32_t)op->length))
        worker_finding(w, "get of slot %u of %u does not bring put %llu", op->slot, op->target,
                       (unsigned long long)op->number);
    if (op->kind != ADD || op->slot != 0)
        return;
    memcpy(&value, op->buffer, 8);
    if (value < op->number || value >= now(&t->adds_started[0]))
        worker_finding(w, "word at %u was %llu, not from %llu to %llu", op->target, (unsigned long long)value,
                       (unsigned long long)op->number, (unsigned long long)now(&t->adds_started[0]) - 1);
}

void worker_completed(struct worker *w, struct op *op, bool is_good)
{
    struct towards *t = towards(w, op->target);

    op->in_use = false;
    atomic_fetch_add(&w->line->beats, 1);
    if (!is_good) {
        if (!worker_may_fail(w, op->target))
            worker_finding(w, "operation %d to %u fails", (int)op->kind, op->target);
        return;
    }
    check_got(w, op);
    if (op->kind == PUT)
        atomic_store(&t->done[op->slot], op->number);
    else if (op->kind == ADD)
        atomic_fetch_add(&t->adds_done[op->slot], 1);
}

/* ---- messages ---- */

/* Both have connected to the life that the other one has. */
static bool may_send(const struct worker *w, unsigned peer)
{
    struct towards *t = of_peer(w, peer);

    return now(&t->life) == w->life && now(&t->own_life) == now(&towards(w, peer)->life);
}

static void message_of(uint8_t *message, unsigned from, uint64_t number)
{
    memcpy(message, &number, 8);
    fill(message + 8, seed_of(from, 7, number), MESSAGE_BYTES - 8);
}

static void send(struct worker *w, unsigned peer)
{
    struct towards *t = towards(w, peer);
    uint8_t message[MESSAGE_BYTES];

    if (!w->backend->send || !may_send(w, peer))
        return;
    message_of(message, w->rank, now(&t->sent_started) + 1);
    atomic_fetch_add(&t->sent_started, 1);
    w->sends_to[peer]++;
    if (!w->backend->send(w, peer, message)) {
        w->sends_to[peer]--;
        atomic_fetch_sub(&t->sent_started, 1);
    }
}

void worker_sent(struct worker *w, unsigned peer, bool is_good)
{
    atomic_fetch_add(&w->line->beats, 1);
    if (w->sends_to[peer] == 0)
        worker_finding(w, "a completion of a message to %u that was not sent", peer);
    else
        w->sends_to[peer]--;
    if (is_good)
        atomic_fetch_add(&towards(w, peer)->sent_done, 1);
    else if (!worker_may_fail(w, peer))
        worker_finding(w, "a message to %u fails", peer);
}

void worker_received(struct worker *w, unsigned peer, const void *message)
{
    uint64_t wanted = now(&towards(w, peer)->received) + 1;
    uint8_t expected[MESSAGE_BYTES];
    uint64_t number;

    memcpy(&number, message, 8);
    message_of(expected, peer, wanted);
    if (memcmp(message, expected, MESSAGE_BYTES) != 0)
        worker_finding(w, "message %llu of %u instead of %llu, or other bytes", (unsigned long long)number, peer,
                       (unsigned long long)wanted);
    atomic_store(&towards(w, peer)->received, wanted);
}

/* All that the sender saw complete has come. */
static bool have_come(const struct worker *w, unsigned peer)
{
    struct towards *t = of_peer(w, peer);

    return now(&t->life) != w->life || now(&t->own_life) != now(&towards(w, peer)->life) ||
           now(&towards(w, peer)->received) >= now(&t->sent_done);
}

static void check_messages(struct worker *w, unsigned peer)
{
    struct towards *t = of_peer(w, peer);
    uint64_t received = now(&towards(w, peer)->received);

    if (now(&t->life) != w->life || now(&t->own_life) != now(&towards(w, peer)->life))
        return;
    if (received < now(&t->sent_done) || received > now(&t->sent_started))
        worker_finding(w, "%llu messages of %u, which has sent %llu to %llu", (unsigned long long)received, peer,
                       (unsigned long long)now(&t->sent_done), (unsigned long long)now(&t->sent_started));
}

/* ---- peers ---- */

static void meet(struct worker *w, unsigned peer)
{
    struct towards *t = towards(w, peer);
    uint64_t life = now(&w->board->lines[peer].life);

    if (w->is_connected[peer] || life == 0 || now(&w->board->gone[peer]) >= life)
        return;
    for (unsigned i = 0; i < PLACE_WORDS; i++)
        w->places[peer][i] = now(&w->board->lines[peer].place[i]);
    w->backend->connect(w, peer);
    atomic_store(&t->received, 0);
    atomic_store(&t->sent_started, 0);
    atomic_store(&t->sent_done, 0);
    if (now(&t->life) != life) {
        atomic_store(&t->life, 0);
        for (unsigned slot = 0; slot < SLOTS; slot++) {
            atomic_store(&t->done[slot], 0);
            atomic_store(&t->started[slot], 0);
        }
        for (unsigned i = 0; i < 2; i++) {
            atomic_store(&t->adds_done[i], 0);
            atomic_store(&t->adds_started[i], 0);
        }
    }
    atomic_store(&t->own_life, w->life);
    atomic_store(&t->life, life);
    w->is_connected[peer] = true;
}

/* Everything to the dead one has ended; its messages are taken. */
static void let_go(struct worker *w, unsigned peer)
{
    struct towards *t = towards(w, peer);

    if (!w->is_connected[peer] || !is_gone(w, peer))
        return;
    for (unsigned i = 0; w->backend->ends_unanswered && i < OPS_MAX; i++) {
        if (w->ops[i].target == peer)
            w->ops[i].in_use = false;
    }
    if (!is_idle(w, peer) || !have_come(w, peer))
        return;
    w->backend->progress(w);
    check_messages(w, peer);
    w->backend->disconnect(w, peer);
    w->is_connected[peer] = false;
    atomic_store(&t->let_go, now(&t->life));
}

/* ---- life ---- */

static bool all_idle(const struct worker *w)
{
    for (unsigned i = 0; i < w->n_ranks; i++) {
        if (!is_idle(w, i))
            return false;
    }
    return true;
}

static bool all_have_come(const struct worker *w)
{
    for (unsigned i = 0; i < w->n_ranks; i++) {
        if (!have_come(w, i))
            return false;
    }
    return true;
}

/* Everybody is idle. What is under way to one that is dead ends by itself. */
static void pause_at(struct worker *w, uint64_t number)
{
    if (!all_idle(w) || !all_have_come(w))
        return;
    atomic_store(&w->line->paused, number);
    if (now(&w->board->check) != number || now(&w->line->checked) == number) {
        sched_yield();
        return;
    }
    w->backend->progress(w);
    check_region(w, true);
    for (unsigned i = 0; i < w->n_ranks; i++)
        check_messages(w, i);
    atomic_store(&w->line->checked, number);
}

/* Is it time to leave? */
static bool is_over(const struct worker *w)
{
    if (is_doomed(w))
        return w->has_failed && (w->backend->ends_unanswered || all_idle(w));
    return now(&w->board->ends) == ENDS_SOON && all_idle(w);
}

static void begin_something(struct worker *w)
{
    unsigned peer = (unsigned)emu_random_below(&w->random, w->n_ranks);

    if (now(&w->board->ends) == ENDS_SOON || w->has_failed || !w->is_connected[peer] || is_gone(w, peer))
        return;
    if (emu_random_below(&w->random, 4) == 0)
        send(w, peer);
    else
        begin(w, peer);
}

static void work(struct worker *w)
{
    for (uint64_t n = 0; !is_over(w); n++) {
        uint64_t pause = now(&w->board->pause);

        w->backend->progress(w);
        for (unsigned i = 0; i < w->n_ranks && !w->has_failed; i++) {
            let_go(w, i);
            meet(w, i);
        }
        if (pause != 0 && !w->has_failed) {
            pause_at(w, pause);
            continue;
        }
        begin_something(w);
        if (n % 256 == 0)
            check_region(w, false);
        if (n % 16 == 0)
            sched_yield();
    }
}

/* The pages around the region are not registered. */
static void make_memory(struct worker *w)
{
    uint8_t *pages = mmap(NULL, REGION_BYTES + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    w->buffers = mmap(NULL, BUFFERS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || w->buffers == MAP_FAILED)
        _exit(1);
    memset(pages, CANARY, PAGE);
    memset(pages + PAGE + REGION_BYTES, CANARY, PAGE);
    w->region = pages + PAGE;
    for (unsigned i = 0; i < OPS_MAX; i++)
        w->ops[i].buffer = w->buffers + (size_t)i * BUFFER_BYTES;
}

static struct board *board_at(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *board = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (board == MAP_FAILED) {
        perror(path);
        _exit(2);
    }
    close(fd);
    return board;
}

int worker_main(int argc, char **argv, const struct backend *backend)
{
    static struct worker w;

    if (argc != 5) {
        fprintf(stderr, "usage: %s BOARD RANK LIFE SEED\n", argv[0]);
        return 2;
    }
    w.board = board_at(argv[1]);
    w.rank = (unsigned)strtoul(argv[2], NULL, 10) % RANKS_MAX;
    w.life = strtoull(argv[3], NULL, 10);
    w.random.state = emu_random_mix(strtoull(argv[4], NULL, 10) + w.life);
    w.n_ranks = (unsigned)now(&w.board->n_ranks);
    w.line = &w.board->lines[w.rank];
    w.backend = backend;
    make_memory(&w);
    backend->open(&w);
    atomic_store(&w.line->life, w.life);
    work(&w);
    check_region(&w, false);
    return now(&w.line->findings) == 0 ? 0 : 1;
}
