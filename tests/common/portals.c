/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/common/portals.h"

#include <pmi.h>

int px_rank;
int px_size;
ptl_handle_ni_t px_ni = PTL_INVALID_HANDLE;
ptl_ni_limits_t px_limits;
ptl_process_id_t px_self;
ptl_process_id_t px_next;
ptl_process_id_t px_previous;
const ptl_process_id_t px_anybody = { PTL_NID_ANY, PTL_PID_ANY };

static ptl_ni_limits_t *wanted;
static ptl_process_id_t *ids;

void px_barrier(void)
{
    assert_int_equal(PMI_Barrier(), PMI_SUCCESS);
}

void px_exchange(uint64_t mine, uint64_t *all_out)
{
    static unsigned round;
    char space[256], key[64], value[64];

    assert_int_equal(PMI_KVS_Get_my_name(space, sizeof(space)), PMI_SUCCESS);
    snprintf(key, sizeof(key), "px-%u-%d", round, px_rank);
    snprintf(value, sizeof(value), "%llx", (unsigned long long)mine);
    assert_int_equal(PMI_KVS_Put(space, key, value), PMI_SUCCESS);
    assert_int_equal(PMI_KVS_Commit(space), PMI_SUCCESS);
    px_barrier();
    for (int r = 0; r < px_size; r++) {
        snprintf(key, sizeof(key), "px-%u-%d", round, r);
        assert_int_equal(PMI_KVS_Get(space, key, value, sizeof(value)), PMI_SUCCESS);
        all_out[r] = strtoull(value, NULL, 16);
    }
    round++;
}

static ptl_pt_index_t settling;
static ptl_handle_eq_t settle_eq = PTL_EQ_NONE;
static ptl_handle_md_t settle_md;

void px_settle(void)
{
    const ptl_process_id_t targets[] = { px_self, px_next, px_previous };

    for (size_t i = 0; i < COUNT_OF(targets); i++)
        assert_int_equal(PtlPut(settle_md, PTL_ACK_REQ, targets[i], settling, 0, 0, 0, 0), PTL_OK);
    for (size_t i = 0; i < COUNT_OF(targets); i++)
        px_take_kind(settle_eq, PTL_EVENT_ACK);
    px_barrier();
}

ptl_process_id_t px_id_of(int rank)
{
    return ids[rank];
}

void px_open(ptl_ni_limits_t *desired)
{
    uint64_t *all = calloc((size_t)px_size, sizeof(*all));
    int n_interfaces = 0;
    ptl_md_t md;

    assert_non_null(all);
    assert_int_equal(PtlInit(&n_interfaces), PTL_OK);
    assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, desired, &px_limits, &px_ni), PTL_OK);
    assert_int_equal(PtlGetId(px_ni, &px_self), PTL_OK);
    px_exchange((uint64_t)px_self.nid << 32 | px_self.pid, all);
    ids = calloc((size_t)px_size, sizeof(*ids));
    assert_non_null(ids);
    for (int r = 0; r < px_size; r++)
        ids[r] = (ptl_process_id_t){ (ptl_nid_t)(all[r] >> 32), (ptl_pid_t)all[r] };
    free(all);
    px_next = ids[(px_rank + 1) % px_size];
    px_previous = ids[(px_rank + px_size - 1) % px_size];

    settling = (ptl_pt_index_t)px_limits.max_pt_index;
    settle_eq = px_eq(64);
    md = px_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_TRUNCATE, PTL_MD_THRESH_INF, PTL_EQ_NONE);
    px_entry(settling, 0, 0, PTL_RETAIN, md, PTL_RETAIN);
    md = px_md(NULL, 0, PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE, PTL_MD_THRESH_INF, settle_eq);
    settle_md = px_bind(md, PTL_RETAIN);
    px_barrier();
}

void px_close(void)
{
    px_settle();
    assert_int_equal(PtlNIFini(px_ni), PTL_OK);
    px_ni = PTL_INVALID_HANDLE;
    PtlFini();
    free(ids);
    ids = NULL;
    px_barrier();
}

/* ---- objects ---- */

ptl_handle_eq_t px_eq(ptl_size_t count)
{
    ptl_handle_eq_t eq = PTL_INVALID_HANDLE;

    assert_int_equal(PtlEQAlloc(px_ni, count, NULL, &eq), PTL_OK);
    return eq;
}

ptl_md_t px_md(void *start, ptl_size_t length, unsigned options, int threshold, ptl_handle_eq_t eq)
{
    static uintptr_t running = 0x1000;

    running += 16;
    return (ptl_md_t){ .start = start,
                       .length = length,
                       .threshold = threshold,
                       .max_size = 0x5a5a,
                       .options = options,
                       .user_ptr = (void *)running,
                       .eq_handle = eq };
}

ptl_handle_md_t px_bind(ptl_md_t md, ptl_unlink_t unlink)
{
    ptl_handle_md_t mdh = PTL_INVALID_HANDLE;

    assert_int_equal(PtlMDBind(px_ni, md, unlink, &mdh), PTL_OK);
    return mdh;
}

struct px_entry px_entry(ptl_pt_index_t pt, ptl_match_bits_t bits, ptl_match_bits_t ignore, ptl_unlink_t me_unlink,
                         ptl_md_t md, ptl_unlink_t md_unlink)
{
    struct px_entry entry = { PTL_INVALID_HANDLE, PTL_INVALID_HANDLE, md };

    assert_int_equal(PtlMEAttach(px_ni, pt, px_anybody, bits, ignore, me_unlink, PTL_INS_AFTER, &entry.me), PTL_OK);
    assert_int_equal(PtlMDAttach(entry.me, md, md_unlink, &entry.mdh), PTL_OK);
    return entry;
}

/* ---- events ---- */

#if PX_CRAY
extern const char *ptl_event_str[]; /* as most programs declare it; test_debug.c does as the others */
#endif

static const char *kind_name(ptl_event_kind_t kind)
{
#if PX_CRAY
    return kind <= PTL_EVENT_UNLINK ? ptl_event_str[kind] : "no kind";
#else
    return PtlEventKindStr(kind);
#endif
}

ptl_event_t px_take(ptl_handle_eq_t eq)
{
    ptl_event_t event;
    int which = -1;
    int rc = PtlEQPoll(&eq, 1, PX_PATIENCE_MS, &event, &which);

    if (rc != PTL_OK)
        fail_msg("%s instead of an event", ptl_err_str[rc]);
    assert_int_equal(which, 0);
    return event;
}

ptl_event_t px_take_kind(ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
    ptl_event_t event = px_take(eq);

    if (event.type != kind)
        fail_msg("%s instead of %s", kind_name(event.type), kind_name(kind));
    assert_int_equal(event.ni_fail_type, PTL_NI_OK);
    return event;
}

void px_nothing(ptl_handle_eq_t eq)
{
    ptl_event_t event;
    int rc = PtlEQGet(eq, &event);

    if (rc == PTL_OK)
        fail_msg("%s, where nothing should be", kind_name(event.type));
    assert_int_equal(rc, PTL_EQ_EMPTY);
}

void px_expect(const ptl_event_t *event, const struct px_want *want)
{
    int left = want->threshold > 0 ? want->threshold - 1 : want->threshold;
    ptl_uid_t uid = 0;

    if (event->type != want->kind)
        fail_msg("%s instead of %s", kind_name(event->type), kind_name(want->kind));
    assert_int_equal(event->ni_fail_type, PTL_NI_OK);
    assert_int_equal(event->initiator.nid, want->initiator.nid);
    assert_int_equal(event->initiator.pid, want->initiator.pid);
    assert_int_equal(PtlGetUid(px_ni, &uid), PTL_OK);
    assert_int_equal(event->uid, uid); /* one user's job */
    assert_int_equal(event->pt_index, want->pt);
    assert_true(event->match_bits == want->bits);
    assert_true(event->rlength == want->rlength);
    assert_true(event->mlength == want->mlength);
    assert_true(event->offset == want->offset);
    assert_true(event->hdr_data == want->hdr_data);
    assert_int_equal(event->md_handle, want->mdh);
    assert_ptr_equal(event->md.start, want->md.start);
    assert_true(event->md.length == want->md.length);
    assert_true(event->md.max_size == want->md.max_size);
    assert_int_equal(event->md.options, want->md.options);
    assert_ptr_equal(event->md.user_ptr, want->md.user_ptr);
    assert_int_equal(event->md.eq_handle, want->md.eq_handle);
    assert_int_equal(event->md.threshold, PX_CRAY ? want->threshold : left);
}

ptl_event_t px_expect_both(ptl_handle_eq_t eq, struct px_want want)
{
    ptl_event_t start = px_take(eq), end;

    px_expect(&start, &want);
    end = px_take(eq);
    want.kind++;
    px_expect(&end, &want);
    assert_int_equal(start.link, end.link);
    assert_int_equal(start.sequence + 1, end.sequence);
    return end;
}

ptl_sr_value_t px_register(ptl_sr_index_t index)
{
    ptl_sr_value_t value = 0;

    assert_int_equal(PtlNIStatus(px_ni, index, &value), PTL_OK);
    return value;
}

/* ---- memory ---- */

static uint8_t pattern(uint64_t position, uint64_t seed)
{
    uint64_t x = (position + 1) * 0x9e3779b97f4a7c15ull ^ (seed + 1) * 0xbf58476d1ce4e5b9ull;

    return (uint8_t)(x >> 32 ^ x >> 11);
}

void px_fill(void *memory, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)memory)[i] = pattern(i, seed);
}

void px_same(const void *memory, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i++) {
        if (((const uint8_t *)memory)[i] != pattern(i, seed))
            fail_msg("byte %zu of %zu is 0x%02x, not 0x%02x", i, bytes, ((const uint8_t *)memory)[i], pattern(i, seed));
    }
}

void px_all(const void *memory, size_t bytes, uint8_t value)
{
    for (size_t i = 0; i < bytes; i++) {
        if (((const uint8_t *)memory)[i] != value)
            fail_msg("byte %zu of %zu is 0x%02x, not 0x%02x", i, bytes, ((const uint8_t *)memory)[i], value);
    }
}

/* ---- the program ---- */

static int set_up(void **state)
{
    int spawned = 0;

    (void)state;
    if (PMI_Init(&spawned) != PMI_SUCCESS || PMI_Get_rank(&px_rank) != PMI_SUCCESS ||
        PMI_Get_size(&px_size) != PMI_SUCCESS)
        return -1;
    if (wanted != PX_CLOSED)
        px_open(wanted);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (wanted != PX_CLOSED)
        px_close();
    return PMI_Finalize() == PMI_SUCCESS ? 0 : -1;
}

int px_run_group(const char *name, const struct CMUnitTest *tests, size_t n_tests, ptl_ni_limits_t *desired)
{
    const char *rank = getenv("EMUNIC_RANK");

    wanted = desired;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (rank && strcmp(rank, "0") != 0 && !freopen("/dev/null", "w", stdout))
        return 1;
    setenv("CMOCKA_TEST_ABORT", "1", 1);
    return _cmocka_run_group_tests(name, tests, n_tests, set_up, tear_down) == 0 ? 0 : 1;
}
