/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A block transfer that emunic and its initiator move together: both sides over one segment, in one thread, in any
 * order of their turns. The initiator's words may be anything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emunic/abi/segment.h"
#include "emunic/abi/table.h"
#include "emunic/client/direct.h"
#include "emunic/client/lane.h"
#include "emunic/client/port.h"
#include "emunic/client/share.h"
#include "emunic/daemon/commands/datapath.h"
#include "emunic/daemon/commands/shared_transfer.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/engine/share.h"

#define SLICE_BYTES 4096u
#define N_SLICES    40u
#define LIMIT_BYTES (2 * SLICE_BYTES)
#define LAST_BYTES  24u /* of the last slice */
#define TURNS_MAX   (4 * N_SLICES)

static struct emu_server server;
static struct emu_port_end end;
static struct emu_transfer transfer;
static struct emu_segment *segment;
static struct emu_cmd slots[EMU_RING_SLOTS];
static struct emu_table table;
static struct emu_gate gate;
static struct emu_port port;
static unsigned n_moved[N_SLICES]; /* how often, by whomever */
static unsigned n_rings;
static bool cannot_move;

/* ---- what the initiator's side needs of others ---- */

static void note_moved(uint64_t at, uint64_t bytes)
{
    assert_int_equal(at % SLICE_BYTES, 0);
    assert_true(at / SLICE_BYTES < N_SLICES);
    assert_int_equal(bytes, at / SLICE_BYTES == N_SLICES - 1 ? LAST_BYTES : SLICE_BYTES);
    n_moved[at / SLICE_BYTES]++;
}

bool emu_direct_move(struct emu_direct *direct, const struct emu_cmd *cmd)
{
    (void)direct;
    if (cannot_move)
        return false;
    assert_int_equal(cmd->events, 0);
    assert_int_equal(cmd->remote_addr - 0x10000, cmd->local_addr);
    note_moved(cmd->local_addr, cmd->length_bytes);
    return true;
}

void emu_port_ring(struct emu_port *of)
{
    assert_ptr_equal(of, &port);
    n_rings++;
}

/* ---- the pair ---- */

static int begin(void **state)
{
    struct emu_cmd *cmd = &slots[0];

    (void)state;
    memset(&end, 0, sizeof(end));
    memset(&transfer, 0, sizeof(transfer));
    memset(&port, 0, sizeof(port));
    memset(&table, 0, sizeof(table));
    memset(n_moved, 0, sizeof(n_moved));
    n_rings = 0;
    cannot_move = false;
    segment = aligned_alloc(64, sizeof(*segment));
    memset(segment, 0, sizeof(*segment));
    server.settings.slice_bytes = SLICE_BYTES;
    end.server = &server;
    end.segment = segment;
    gate = (struct emu_gate){ .table = &table, .segment = segment, .tail = &port.tail };
    port.table = &table;
    port.segment = segment;
    port.slots = slots;
    port.gate = &gate;
    port.settings.direct_limit_bytes = LIMIT_BYTES;
    *cmd = (struct emu_cmd){ .op = EMU_OP_PUT, .length_bytes = (N_SLICES - 1) * SLICE_BYTES + LAST_BYTES };
    cmd->remote_addr = 0x10000;
    emu_handed_add(&port);
    port.tail++;
    transfer.transaction.cmd = *cmd;
    atomic_store(&segment->head, port.tail);
    atomic_store(&segment->unfinished, 1);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    emu_handed_close(&port.handed);
    free(segment);
    return 0;
}

/* emunic's turn, with the step that the data path would make. False: the transfer is over. */
static bool turn(void)
{
    struct emu_transaction *t = &transfer.transaction;
    enum emu_shared_turn what;
    uint64_t left;

    if (emu_shared_waits(&end, &transfer))
        return true;
    what = emu_shared_turn(&end, &transfer);
    if (what != EMU_SHARED_STEP)
        return what == EMU_SHARED_WAITS;
    left = t->cmd.length_bytes - t->done_bytes;
    note_moved(t->done_bytes, left < SLICE_BYTES ? left : SLICE_BYTES);
    t->done_bytes += left < SLICE_BYTES ? left : SLICE_BYTES;
    return t->done_bytes < t->cmd.length_bytes;
}

static void finish_alone(void)
{
    for (unsigned i = 0; turn(); i++)
        assert_true(i < TURNS_MAX);
    assert_int_equal(transfer.transaction.done_bytes, transfer.transaction.cmd.length_bytes);
    emu_shared_close(&end, &transfer);
}

static void require_each_once(void)
{
    for (unsigned i = 0; i < N_SLICES; i++)
        assert_int_equal(n_moved[i], 1);
}

static void require_each(void)
{
    for (unsigned i = 0; i < N_SLICES; i++)
        assert_true(n_moved[i] >= 1);
}

/* ---- tests ---- */

static void test_emunic_alone_moves_all(void **state)
{
    (void)state;
    finish_alone();
    require_each_once();
}

static void test_initiator_moves_all_that_emunic_leaves(void **state)
{
    (void)state;
    assert_false(emu_port_help(&port)); /* not yet open */
    assert_true(turn());
    while (emu_port_help(&port))
        ;
    finish_alone();
    require_each_once();
}

static void test_each_slice_is_moved_once_in_any_order_of_turns(void **state)
{
    (void)state;
    srand(7);
    for (unsigned round = 0; round < 200; round++) {
        begin(NULL);
        for (unsigned i = 0; turn(); i++) {
            assert_true(i < TURNS_MAX);
            for (int helps = rand() % 4; helps > 0; helps--)
                emu_port_help(&port);
        }
        require_each_once();
        if (round < 199)
            finish(NULL);
    }
}

/* The slice waits for a mover: emunic comes again for the same one. */
static void test_a_slice_that_waits_is_not_taken_twice(void **state)
{
    (void)state;
    assert_int_equal(emu_shared_turn(&end, &transfer), EMU_SHARED_STEP);
    assert_int_equal(emu_shared_turn(&end, &transfer), EMU_SHARED_STEP);
    while (emu_port_help(&port))
        ;
    finish_alone();
    require_each_once();
}

static void test_emunic_is_called_behind_the_last_slice_alone(void **state)
{
    (void)state;
    turn();
    atomic_store(&table.emunic_sleeps, 1);
    while (emu_port_help(&port))
        assert_int_equal(n_rings, emu_share_of(atomic_load(&segment->share)).first ==
                                      emu_share_of(atomic_load(&segment->share)).end);
    assert_int_equal(n_rings, 1);
}

static void test_what_cannot_be_moved_here_emunic_moves(void **state)
{
    (void)state;
    turn();
    emu_port_help(&port);
    cannot_move = true;
    assert_true(emu_port_help(&port));  /* takes one, and leaves it */
    assert_false(emu_port_help(&port)); /* takes no more */
    finish_alone();
    require_each();
}

static void test_nothing_is_taken_while_the_gate_is_closed(void **state)
{
    (void)state;
    turn();
    atomic_store(&table.flags, EMU_TABLE_NOT_DIRECT);
    assert_false(emu_port_help(&port));
    atomic_store(&table.flags, 0);
    assert_true(emu_port_help(&port));
}

static void test_initiator_looks_no_more_when_all_is_over(void **state)
{
    (void)state;
    assert_true(emu_handed_is_any(&port.handed));
    finish_alone();
    atomic_store(&segment->unfinished, 0);
    assert_false(emu_port_help(&port));
    assert_false(emu_handed_is_any(&port.handed));
}

static void test_one_transfer_is_open_at_a_time(void **state)
{
    struct emu_transfer second = { .transaction.cmd = slots[0], .number = 1 };
    uint64_t word;

    (void)state;
    turn();
    word = atomic_load(&segment->share);
    assert_int_equal(emu_shared_turn(&end, &second), EMU_SHARED_STEP);
    assert_int_equal(atomic_load(&segment->share), word);
    finish_alone();
    assert_int_equal(atomic_load(&segment->share), 0);
    emu_shared_open(&end, &second);
    assert_int_equal(segment->share_command, 1);
    assert_false(emu_share_of(atomic_load(&segment->share)).serial == emu_share_of(word).serial);
}

static void test_transfers_with_a_flag_word_stay_with_emunic(void **state)
{
    (void)state;
    transfer.transaction.cmd.flags = EMU_CMD_FLAG;
    turn();
    assert_int_equal(atomic_load(&segment->share), 0);
}

/* Whatever the words say: emunic goes on, and believes only that slices were moved which it has not moved itself. */
static void test_any_words_do_no_harm(void **state)
{
    (void)state;
    srand(11);
    for (unsigned round = 0; round < 2000; round++) {
        bool has_lied = false;

        begin(NULL);
        for (unsigned i = 0; i < TURNS_MAX && turn(); i++) {
            struct emu_share seen = emu_share_of(atomic_load(&segment->share));

            switch (rand() % 12) {
            case 0:
                seen.end = (uint32_t)(rand() % (2 * N_SLICES));
                break;
            case 1:
                seen.first = (uint32_t)(rand() % (2 * N_SLICES));
                break;
            case 2:
                seen.serial = (uint16_t)rand();
                break;
            default:
                continue;
            }
            has_lied = true;
            atomic_store(&segment->share, emu_share_word(seen));
            atomic_store(&segment->share_moved, (uint64_t)rand() << 32 | (uint64_t)rand());
        }
        assert_true(transfer.transaction.done_bytes <= transfer.transaction.cmd.length_bytes);
        if (!has_lied)
            require_each_once();
        if (round < 1999)
            finish(NULL);
    }
}

/* Slices taken, and never counted: the transfer waits, and costs no turns. */
static void test_slices_that_are_taken_and_not_moved_are_waited_for(void **state)
{
    struct emu_share seen;

    (void)state;
    turn();
    seen = emu_share_of(atomic_load(&segment->share));
    seen.end = seen.first;
    atomic_store(&segment->share, emu_share_word(seen));
    assert_true(turn());
    assert_true(emu_shared_waits(&end, &transfer));
    atomic_store(&segment->share_moved, emu_share_moved(seen.serial, N_SLICES - seen.end, false));
    assert_false(emu_shared_waits(&end, &transfer));
    assert_false(turn());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_emunic_alone_moves_all, begin, finish),
        cmocka_unit_test_setup_teardown(test_initiator_moves_all_that_emunic_leaves, begin, finish),
        cmocka_unit_test_setup_teardown(test_each_slice_is_moved_once_in_any_order_of_turns, NULL, finish),
        cmocka_unit_test_setup_teardown(test_a_slice_that_waits_is_not_taken_twice, begin, finish),
        cmocka_unit_test_setup_teardown(test_emunic_is_called_behind_the_last_slice_alone, begin, finish),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_moved_here_emunic_moves, begin, finish),
        cmocka_unit_test_setup_teardown(test_nothing_is_taken_while_the_gate_is_closed, begin, finish),
        cmocka_unit_test_setup_teardown(test_initiator_looks_no_more_when_all_is_over, begin, finish),
        cmocka_unit_test_setup_teardown(test_one_transfer_is_open_at_a_time, begin, finish),
        cmocka_unit_test_setup_teardown(test_transfers_with_a_flag_word_stay_with_emunic, begin, finish),
        cmocka_unit_test_setup_teardown(test_any_words_do_no_harm, NULL, finish),
        cmocka_unit_test_setup_teardown(test_slices_that_are_taken_and_not_moved_are_waited_for, begin, finish),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
