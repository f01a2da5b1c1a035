/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Portals interface of a process: queues, lists and descriptors.
 *
 *   portal index MESSAGE   receives, in order (receive.c) | anchor | overflow entry | overflow entry ...
 *   portal index CREDIT    one entry without memory, for all
 *   portal index FETCH     one entry with all memory, for gets
 *
 * The anchor takes messages that are fetched and keeps none of their bytes. Overflow entries take the others one behind
 * another (offset managed here) and go from the list when less than the longest of them has room; they come back when
 * their last message has been copied.
 *
 * Nothing is lost, because nobody sends more than fits: see README.md, "Flow control". The sizes are computed here.
 *
 * Memory that messages land in is mapped once and stays, so libportals adopts it once.
 */
#include "mpi-shim/openmpi/mtl.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <ompi/mca/rte/rte.h>
#include <opal/mca/pmix/pmix.h>

#include "libportals/src/message_layer.h"

#define LANDINGS      256u
#define WINDOW_MAX    512u
#define WINDOW_MIN    4u
#define EVENTS_OF_ALL 16384u /* of messages under way, of all peers; more where the least windows need more */
#define BLOCK_EAGERS  16u    /* the longest messages in an overflow entry */

extern mca_mtl_base_component_t mca_mtl_portals3_component;

static const ptl_process_id_t anybody = { PTL_NID_ANY, PTL_PID_ANY };

static int fail(const char *what, int code)
{
    opal_output(0, "emunic: mtl/portals3: %s: %s", what, code >= 0 && code < PTL_MAX_ERRNO ? ptl_err_str[code] : "?");
    return -1;
}

/* ---- sizes ---- */

static int clamp(int value, int least, int most)
{
    return value < least ? least : value > most ? most : value;
}

static void choose_sizes(void)
{
    mp3.n_ranks = ompi_process_info.num_procs;
    mp3.eager_limit = clamp(mp3.eager_limit, 0, 1 << 20);
    mp3.landing_limit = clamp(mp3.landing_limit, 0, 1 << 16);
    mp3.overflow_bytes = clamp(mp3.overflow_bytes, 1 << 16, 1 << 30);
    mp3.window_messages = EVENTS_OF_ALL / mp3.n_ranks;
    if (mp3.window > 0)
        mp3.window_messages = (uint32_t)mp3.window;
    mp3.window_messages = (uint32_t)clamp((int)mp3.window_messages, WINDOW_MIN, WINDOW_MAX);
    mp3.window_bytes = (uint32_t)mp3.overflow_bytes / mp3.n_ranks;
    mp3.block_bytes = (uint32_t)clamp(mp3.eager_limit, 4096, 1 << 20) * BLOCK_EAGERS;
    /* What waits lies one behind another; an entry leaves less than the longest message unused. */
    mp3.n_blocks = (uint32_t)mp3.overflow_bytes / (mp3.block_bytes - mp3.block_bytes / BLOCK_EAGERS) + 3;
}

/* ---- memory ---- */

static int make_memory(void)
{
    size_t landing_bytes = (size_t)LANDINGS * (size_t)mp3.landing_limit;

    mp3.arena_bytes = (size_t)mp3.n_blocks * mp3.block_bytes + landing_bytes;
    mp3.arena = mmap(NULL, mp3.arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mp3.arena == MAP_FAILED)
        mp3.arena = NULL;
    mp3.landings = mp3.arena ? mp3.arena + (size_t)mp3.n_blocks * mp3.block_bytes : NULL;
    mp3.blocks = calloc(mp3.n_blocks, sizeof(*mp3.blocks));
    mp3.free_landings = calloc(LANDINGS, sizeof(*mp3.free_landings));
    mp3.peers = calloc(MP3_RANKS_MAX, sizeof(struct mp3_peer *));
    if (!mp3.arena || !mp3.blocks || !mp3.free_landings || !mp3.peers)
        return fail("memory", PTL_NO_SPACE);
    for (uint32_t i = 0; i < LANDINGS; i++)
        mp3.free_landings[i] = LANDINGS - 1 - i;
    mp3.n_free_landings = mp3.landing_limit > 0 ? LANDINGS : 0;
    for (uint32_t i = 0; i < MP3_SENDS; i++)
        mp3.free_sends[i] = MP3_SENDS - 1 - i;
    mp3.n_free_sends = MP3_SENDS;
    for (uint32_t i = 0; i < MP3_FETCHES; i++)
        mp3.free_fetches[i] = MP3_FETCHES - 1 - i;
    mp3.n_free_fetches = MP3_FETCHES;
    mp3.unexpected_end = &mp3.unexpected;
    mp3.listed_end = &mp3.listed;
    mp3.done_end = &mp3.done;
    return 0;
}

/* ---- entries ---- */

static int make_queues(void)
{
    uint64_t n_messages = (uint64_t)mp3.window_messages * mp3.n_ranks;
    /* SEND_END and ACK of each send; SEND_END and REPLY of a fetch; credits to a peer and from it */
    uint64_t n_own = 2 * MP3_FLIGHTS + 2 * MP3_FETCHES + 8ull * mp3.n_ranks;
    int r = PtlEQAlloc(mp3.ni, n_messages + n_own, NULL, &mp3.queues[0]);

    if (r == PTL_OK)
        r = PtlEQAlloc(mp3.ni, 2 * n_messages + 2 * mp3.n_blocks, NULL, &mp3.queues[1]);
    if (r == PTL_OK)
        r = PtlEQAlloc(mp3.ni, MP3_SENDS, NULL, &mp3.queues[2]);
    return r == PTL_OK ? 0 : fail("event queues", r);
}

static int attach(ptl_pt_index_t pt, ptl_match_bits_t bits, ptl_match_bits_t ignore, const ptl_md_t *md,
                  ptl_handle_me_t *me_out)
{
    ptl_handle_md_t handle;

    return PtlMEMDAttach(mp3.ni, pt, anybody, bits, ignore, PTL_RETAIN, PTL_INS_AFTER, *md, PTL_RETAIN, me_out,
                         &handle);
}

static int make_entries(void)
{
    const ptl_md_t memory = { .start = (void *)(uintptr_t)MP3_BASE,
                              .length = MP3_MEMORY,
                              .threshold = PTL_MD_THRESH_INF,
                              .options = PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
                              .eq_handle = mp3.queues[2] };
    const ptl_md_t nothing = { .threshold = PTL_MD_THRESH_INF,
                               .options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE,
                               .eq_handle = mp3.queues[1] };
    ptl_md_t credits = nothing;
    ptl_md_t own = memory;
    ptl_md_t silent = memory;
    ptl_handle_me_t me;
    int r;

    credits.options |= PTL_MD_EVENT_START_DISABLE;
    credits.eq_handle = mp3.queues[0];
    own.options = PTL_MD_EVENT_START_DISABLE;
    own.eq_handle = mp3.queues[0];
    silent.options = PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE;
    r = PtlMDBind(mp3.ni, own, PTL_RETAIN, &mp3.memory);
    if (r == PTL_OK)
        r = PtlMDBind(mp3.ni, silent, PTL_RETAIN, &mp3.silent_memory);
    if (r == PTL_OK)
        r = attach(MP3_PT_FETCH, 0, ~(ptl_match_bits_t)0, &memory, &me);
    if (r == PTL_OK)
        r = attach(MP3_PT_CREDIT, 0, ~(ptl_match_bits_t)0, &credits, &me);
    if (r == PTL_OK)
        r = attach(MP3_PT_MESSAGE, MP3_BIT_FETCH, ~MP3_BIT_FETCH, &nothing, &mp3.anchor);
    if (r != PTL_OK)
        return fail("entries", r);
    (void)p3_memory_stays(mp3.ni, mp3.arena, mp3.arena_bytes);
    p3_rounds_begin(mp3.ni);
    p3_inboxes_open(mp3.ni, mp3_take_short);
    for (uint32_t i = 0; i < mp3.n_blocks; i++) {
        mp3.blocks[i].start = mp3.arena + (size_t)i * mp3.block_bytes;
        mp3_attach_block(&mp3.blocks[i]);
    }
    return 0;
}

void mp3_attach_block(struct mp3_block *block)
{
    const ptl_md_t md = { .start = block->start,
                          .length = mp3.block_bytes,
                          .threshold = PTL_MD_THRESH_INF,
                          .max_size = (ptl_size_t)mp3.eager_limit,
                          .options = PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_EVENT_AUTO_UNLINK_ENABLE,
                          .user_ptr = block,
                          .eq_handle = mp3.queues[1] };
    int r = PtlMEMDAttach(mp3.ni, MP3_PT_MESSAGE, anybody, 0, ~MP3_BIT_FETCH, PTL_UNLINK, PTL_INS_AFTER, md, PTL_UNLINK,
                          &block->entry, &block->descriptor);

    if (r != PTL_OK)
        mp3_fail("overflow entry: %s", ptl_err_str[r]);
}

/* ---- life ---- */

static int tell_others(void)
{
    int r = PtlGetId(mp3.ni, &mp3.id);

    if (r != PTL_OK)
        return fail("process id", r);
    OPAL_MODEX_SEND(r, OPAL_PMIX_GLOBAL, &mca_mtl_portals3_component.mtl_version, &mp3.id, sizeof(mp3.id));
    if (r == OMPI_SUCCESS)
        return 0;
    opal_output(0, "emunic: mtl/portals3: modex: %d", r);
    return -1;
}

int mp3_open(void)
{
    int n_interfaces;
    int r = PtlInit(&n_interfaces);

    if (r != PTL_OK)
        return fail("PtlInit", r);
    r = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &mp3.ni);
    if (r != PTL_OK)
        return fail(r == PTL_IFACE_DUP ? "the program has opened Portals before MPI" : "PtlNIInit", r);
    OBJ_CONSTRUCT(&mp3.mutex, opal_mutex_t);
    mp3.is_open = true;
    choose_sizes();
    if (make_memory() == 0 && make_queues() == 0 && make_entries() == 0 && tell_others() == 0)
        return 0;
    mp3_close();
    return -1;
}

static void free_peers(void)
{
    for (uint32_t pid = 0; mp3.peers && pid < MP3_RANKS_MAX; pid++) {
        while (mp3.peers[pid]) {
            struct mp3_peer *peer = mp3.peers[pid];

            mp3.peers[pid] = peer->next_of_pid;
            p3_way_close(peer->way);
            free(peer);
        }
    }
    free(mp3.peers);
    mp3.peers = NULL;
}

void mp3_close(void)
{
    if (!mp3.is_open)
        return;
    mp3.is_open = false;
    PtlNIFini(mp3.ni);
    PtlFini();
    free_peers();
    while (mp3.unexpected) {
        struct mp3_unexpected *message = mp3.unexpected;

        mp3.unexpected = message->next;
        free(message);
    }
    free(mp3.blocks);
    free(mp3.free_landings);
    if (mp3.arena)
        munmap(mp3.arena, mp3.arena_bytes);
    OBJ_DESTRUCT(&mp3.mutex);
}
