/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A row has what the user holds of each kind, what it may hold, and how often it was refused.
 */
#include "emunic/daemon/reports/user_rows.h"

#include "emunic/abi/host_admin.h"
#include "emunic/daemon/world/shared_pages.h"
#include "emunic/daemon/world/server.h"
#include "emunic/daemon/world/users.h"
#include "emunic/daemon/world/word_list.h"

#define USER_WORDS (3u + 3u * EMU_USER_KINDS)

/* The one with the lowest uid from there on; NULL: there is none. */
static const struct emu_user *next_user(const struct emu_users *users, uint64_t from)
{
    const struct emu_user *lowest = NULL;
    const struct emu_user *user;

    LIST_FOREACH(user, &users->list, link) {
        if (user->uid >= from && (!lowest || user->uid < lowest->uid))
            lowest = user;
    }
    return lowest;
}

static uint64_t bounded(uint64_t number)
{
    return number < INT64_MAX ? number : INT64_MAX;
}

void emu_user_rows_put(struct emu_server *server, struct emu_word_list *rows)
{
    const struct emu_users *users = emu_users_of(server);
    const struct emu_user *user;

    emu_pages_count_all(server);
    for (uint64_t from = 0; (user = next_user(users, from)); from = (uint64_t)user->uid + 1) {
        uint64_t row[USER_WORDS] = { EMU_HOST_ROW_USER, user->uid, bounded(user->requests) };

        for (unsigned i = 0; i < EMU_USER_KINDS; i++) {
            row[3 + 3 * i] = bounded(user->used[i]);
            row[4 + 3 * i] = bounded(users->limits[i]);
            row[5 + 3 * i] = bounded(user->refused[i]);
        }
        emu_word_list_add_row(rows, row, USER_WORDS);
    }
}

static bool is_in_order(const json_t *users, uint32_t host, uint64_t uid)
{
    const json_t *last = json_array_get(users, json_array_size(users) - 1);

    return !last || json_integer_value(json_object_get(last, "host")) != (json_int_t)host ||
           json_integer_value(json_object_get(last, "uid")) < (json_int_t)uid;
}

bool emu_user_rows_take(struct emu_words *words, uint32_t host, json_t *users)
{
    uint64_t uid = emu_words_take(words, UINT32_MAX);
    uint64_t requests = emu_words_take(words, INT64_MAX);
    json_t *user =
        json_pack("{sI sI sI}", "host", (json_int_t)host, "uid", (json_int_t)uid, "requests", (json_int_t)requests);
    bool is_sound;

    for (unsigned i = 0; i < EMU_USER_KINDS; i++) {
        uint64_t used = emu_words_take(words, INT64_MAX);
        uint64_t limit = emu_words_take(words, INT64_MAX);
        uint64_t refused = emu_words_take(words, INT64_MAX);

        json_object_set_new(user, emu_user_words[i],
                            json_pack("{sI sI sI}", "used", (json_int_t)used, "limit", (json_int_t)limit, "refused",
                                      (json_int_t)refused));
    }
    is_sound = !words->is_bad && is_in_order(users, host, uid);
    if (is_sound)
        json_array_append(users, user);
    json_decref(user);
    return is_sound;
}
