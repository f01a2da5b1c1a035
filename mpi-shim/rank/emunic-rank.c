/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emunic-rank PROGRAM [ARGUMENT]...: what every rank of a job starts through.
 *
 * Between mpirun (or srun) and the program: joins the job's domain, so that emunic holds this very process before its
 * first instruction, learns its node, sets the environment that a Cray launcher would have set, and becomes the
 * program.
 *
 * In: the rank from Open MPI, PMIx or Slurm; EMUNIC_SERVER, EMUNIC_COOKIE and EMUNIC_PTAG (without it, the tag that
 * belongs to the cookie). Out: one element per credential variable, because several readers take the string apart in
 * place and lose what follows the first colon; DEV_ID and LOC_ADDR both, because one without the other is read as an
 * error. Source: spec/cray-runtime.md 2.6, 6.1, 7.5.
 *
 * Addresses: static data, heap and mappings of the program lie at the same addresses in every rank, as on the original,
 * because the kernel's address randomisation is switched off for the program (personality(2), which takes effect with
 * exec and reaches its children); EMUNIC_ASLR=1 leaves it as it is. Where that is refused (seccomp of a container),
 * rank 0 warns and all go on.
 *
 * Huge pages: with EMUNIC_HUGE_PAGES=1 glibc's malloc asks for them (GLIBC_TUNABLES).
 *
 * Node: the program finds a host name and /proc/cray_xt as its node would have them (mpi-shim/node). EMUNIC_NODE_VIEW:
 *
 *   auto     a host name in the kernel, in a UTS namespace of the process; where that is refused, as `library`
 *   library  only the preloaded library says the name
 *   files    the library serves /proc/cray_xt alone: names are those of the host
 *   none     nothing is preloaded
 *
 * There is no user namespace in it: emunic could not read the memory of a process in one. Nor a mount namespace:
 * nothing can be mounted below /proc where no directory is.
 *
 * Lifetime: dies with its parent by PR_SET_PDEATHSIG, which survives exec. A parent that died before that leaves a
 * process that cannot join any more or that emunic ends with the domain.
 *
 * Exit status: the program's; 1 if the job cannot be joined; 126 or 127 if the program cannot be executed or found.
 */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "emunic-config.h"
#include "emunic/abi/credentials.h"
#include "emunic/base/log.h"
#include "emunic/base/number.h"
#include "emunic/client/session.h"
#include "mpi-shim/rank/portals_maps.h"

#define OWN_PLACE    "/mpi-shim/rank/emunic-rank"
#define BUILT_NODE   "/mpi-shim/node/libemunic-node.so" /* in a build folder */
#define NODE_MODULE  "/libemunic-node.so"               /* beside this program */
#define BUILT_CLOCK  "/mpi-shim/clock/libemunic-clock.so"
#define CLOCK_MODULE "/libemunic-clock.so"
#define HUGE_PAGES   "glibc.malloc.hugetlb"
#define NAME_FORMAT  "nid%05u" /* spec/cray-runtime.md 4.2 */

/* Folders of a build folder that hold libraries. */
static const char *const built_folders[] = { "/libugni",        "/mpi-shim/pmi", "/mpi-shim/udreg", "/mpi-shim/alps",
                                             "/mpi-shim/shmem", "/mpi-shim/rca", "/libdmapp",       "/libportals" };

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "emunic-rank: %s\n", text);
}

/* text: NULL if the variable is not set. */
static bool parse_number(const char *text, uint32_t max, uint32_t *number_out)
{
    uint64_t value;

    if (!text || !emu_parse_number(text, 10, 0, max, &value))
        return false;
    *number_out = (uint32_t)value;
    return true;
}

/* ---- joining ---- */

static bool find_rank(uint32_t *rank_out)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (parse_number(getenv(names[i]), INT32_MAX, rank_out))
            return true;
    }
    return false;
}

static const char *explain(int error)
{
    switch (error) {
    case -ECONNREFUSED:
        return "no such server runs here";
    case -ENETDOWN:
        return "the server has gone";
    case -EACCES:
        return "no such job, or not ours, or no such rank in it";
    default:
        return strerror(-error);
    }
}

static int join(const char *server, struct emu_msg_rank *rank)
{
    struct emu_msg msg = { .type = EMU_MSG_JOIN_RANK, .rank = *rank };
    struct emu_session session;
    int r;

    r = emu_session_open(&session, server, EMU_SOCKET_CONTROL);
    if (r < 0)
        return r;
    r = emu_session_request(&session, &msg, NULL, 0, NULL);
    emu_session_close(&session);
    if (r == 0)
        r = msg.result;
    if (r == 0)
        *rank = msg.rank;
    return r;
}

/* ---- environment ---- */

static int set_text(const char *name, const char *value)
{
    return setenv(name, value, 1) < 0 ? -errno : 0;
}

static int set_number(const char *name, uint32_t number)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", number);
    return set_text(name, text);
}

/* The folders with our libraries, as a search path: of the build folder this program runs from, or installed. */
static int find_libraries(char *path, size_t room)
{
    char own[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", own, sizeof(own) - 1);
    size_t own_len = strlen(OWN_PLACE);
    size_t used = 0;

    if (len > (ssize_t)own_len && memcmp(own + len - own_len, OWN_PLACE, own_len) == 0) {
        for (size_t i = 0; i < sizeof(built_folders) / sizeof(built_folders[0]) && used < room; i++)
            used += (size_t)snprintf(path + used, room - used, "%s%.*s%s", i ? ":" : "", (int)(len - (ssize_t)own_len),
                                     own, built_folders[i]);
    } else {
        used = (size_t)snprintf(path, room, "%s", EMU_LIB_DIR);
    }
    return used < room ? 0 : -ENAMETOOLONG;
}

static int set_library_path(void)
{
    const char *others = getenv("LD_LIBRARY_PATH");
    char ours[4 * PATH_MAX];
    char *path;
    int r;

    r = find_libraries(ours, sizeof(ours));
    if (r < 0)
        return r;
    if (!others || !others[0])
        return set_text("LD_LIBRARY_PATH", ours);
    if (asprintf(&path, "%s:%s", ours, others) < 0)
        return -ENOMEM;
    r = set_text("LD_LIBRARY_PATH", path);
    free(path);
    return r;
}

static int set_environment(const char *server, const struct emu_msg_rank *rank)
{
    const struct {
        const char *name;
        uint32_t value;
    } numbers[] = {
        { "PMI_GNI_PTAG", rank->ptag },    { "PMI_GNI_COOKIE", rank->cookie }, { "PMI_GNI_DEV_ID", 0 },
        { "PMI_GNI_LOC_ADDR", rank->nid }, { "CRAY_COOKIES", rank->cookie },   { "CRAY_NUM_COOKIES", 1 },
        { "ALPS_APP_PE", rank->rank },     { "ALPS_APP_ID", rank->cookie },    { "PMI_NO_FORK", 1 },
        { "PMI_NO_PREINITIALIZE", 1 },     { "OMPI_NO_USE_CRAY_PMI", 1 },      { "EMUNIC_NID", rank->nid },
        { "EMUNIC_COOKIE", rank->cookie }, { "EMUNIC_PTAG", rank->ptag },      { "EMUNIC_RANK", rank->rank },
    };
    const char *depth = getenv("SLURM_CPUS_PER_TASK");
    const char *no_epoll = getenv("EVENT_NOEPOLL");
    int r = set_text("EMUNIC_SERVER", server);

    for (size_t i = 0; r == 0 && i < sizeof(numbers) / sizeof(numbers[0]); i++)
        r = set_number(numbers[i].name, numbers[i].value);
    if (r == 0)
        r = set_text("ALPS_APP_DEPTH", depth && depth[0] ? depth : "1");
    if (r == 0)
        r = emu_rank_set_portals_maps(rank->rank);
    /* What mpirun alone was to have, see emunic/cli/mpirun.c; the descriptor is not open here. */
    unsetenv("OPAL_OUTPUT_STDERR_FD");
    unsetenv("PMIX_OUTPUT_STDERR_FD");
    if (no_epoll && strcmp(no_epoll, "emunic") == 0) /* the user's own stays */
        unsetenv("EVENT_NOEPOLL");
    unsetenv("OMPI_MCA_state_base_verbose");
    return r < 0 ? r : set_library_path();
}

/* ---- node ---- */

enum node_view {
    VIEW_AUTO,
    VIEW_LIBRARY,
    VIEW_FILES,
    VIEW_NONE,
};

static enum node_view view_wanted(uint32_t rank)
{
    static const char *const names[] = { "auto", "library", "files", "none" };
    const char *text = getenv("EMUNIC_NODE_VIEW");

    if (!text || !text[0])
        return VIEW_AUTO;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0)
            return (enum node_view)i;
    }
    if (rank == 0)
        say("EMUNIC_NODE_VIEW: '%s' is none of auto, library, files, none; taking auto", text);
    return VIEW_AUTO;
}

/* A library that is preloaded: of the build folder this program runs from, or beside it. */
static int find_module(const char *built, const char *installed, char path_out[PATH_MAX])
{
    ssize_t len = readlink("/proc/self/exe", path_out, PATH_MAX - 1);
    ssize_t own_len = (ssize_t)strlen(OWN_PLACE);
    const char *place = built;

    if (len < 0)
        return -errno;
    path_out[len] = '\0';
    if (len > own_len && strcmp(path_out + len - own_len, OWN_PLACE) == 0) {
        len -= own_len;
    } else {
        len = strrchr(path_out, '/') - path_out;
        place = installed;
    }
    if ((size_t)len + strlen(place) >= PATH_MAX)
        return -ENAMETOOLONG;
    strcpy(path_out + len, place);
    if (path_out[strcspn(path_out, " :")] != '\0')
        return -EINVAL; /* they separate the names in LD_PRELOAD */
    return access(path_out, R_OK) == 0 ? 0 : -errno;
}

/* `word` at the end of a list, unless it is in it. */
static int append_word(const char *name, const char *word, char separator)
{
    const char *list = getenv(name);
    char *text;
    int r;

    if (!list || !list[0])
        return set_text(name, word);
    if (strstr(list, word))
        return 0;
    if (asprintf(&text, "%s%c%s", list, separator, word) < 0)
        return -ENOMEM;
    r = set_text(name, text);
    free(text);
    return r;
}

/*
 * What others preload stays in front. A program with AddressSanitizer demands to find that library first; ours may
 * stand before it, because whatever it replaces it calls in the library behind.
 */
static int preload(const char *module)
{
    int r = append_word("LD_PRELOAD", module, ':');

    return r < 0 ? r : append_word("ASAN_OPTIONS", "verify_asan_link_order=0", ':');
}

static bool name_in_kernel(const char *name)
{
    return unshare(CLONE_NEWUTS) == 0 && sethostname(name, strlen(name)) == 0;
}

/* The host's name stays known; that of a job around this one too. */
static int set_names(const char *name, bool is_in_kernel)
{
    char host[HOST_NAME_MAX + 1];
    int r = 0;

    if (!getenv("EMUNIC_HOST")) {
        if (gethostname(host, sizeof(host)) < 0)
            return -errno;
        r = set_text("EMUNIC_HOST", host);
    }
    if (r == 0 && !(is_in_kernel && name_in_kernel(name)))
        r = set_text("EMUNIC_NODE_NAME", name);
    return r;
}

static int give_view(const struct emu_msg_rank *rank)
{
    enum node_view view = view_wanted(rank->rank);
    char module[PATH_MAX] = "";
    char name[32];
    int r = set_text("EMUNIC_CNAME", rank->cname);

    unsetenv("EMUNIC_NODE_NAME");
    if (view == VIEW_FILES || view == VIEW_NONE)
        unsetenv("EMUNIC_HOST");
    if (r < 0 || view == VIEW_NONE)
        return r;
    r = find_module(BUILT_NODE, NODE_MODULE, module);
    if (r == 0)
        r = preload(module);
    if (r < 0 && rank->rank == 0)
        say("%s cannot be preloaded (%s): no /proc/cray_xt", module, strerror(-r));
    if (view == VIEW_FILES)
        return 0;
    snprintf(name, sizeof(name), NAME_FORMAT, rank->nid);
    return set_names(name, view == VIEW_AUTO);
}

/* Virtual time: the program's clocks show it. EMUNIC_CLOCK=real leaves them the host's. */
static int give_clock(uint32_t rank)
{
    const char *time = getenv("EMUNIC_TIME");
    const char *clock = getenv("EMUNIC_CLOCK");
    char module[PATH_MAX] = "";
    int r;

    if (!time || strcmp(time, "virtual") != 0 || (clock && strcmp(clock, "real") == 0))
        return 0;
    r = find_module(BUILT_CLOCK, CLOCK_MODULE, module);
    if (r == 0)
        r = preload(module);
    if (r < 0 && rank == 0)
        say("%s cannot be preloaded (%s): the program's clocks are the host's", module, strerror(-r));
    return 0;
}

/*
 * The first touch of a large buffer costs a page fault for each page; with huge pages one for 2 MiB. It is what Cray's
 * craype-hugepages modules are for. glibc does it for its own malloc, by a tunable that it reads once, at exec. What
 * the user has said about it stands.
 */
static int give_huge_pages(void)
{
    const char *wanted = getenv("EMUNIC_HUGE_PAGES");
    const char *others = getenv("GLIBC_TUNABLES");
    char text[4096];

    if (!wanted || !wanted[0] || strcmp(wanted, "0") == 0 || (others && strstr(others, HUGE_PAGES)))
        return 0;
    if (snprintf(text, sizeof(text), "%s%s%s=1", others ? others : "", others && others[0] ? ":" : "", HUGE_PAGES) >=
        (int)sizeof(text))
        return -E2BIG;
    return setenv("GLIBC_TUNABLES", text, 1) == 0 ? 0 : -errno;
}

/* ---- life ---- */

static void fix_addresses(uint32_t rank)
{
    const char *aslr = getenv("EMUNIC_ASLR");
    int now;

    if (aslr && aslr[0] && strcmp(aslr, "0") != 0)
        return;
    now = personality(0xffffffff);
    if (now >= 0 && ((now & ADDR_NO_RANDOMIZE) || personality((unsigned long)now | ADDR_NO_RANDOMIZE) >= 0))
        return;
    if (rank == 0)
        say("addresses stay random, because personality() is refused (%s): static data may lie elsewhere in each rank",
            strerror(errno));
}

static bool tie_to_parent(void)
{
    pid_t parent = getppid();

    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
}

int main(int argc, char **argv)
{
    char server_buf[EMU_SERVER_NAME_MAX + 1];
    const char *server = emu_session_default_server(server_buf, sizeof(server_buf));
    struct emu_msg_rank rank = { 0 };
    int r;

    emu_log_init("emunic-rank", EMU_LOG_WARN);
    if (argc < 2) {
        say("usage: emunic-rank PROGRAM [ARGUMENT]...; started by mpirun or srun, see emunic-run(1)");
        return 2;
    }
    if (!tie_to_parent()) {
        say("the launcher has gone");
        return 1;
    }
    if (!find_rank(&rank.rank)) {
        say("no rank: OMPI_COMM_WORLD_RANK, PMIX_RANK and SLURM_PROCID are unset");
        return 1;
    }
    if (!parse_number(getenv("EMUNIC_COOKIE"), UINT32_MAX, &rank.cookie)) {
        say("rank %u: EMUNIC_COOKIE is not set to the number of a job", rank.rank);
        return 1;
    }
    if (!parse_number(getenv("EMUNIC_PTAG"), 255, &rank.ptag))
        rank.ptag = emu_ptag_of_cookie(rank.cookie);
    r = join(server, &rank);
    if (r < 0) {
        say("rank %u cannot join its job on server '%s': %s", rank.rank, server, explain(r));
        return 1;
    }
    rank.cname[sizeof(rank.cname) - 1] = '\0';
    r = set_environment(server, &rank);
    if (r == 0)
        r = give_view(&rank);
    if (r == 0)
        r = give_clock(rank.rank);
    if (r == 0)
        r = give_huge_pages();
    if (r < 0) {
        say("rank %u: environment: %s", rank.rank, strerror(-r));
        return 1;
    }
    fix_addresses(rank.rank);
    execvp(argv[1], argv + 1);
    r = errno;
    say("rank %u: %s: %s", rank.rank, argv[1], strerror(r));
    return r == ENOENT ? 127 : 126;
}
