/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turns.
 *
 * A program that waits for each answer uses emunic a little and often. Were emunic to do whatever there is to do, such
 * a program would wait each time for all that another user has piled up. So a user for whom emunic has worked a time T
 * of QUANTUM_NS or more rests for REST x T, if another one was there within ACTIVE_NS who has had less of emunic's time
 * and does not rest: that user's next step has time before it is known. So one heavy user makes a light one
 * (1 + REST) / REST times as slow at most, and heavy ones take turns, because always the one who has had more rests. A
 * user who was away is never more than LAG_NS behind.
 *
 * Each answer wakes somebody, who takes a processor from the others. Quanta make the answers to a heavy user come
 * together: with a rest after each, a routed job beside 64 connections of another user took 1.4 times as long.
 *
 * Nobody rests while emunic has one user; then no clock is read either.
 */
#include "emunic/daemon/world/turns.h"

#define ACTIVE_NS   5000000ull /* more than a slice of the scheduler */
#define LAG_NS      10000000ull
#define REST        3u
#define QUANTUM_NS  50000ull
#define REST_MAX_NS 10000000ull

bool emu_user_may_work(const struct emu_user *user, uint64_t now_ns)
{
    return now_ns >= user->rests_until_ns;
}

static bool was_there(const struct emu_user *user, uint64_t now_ns)
{
    return user->worked_ns != 0 && now_ns - user->worked_ns < ACTIVE_NS;
}

/* Somebody who has had less, and does not rest? */
static bool somebody_is_lighter(const struct emu_users *users, const struct emu_user *than, uint64_t now_ns)
{
    const struct emu_user *user;

    LIST_FOREACH(user, &users->list, link) {
        if (user != than && user->share_ns < than->share_ns && was_there(user, now_ns) &&
            emu_user_may_work(user, now_ns))
            return true;
    }
    return false;
}

void emu_user_worked(struct emu_users *users, struct emu_user *user, uint64_t began_ns, uint64_t now_ns)
{
    uint64_t took_ns = now_ns - began_ns;
    uint64_t rest_ns;

    user->busy_ns += took_ns;
    user->share_ns += took_ns;
    if (user->share_ns + LAG_NS < users->most_ns)
        user->share_ns = users->most_ns - LAG_NS;
    if (user->share_ns > users->most_ns)
        users->most_ns = user->share_ns;
    user->worked_ns = now_ns;
    user->since_rest_ns += took_ns;
    if (user->since_rest_ns < QUANTUM_NS)
        return;
    rest_ns = REST * user->since_rest_ns < REST_MAX_NS ? REST * user->since_rest_ns : REST_MAX_NS;
    user->since_rest_ns = 0;
    if (somebody_is_lighter(users, user, now_ns))
        user->rests_until_ns = now_ns + rest_ns;
}

/* ---- ports ---- */

void emu_users_begin_round(struct emu_users *users)
{
    struct emu_user *user;

    LIST_FOREACH(user, &users->list, link) {
        if (!user->has_left_over)
            user->turn++;
        user->has_left_over = false;
    }
}

bool emu_user_must_wait(struct emu_user *user, uint32_t *turn, uint64_t now_ns)
{
    if (*turn == user->turn)
        return true;
    if (!emu_user_may_work(user, now_ns)) {
        user->has_left_over = true;
        return true;
    }
    *turn = user->turn;
    return false;
}

/* ---- strangers ---- */

void emu_users_meet_strangers(struct emu_users *users, uint64_t began_ns, uint64_t now_ns)
{
    users->has_strangers = true;
    emu_user_worked(users, &users->strangers, began_ns, now_ns);
}

void emu_users_forget_strangers(struct emu_users *users, uint64_t now_ns)
{
    if (users->has_strangers && !was_there(&users->strangers, now_ns) && emu_user_may_work(&users->strangers, now_ns))
        users->has_strangers = false;
}
