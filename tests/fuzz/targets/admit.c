/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake on a connection between hosts, before anybody else may read from it: a caller and one who is called,
 * both with the key, and a stranger between them who changes, cuts and adds bytes.
 *
 * The first byte: does the input take the caller's place (its bytes are all that the called one hears), the called
 * one's, or is it a list of changes (message, place, value)? Whoever has heard other words than were said is not done.
 */
#include <string.h>

#include "emunic/transport/admit.h"
#include "tests/fuzz/targets/target.h"

#define MESSAGES    3u
#define CHANGES_MAX 8u

static const struct emu_admit_config configs[2] = {
    { .key = { 1, 2, 3, 4 }, .host = 1, .n_hosts = 4 },
    { .key = { 1, 2, 3, 4 }, .host = 0, .n_hosts = 4 },
};
static const uint8_t addresses[2][EMU_ADMIT_ADDRESS_BYTES] = { { 1 }, { 2 } };

static void begin(struct emu_admit sides[2])
{
    for (unsigned i = 0; i < 2; i++)
        emu_admit_begin(&sides[i], &configs[i], i == 0, addresses[0], addresses[1]);
}

/* All of the input, in pieces as they are wanted. */
static void hear_all(struct emu_admit *side, struct fuzz_bytes *in)
{
    int r = EMU_ADMIT_MORE;

    while (r == EMU_ADMIT_MORE && in->left > 0) {
        uint8_t bytes[EMU_ADMIT_ANSWER_BYTES];
        uint32_t wanted = emu_admit_wants(side);
        uint32_t n = 1 + fuzz_u8(in) % (wanted > 0 ? wanted : 1);

        fuzz_require(wanted > 0 && wanted <= sizeof(bytes), "one that is not done wants something");
        n = n < wanted ? n : wanted;
        fuzz_take(in, bytes, n);
        r = emu_admit_take(side, bytes, n);
        side->n_out = 0;
    }
    fuzz_require(r != EMU_ADMIT_DONE, "nobody gets in without the key");
    fuzz_count(r >= 0);
}

struct change {
    uint8_t message;
    uint8_t at;
    uint8_t value;
};

/* One message, as the stranger leaves it. True: it was what was said. */
static bool carry(struct emu_admit *from, struct emu_admit *to, unsigned number, const struct change *changes, int *r)
{
    uint8_t said[EMU_ADMIT_ANSWER_BYTES];
    uint8_t heard[EMU_ADMIT_ANSWER_BYTES];
    uint32_t n = from->n_out;

    memcpy(said, from->out, n);
    memcpy(heard, said, n);
    from->n_out = 0;
    for (unsigned i = 0; i < CHANGES_MAX && n > 0; i++) {
        if (changes[i].message == number + 1)
            heard[changes[i].at % n] ^= changes[i].value;
    }
    *r = n == 0 ? -1 : emu_admit_take(to, heard, n);
    return memcmp(said, heard, n) == 0;
}

static void change_some(struct fuzz_bytes *in)
{
    struct change changes[CHANGES_MAX] = { 0 };
    struct emu_admit sides[2];
    bool is_true = true;
    int r = EMU_ADMIT_MORE;

    begin(sides);
    for (unsigned i = 0; i < CHANGES_MAX && in->left > 0; i++)
        changes[i] =
            (struct change){ .message = fuzz_u8(in) % (MESSAGES + 1), .at = fuzz_u8(in), .value = fuzz_u8(in) };
    for (unsigned i = 0; i < MESSAGES && r >= 0; i++) {
        is_true &= carry(&sides[i % 2], &sides[(i + 1) % 2], i, changes, &r);
        fuzz_require(is_true || r != EMU_ADMIT_DONE, "who has heard other words is not done");
    }
    fuzz_require(!is_true || r == EMU_ADMIT_DONE, "two who have the key get through");
    fuzz_count(r == EMU_ADMIT_DONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes in = { data, size };
    struct emu_admit sides[2];
    uint8_t how = fuzz_u8(&in) % 4;

    if (how > 1) {
        change_some(&in);
        return 0;
    }
    begin(sides);
    hear_all(&sides[how], &in);
    return 0;
}
