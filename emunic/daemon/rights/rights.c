/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What emunic keeps.
 *
 *   emunic                             capabilities                       memory of members   Landlock
 *   of root, which serves others       CAP_KILL                           movers              yes
 *   of root, for root; of a user       CAP_KILL, CAP_SYS_PTRACE, if any   its own             no
 *
 * and CAP_IPC_LOCK for the network of several hosts. The kernel lets a process touch memory of another one only if it
 * has CAP_SYS_PTRACE or all that the other one has. So where CAP_SYS_PTRACE is not to be had, as in many containers,
 * and emunic touches memory itself, all capabilities stay. Landlock rules close the memory of all processes that are
 * not under them.
 */
#include "emunic/daemon/rights/rights.h"

#include <cap-ng.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "emunic/base/log.h"
#include "emunic/daemon/rights/broker.h"
#include "emunic/daemon/rights/inner.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

/* NULL: no reason. Debuggers and checkers make system calls of their own in this process. */
static const char *reason_to_keep(bool is_confined)
{
    const char *setting = getenv("EMUNIC_SANDBOX");
    const char *preloaded = getenv("LD_PRELOAD");

    if (setting && strcmp(setting, "off") == 0)
        return "EMUNIC_SANDBOX=off";
    if (setting && *setting && strcmp(setting, "on") != 0)
        emu_log(EMU_LOG_WARN, "EMUNIC_SANDBOX: '%s' is neither on nor off: on", setting);
    if (IS_SANITIZED)
        return "built with a sanitizer";
    if (preloaded && strstr(preloaded, "vgpreload"))
        return "runs in valgrind";
    return is_confined ? NULL : "not asked for";
}

/* ---- capabilities ---- */

static uint64_t kept_now(void)
{
    uint64_t kept = 0;

    for (unsigned i = 0; i <= CAP_LAST_CAP && i < 64; i++)
        kept |= (uint64_t)(capng_have_capability(CAPNG_PERMITTED, i) != 0) << i;
    return kept;
}

static int shed_capabilities(bool moves_all, bool has_hosts, uint64_t *kept_out)
{
    const uint64_t wanted =
        1ull << CAP_KILL | (uint64_t)has_hosts << CAP_IPC_LOCK | (uint64_t)!moves_all << CAP_SYS_PTRACE;
    uint64_t had;

    if (capng_get_caps_process() < 0)
        return -EIO;
    had = kept_now();
    *kept_out = had;
    if (had == 0 || (!moves_all && !(had & 1ull << CAP_SYS_PTRACE)))
        return 0;
    capng_clear(CAPNG_SELECT_BOTH);
    for (unsigned i = 0; i < 64; i++) {
        if (had & wanted & 1ull << i)
            capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, i);
    }
    if (capng_apply(CAPNG_SELECT_CAPS) < 0 || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -EPERM;
    *kept_out = had & wanted;
    return 0;
}

int emu_rights_shed_early(void)
{
    uint64_t kept;
    int r = reason_to_keep(true) ? 0 : shed_capabilities(false, true, &kept);

    return r == 0 && !reason_to_keep(true) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : r;
}

/* ---- the two steps ---- */

static int give_up(struct emu_rights *rights, const struct emu_rights_plan *plan)
{
    int r;

    rights->is_confined = true;
    rights->moves_all = rights->serves_others;
    r = shed_capabilities(rights->moves_all, rights->has_hosts, &rights->capabilities);
    if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        r = -errno;
    if (r < 0 || !rights->moves_all || rights->landlock_abi == 0)
        return r;
    r = emu_landlock_restrict(rights->landlock_abi, plan->module);
    rights->has_landlock = r == 0;
    return r;
}

int emu_rights_begin(const struct emu_rights_plan *plan, struct emu_rights **rights_out)
{
    struct emu_rights *rights = calloc(1, sizeof(*rights));
    int r = 0;

    if (!rights)
        return -ENOMEM;
    rights->serves_others = plan->serves_others && geteuid() == 0;
    rights->has_hosts = plan->module;
    rights->landlock_abi = emu_landlock_abi();
    rights->why_off = reason_to_keep(plan->is_confined);
    if (rights->serves_others && plan->mover)
        r = emu_broker_start(plan->server, plan->mover, &rights->broker);
    if (r == -ENOENT)
        r = 0; /* whoever needs a mover is refused, and told so */
    if (r == 0 && rights->why_off)
        r = capng_get_caps_process() < 0 ? -EIO : 0;
    if (r == 0 && rights->why_off)
        rights->capabilities = kept_now();
    if (r == 0 && !rights->why_off)
        r = give_up(rights, plan);
    if (r < 0) {
        emu_log(EMU_LOG_ERROR, "cannot give up its rights: %s; EMUNIC_SANDBOX=off keeps them", strerror(-r));
        emu_rights_destroy(rights);
        return r;
    }
    *rights_out = rights;
    return 0;
}

int emu_rights_end(struct emu_rights *rights)
{
    int r;

    if (!rights->is_confined)
        return 0;
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0 && errno == EINVAL) {
        emu_log(EMU_LOG_WARN, "the kernel has no filters of system calls: none is in force");
        return 0;
    }
    r = emu_filter_load(rights);
    rights->has_filter = r == 0;
    if (r < 0)
        emu_log(EMU_LOG_ERROR, "cannot load the filter of system calls: %s; EMUNIC_SANDBOX=off goes without",
                strerror(-r));
    return r;
}

void emu_rights_destroy(struct emu_rights *rights)
{
    if (!rights)
        return;
    emu_broker_end(rights->broker);
    free(rights);
}

/* ---- words ---- */

const char *emu_rights_capabilities(const struct emu_rights *rights, char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < 64 && used < bytes; i++) {
        const char *name = rights->capabilities & 1ull << i ? capng_capability_to_name(i) : NULL;

        if (name)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used > 0 ? "," : "", name);
    }
    return text;
}
