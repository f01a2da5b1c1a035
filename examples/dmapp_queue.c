/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue behind a lock: work that all PEs put into, and take from, the memory of one.
 *
 *   dmapp_queue [-n ITEMS]
 *
 * PE 0 has a ring of 64 items, its head and its tail, and a lock; nothing of it is touched without holding the
 * lock, and everything by gets and puts, also by PE 0 itself. Each PE puts ITEMS numbered items (default 200) and
 * takes as many, in turn. What it puts is completed by a gsync before it releases the lock, because releasing
 * completes nothing by itself.
 *
 * Every item must come out once, and those of one PE in their order.
 */
#include "examples/dmapp_common.h"

#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define SLOTS 64u

struct queue {
    dmapp_lock_desc_t lock; /* zero: free */
    uint64_t head;          /* items ever taken */
    uint64_t tail;          /* items ever put */
    uint64_t items[SLOTS];  /* PE << 32 | number */
};

static dmapp_jobinfo_t job;
static struct queue *queue; /* the same address in each PE; PE 0's counts */

static uint64_t get_word(uint64_t *at)
{
    uint64_t word;

    EX_DMAPP(dmapp_get(&word, at, &job.sheap_seg, 0, 1, DMAPP_QW));
    return word;
}

/* False: full. Lock held. */
static int put_item(uint64_t item)
{
    uint64_t tail = get_word(&queue->tail);
    uint64_t next = tail + 1;

    if (tail - get_word(&queue->head) == SLOTS)
        return 0;
    EX_DMAPP(dmapp_put_nbi(&queue->items[tail % SLOTS], &job.sheap_seg, 0, &item, 1, DMAPP_QW));
    EX_DMAPP(dmapp_put_nbi(&queue->tail, &job.sheap_seg, 0, &next, 1, DMAPP_QW));
    EX_DMAPP(dmapp_gsync_wait());
    return 1;
}

/* False: empty. Lock held. */
static int take_item(uint64_t *item)
{
    uint64_t head = get_word(&queue->head);
    uint64_t next = head + 1;

    if (head == get_word(&queue->tail))
        return 0;
    *item = get_word(&queue->items[head % SLOTS]);
    EX_DMAPP(dmapp_put(&queue->head, &job.sheap_seg, 0, &next, 1, DMAPP_QW));
    return 1;
}

/* Items of this PE, and how far it has come. */
struct share {
    uint64_t n_items;
    uint64_t n_put;
    uint64_t n_taken;
    uint64_t *seen;   /* how often this PE has taken each PE's items: the last number, plus one */
    uint64_t *totals; /* in PE 0: items taken, by sender */
};

/* Puts one item and takes one, if the queue has room and something in it. False: neither. */
static int move_items(struct share *s)
{
    dmapp_lock_handle_t handle;
    uint64_t item;
    int moved = 0;

    EX_DMAPP(dmapp_lock_acquire(&queue->lock, &job.sheap_seg, 0, 0, &handle));
    if (s->n_put < s->n_items && put_item((uint64_t)job.pe << 32 | s->n_put)) {
        s->n_put++;
        moved = 1;
    }
    if (s->n_taken < s->n_items && take_item(&item)) {
        uint64_t sender = item >> 32;
        uint64_t number = item & UINT32_MAX;

        EX_EXPECT(sender < (uint64_t)job.npes && number >= s->seen[sender]);
        s->seen[sender] = number + 1;
        EX_DMAPP(dmapp_aadd_qw_nbi(&s->totals[sender], &job.sheap_seg, 0, (int64_t)(1 + (number << 20))));
        s->n_taken++;
        moved = 1;
    }
    EX_DMAPP(dmapp_lock_release(handle, 0));
    return moved;
}

/* In PE 0: each item once, by their number and the sum of theirs. Returns the status of the program. */
static int report(const struct share *s)
{
    int status = 0;

    for (int pe = 0; pe < job.npes; pe++)
        status |= s->totals[pe] != s->n_items + (s->n_items * (s->n_items - 1) / 2 << 20);
    printf("%d PEs, %llu items each: %s\n", job.npes, (unsigned long long)s->n_items,
           status ? "items lost or taken twice" : "all taken once");
    return status;
}

int main(int argc, char **argv)
{
    struct share s = { .n_items = 200 };
    int option;
    int status = 0;

    while ((option = getopt(argc, argv, "n:")) != -1) {
        if (option == 'n')
            s.n_items = strtoull(optarg, NULL, 0);
        if (option == '?' || s.n_items < 1 || s.n_items >> 31 != 0) {
            fprintf(stderr, "usage: dmapp_queue [-n ITEMS]\n");
            return 2;
        }
    }
    EX_DMAPP(dmapp_init(NULL, NULL));
    EX_DMAPP(dmapp_get_jobinfo(&job));
    queue = dmapp_sheap_malloc(sizeof(*queue));
    s.totals = dmapp_sheap_malloc(sizeof(*s.totals) * (size_t)job.npes);
    s.seen = calloc((size_t)job.npes, sizeof(*s.seen));
    EX_EXPECT(queue && s.totals && s.seen);
    memset(queue, 0, sizeof(*queue));
    memset(s.totals, 0, sizeof(*s.totals) * (size_t)job.npes);
    ex_barrier();

    while (s.n_put < s.n_items || s.n_taken < s.n_items) {
        if (!move_items(&s))
            sched_yield();
    }
    EX_DMAPP(dmapp_gsync_wait());
    ex_barrier();
    if (job.pe == 0)
        status = report(&s);
    free(s.seen);
    EX_DMAPP(dmapp_finalize());
    return status;
}
