/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trees of collective engines for libraries above uGNI: over a group of processes that can talk to each other already.
 *
 *   group (each has a NIC handle) ── cet_build ──▶ tree ── cet_reduce, as often as one likes ──▶ cet_destroy
 *
 * Engines form a heap: engine e has the engines e * CHILDREN + 1 ... below it, and members fill the places that engines
 * leave, in their order. The first member of a node hosts an engine, as long as engines are needed. A group fits if it
 * has enough nodes and each of those has an engine left.
 *
 * Thread rule: any thread may build. One tree is one thread's at a time.
 */
#ifndef MPI_SHIM_CE_TREE_H
#define MPI_SHIM_CE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gni_pub.h>

/* The NIC handle of a member. */
struct cet_place {
    uint32_t address;
    uint32_t instance;
};

/*
 * All members, from one's side.
 *
 * share     All members call it with as many words; each becomes the bitwise or of all members' words. It also is a
 *           barrier: nobody comes out before the last has come in. False: it failed.
 * progress  One step of a wait.
 */
struct cet_group {
    int n;
    int me;
    const struct cet_place *places; /* borrowed while the tree is built: of each member */
    bool (*share)(void *arg, uint64_t *words, size_t n);
    void (*progress)(void);
    void *arg;
};

struct cet_tree;

/* What all members hand in to one reduction: the same command and mode, and their own values. */
struct cet_operands {
    gni_ce_cmd_type_t command;
    uint32_t mode;
    uint64_t values[2];
};

/* All members call it. NULL, then on all of them: too few nodes or engines, or a member lacks memory. */
struct cet_tree *cet_build(gni_nic_handle_t nic, const struct cet_group *group);

/*
 * All members call it. The results are as the NIC gives them; members get the same bits, sums in the tree's order.
 *
 * Returns GNI_RC_SUCCESS, or GNI_RC_TRANSACTION_ERROR: a member of the tree cannot be reached (any more), or what
 * GNI_PostFma() says. Exceptions of floating point are no failure.
 */
gni_return_t cet_reduce(struct cet_tree *tree, const struct cet_operands *operands, uint64_t results_out[2]);

/* When no member waits in it any more. NULL: nothing. */
void cet_destroy(struct cet_tree *tree);

/* Instead, behind the end of the NIC handle, which ends engines, queues and registrations: the memory alone. */
void cet_forget(struct cet_tree *tree);

#endif
