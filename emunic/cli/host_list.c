/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of hosts in their three forms, and who gets which ranks.
 *
 * Names go into command lines and files of mpirun: letters, digits, dots, hyphens and underscores, and no hyphen in
 * front. This host is known by its name, with or without domain, or by an address of its own that the name stands for.
 */
#include "emunic/cli/host_list.h"

#include <ctype.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emunic/base/input_file.h"
#include "emunic/base/number.h"
#include "emunic/base/text.h"
#include "emunic/cli/cli.h"

#define SLOTS_MAX      65536u
#define FILE_BYTES_MAX (16u << 20)

/* ---- one host ---- */

static bool name_is_valid(const char *name)
{
    size_t len = strlen(name);

    if (len == 0 || len > EMU_CLI_HOST_NAME_MAX || name[0] == '-')
        return false;
    for (const char *c = name; *c; c++) {
        if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
            return false;
    }
    return true;
}

static uint32_t *find_slots(struct emu_cli_hosts *hosts, const char *name)
{
    for (uint32_t i = 0; i < hosts->n; i++) {
        if (strcmp(hosts->names[i], name) == 0)
            return &hosts->slots[i];
    }
    return NULL;
}

static int add_host(struct emu_cli_hosts *hosts, const char *name, uint32_t slots)
{
    char **names = realloc(hosts->names, (hosts->n + 1) * sizeof(*names));
    uint32_t *all_slots;

    if (!names)
        return -ENOMEM;
    hosts->names = names;
    all_slots = realloc(hosts->slots, (hosts->n + 1) * sizeof(*all_slots));
    if (!all_slots)
        return -ENOMEM;
    hosts->slots = all_slots;
    names[hosts->n] = strdup(name);
    if (!names[hosts->n])
        return -ENOMEM;
    all_slots[hosts->n++] = slots;
    return 0;
}

/* "NAME" or "NAME:SLOTS", taken apart in place. */
static int parse_host(struct emu_cli_hosts *hosts, char *word, char *err, size_t err_len)
{
    char *name = strsep(&word, ":");
    uint64_t slots = 0;

    if (!name_is_valid(name)) {
        snprintf(err, err_len, "'%s' is not the name of a host", name);
        return -EINVAL;
    }
    if (word && !emu_parse_number(word, 10, 1, SLOTS_MAX, &slots)) {
        snprintf(err, err_len, "%s: '%s' is not a number of ranks from 1 to %u", name, word, SLOTS_MAX);
        return -EINVAL;
    }
    if (find_slots(hosts, name)) {
        snprintf(err, err_len, "%s is there twice", name);
        return -EINVAL;
    }
    if (hosts->n == EMU_CLI_HOSTS_MAX) {
        snprintf(err, err_len, "more than %u hosts", EMU_CLI_HOSTS_MAX);
        return -EINVAL;
    }
    return add_host(hosts, name, (uint32_t)slots);
}

/* ---- the three forms ---- */

static int read_list(struct emu_cli_hosts *hosts, const char *text, char *err, size_t err_len)
{
    char *copy = strdup(text);
    char *rest = copy;
    int r = copy ? 0 : -ENOMEM;

    while (r == 0 && rest)
        r = parse_host(hosts, strsep(&rest, ","), err, err_len);
    free(copy);
    return r;
}

static int read_line(struct emu_cli_hosts *hosts, char *line, char *err, size_t err_len)
{
    char *rest = line;
    char *name = strtok_r(line, " \t\r\n", &rest);
    char *more = name ? strtok_r(NULL, " \t\r\n", &rest) : NULL;
    char word[EMU_CLI_HOST_NAME_MAX + 32];
    uint32_t *slots;

    if (!name)
        return 0;
    if ((more && strncmp(more, "slots=", 6) != 0) || strtok_r(NULL, " \t\r\n", &rest)) {
        snprintf(err, err_len, "%s: only slots=N may follow", name);
        return -EINVAL;
    }
    slots = more ? NULL : find_slots(hosts, name);
    if (slots) {
        *slots = *slots ? *slots + 1 : 2;
        return 0;
    }
    if (snprintf(word, sizeof(word), "%s%s%s", name, more ? ":" : "", more ? more + 6 : "") >= (int)sizeof(word)) {
        snprintf(err, err_len, "a name is too long");
        return -EINVAL;
    }
    return parse_host(hosts, word, err, err_len);
}

static int read_lines(struct emu_cli_hosts *hosts, FILE *file, bool until_empty, char *err, size_t err_len)
{
    char *line = NULL;
    size_t room = 0;
    int r = 0;

    while (r == 0 && getline(&line, &room, file) >= 0 && !(until_empty && line[0] == '\n')) {
        line[strcspn(line, "#")] = '\0';
        r = read_line(hosts, line, err, err_len);
    }
    if (r == 0 && ferror(file))
        r = -EIO;
    free(line);
    return r;
}

static int read_file(struct emu_cli_hosts *hosts, const char *path, char *err, size_t err_len)
{
    FILE *file;
    int r = emu_input_file_open(path, FILE_BYTES_MAX, &file);

    if (r < 0) {
        snprintf(err, err_len, "%s: %s", path, emu_input_file_reason(r));
        return r;
    }
    r = read_lines(hosts, file, false, err, err_len);
    fclose(file);
    return r;
}

/* "2(x3),1": slots of the hosts in order, with repetitions. */
static bool spread_slots(struct emu_cli_hosts *hosts, const char *text)
{
    uint32_t host = 0;

    while (*text) {
        unsigned long times = 1;
        unsigned long slots;
        char *end;

        slots = strtoul(text, &end, 10);
        if (end == text || slots == 0 || slots > SLOTS_MAX)
            return false;
        if (strncmp(end, "(x", 2) == 0) {
            times = strtoul(end + 2, &end, 10);
            if (*end++ != ')')
                return false;
        }
        while (times-- > 0) {
            if (host == hosts->n)
                return false;
            hosts->slots[host++] = (uint32_t)slots;
        }
        if (*end == ',')
            end++;
        text = end;
    }
    return host == hosts->n;
}

static int read_slurm(struct emu_cli_hosts *hosts, char *err, size_t err_len)
{
    const char *tasks = getenv("SLURM_TASKS_PER_NODE");
    FILE *names;
    int status;
    int r;

    if (!getenv("SLURM_JOB_NODELIST")) {
        snprintf(err, err_len, "this is no allocation of Slurm: SLURM_JOB_NODELIST is not set");
        return -ENOENT;
    }
    fflush(NULL);
    names = popen("exec scontrol show hostnames", "re");
    if (!names)
        return -errno;
    r = read_lines(hosts, names, false, err, err_len);
    status = pclose(names);
    if (r == 0 && status != 0) {
        snprintf(err, err_len, "`scontrol show hostnames` failed with status %d",
                 WIFEXITED(status) ? WEXITSTATUS(status) : -1);
        return -EIO;
    }
    if (r == 0 && tasks && !spread_slots(hosts, tasks)) {
        snprintf(err, err_len, "SLURM_TASKS_PER_NODE: '%s' does not fit %u hosts%s", tasks, hosts->n,
                 getenv("SLURM_STEP_ID") ? "; this is a step of its own: call it from the batch script or salloc" : "");
        return -EINVAL;
    }
    return r;
}

/* ---- this host ---- */

/* Without the ports. */
static bool is_same_address(const struct sockaddr *a, const struct sockaddr *b)
{
    const struct sockaddr_in *a4 = (const struct sockaddr_in *)a;
    const struct sockaddr_in *b4 = (const struct sockaddr_in *)b;
    const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a;
    const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)b;

    if (a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
    return a->sa_family == AF_INET6 && IN6_ARE_ADDR_EQUAL(&a6->sin6_addr, &b6->sin6_addr);
}

static bool is_own_address(const struct sockaddr *addr, const struct ifaddrs *own)
{
    for (; own; own = own->ifa_next) {
        if (own->ifa_addr && is_same_address(own->ifa_addr, addr))
            return true;
    }
    return false;
}

static bool stands_for_this_host(const char *name)
{
    struct addrinfo *addresses = NULL;
    struct ifaddrs *own = NULL;
    bool is_own = false;

    if (getaddrinfo(name, NULL, NULL, &addresses) == 0 && getifaddrs(&own) == 0) {
        for (struct addrinfo *a = addresses; a && !is_own; a = a->ai_next)
            is_own = is_own_address(a->ai_addr, own);
    }
    if (own)
        freeifaddrs(own);
    if (addresses)
        freeaddrinfo(addresses);
    return is_own;
}

static bool is_this_host(const char *name)
{
    char own[256] = "";

    if (gethostname(own, sizeof(own) - 1) == 0) {
        size_t len = strcspn(own, ".");

        if (strcmp(name, own) == 0 || (strncmp(name, own, len) == 0 && (name[len] == '\0' || name[len] == '.')))
            return true;
    }
    return stands_for_this_host(name);
}

/* ---- calls ---- */

/* Of what was read with result r: it has a first host, and that is this one. */
static int judge(const struct emu_cli_hosts *hosts, int r, char *err, size_t err_len)
{
    if (r == 0 && hosts->n == 0) {
        snprintf(err, err_len, "no host is named");
        r = -EINVAL;
    }
    if (r == 0 && !is_this_host(hosts->names[0])) {
        snprintf(err, err_len, "the first host, %s, is not the one that this runs on", hosts->names[0]);
        r = -EINVAL;
    }
    if (r < 0 && !err[0])
        snprintf(err, err_len, "%s", strerror(-r));
    emu_text_tame(err, '?'); /* names are somebody else's */
    return r;
}

int emu_cli_hosts_read(const char *text, struct emu_cli_hosts *hosts_out, char *err, size_t err_len)
{
    int r;

    *hosts_out = (struct emu_cli_hosts){ 0 };
    err[0] = '\0';
    if (text[0] == '@')
        r = read_file(hosts_out, text + 1, err, err_len);
    else if (strcmp(text, "slurm") == 0)
        r = read_slurm(hosts_out, err, err_len);
    else
        r = read_list(hosts_out, text, err, err_len);
    return judge(hosts_out, r, err, err_len);
}

int emu_cli_hosts_read_lines(FILE *lines, struct emu_cli_hosts *hosts_out, char *err, size_t err_len)
{
    *hosts_out = (struct emu_cli_hosts){ 0 };
    err[0] = '\0';
    return judge(hosts_out, read_lines(hosts_out, lines, true, err, err_len), err, err_len);
}

void emu_cli_hosts_free(struct emu_cli_hosts *hosts)
{
    for (uint32_t i = 0; i < hosts->n; i++)
        free(hosts->names[i]);
    free(hosts->names);
    free(hosts->slots);
    *hosts = (struct emu_cli_hosts){ 0 };
}

static uint32_t slots_of(const struct emu_cli_hosts *hosts, uint32_t host)
{
    return hosts->slots[host] ? hosts->slots[host] : 1;
}

uint64_t emu_cli_hosts_slots(const struct emu_cli_hosts *hosts)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < hosts->n; i++)
        sum += slots_of(hosts, i);
    return sum;
}

static bool has_slots(const struct emu_cli_hosts *hosts)
{
    for (uint32_t i = 0; i < hosts->n; i++) {
        if (hosts->slots[i])
            return true;
    }
    return false;
}

static void deal_evenly(uint32_t n_hosts, uint32_t n_ranks, uint32_t ppn, uint32_t *rank_hosts)
{
    uint32_t n_nodes = (n_ranks + ppn - 1) / ppn;
    uint32_t share = n_nodes / n_hosts;
    uint32_t n_larger = n_nodes % n_hosts; /* hosts with a node more than the others */
    uint32_t n_first = n_larger * (share + 1);

    for (uint32_t rank = 0; rank < n_ranks; rank++) {
        uint32_t node = rank / ppn;

        rank_hosts[rank] = node < n_first ? node / (share + 1) : n_larger + (node - n_first) / share;
    }
}

static int deal_by_slots(const struct emu_cli_hosts *hosts, uint32_t n_ranks, uint32_t ppn, uint32_t *rank_hosts,
                         char *err, size_t err_len)
{
    uint64_t end = slots_of(hosts, 0);
    uint32_t host = 0;

    if (n_ranks > emu_cli_hosts_slots(hosts)) {
        snprintf(err, err_len, "%u ranks, but the hosts have slots for %llu", n_ranks,
                 (unsigned long long)emu_cli_hosts_slots(hosts));
        return -EINVAL;
    }
    for (uint32_t rank = 0; rank < n_ranks; rank++) {
        if (rank == end)
            end += slots_of(hosts, ++host);
        rank_hosts[rank] = host;
        if (rank % ppn != 0 && host != rank_hosts[rank - 1]) {
            snprintf(err, err_len, "ranks %u and %u share a node (--ppn %u), and so a host, but %s has no slot left",
                     rank - 1, rank, ppn, hosts->names[host - 1]);
            return -EINVAL;
        }
    }
    return 0;
}

int emu_cli_hosts_deal(struct emu_cli_hosts *hosts, uint32_t n_ranks, uint32_t ppn, uint32_t *rank_hosts, char *err,
                       size_t err_len)
{
    int r = 0;

    if (has_slots(hosts))
        r = deal_by_slots(hosts, n_ranks, ppn, rank_hosts, err, err_len);
    else
        deal_evenly(hosts->n, n_ranks, ppn, rank_hosts);
    while (r == 0 && hosts->n > rank_hosts[n_ranks - 1] + 1)
        free(hosts->names[--hosts->n]);
    return r;
}
