/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/cli/hosts_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emunic/abi/table.h"
#include "emunic/base/input_file.h"
#include "emunic/base/number.h"
#include "emunic/cli/cli.h"
#include "emunic/daemon/peers/sessions.h"

#define FILE_BYTES_MAX (16u << 20)

static bool take_word(char *to, const char *word, size_t length)
{
    if (length == 0 || length >= EMU_HOSTS_FILE_WORD_MAX)
        return false;
    memcpy(to, word, length);
    to[length] = '\0';
    return true;
}

/* A.B.C.D, name, [X::Y]; each with or without :PORT. X::Y alone has no port. */
static bool split_address(const char *word, char *address_out, char *port_out)
{
    const char *colon = strrchr(word, ':');
    uint64_t port;

    strcpy(port_out, EMU_HOSTS_FILE_PORT);
    if (word[0] == '[') {
        const char *end = strchr(word, ']');

        if (!end || (end[1] != '\0' && end[1] != ':') || !take_word(address_out, word + 1, (size_t)(end - word - 1)))
            return false;
        colon = end[1] == ':' ? end + 1 : NULL;
    } else if (!colon || strchr(word, ':') != colon) {
        return take_word(address_out, word, strlen(word));
    } else if (!take_word(address_out, word, (size_t)(colon - word))) {
        return false;
    }
    if (!colon)
        return true;
    return emu_parse_number(colon + 1, 10, 1, 65535, &port) && take_word(port_out, colon + 1, strlen(colon + 1));
}

/* NULL: it is taken, or empty. Else what is wrong with it. */
static const char *take_line(struct emu_hosts_file *file, char *line)
{
    static const char spaces[] = " \t\r\n";
    uint32_t i = file->n;
    uint64_t n_nodes = 0;
    char *rest = NULL;
    char *name;
    char *address;
    char *nodes;

    line[strcspn(line, "#")] = '\0';
    name = strtok_r(line, spaces, &rest);
    if (!name)
        return NULL;
    address = strtok_r(NULL, spaces, &rest);
    nodes = strtok_r(NULL, spaces, &rest);
    if (!address || strtok_r(NULL, spaces, &rest))
        return "is not NAME ADDRESS[:PORT] [NODES]";
    if (i == EMU_HOSTS_FILE_MAX)
        return "is one host too many";
    if (!take_word(file->names[i], name, strlen(name)))
        return "has a name that is too long";
    if (!split_address(address, file->addresses[i], file->ports[i]))
        return "has an address that is none";
    if (nodes && !emu_parse_number(nodes, 10, 1, EMU_NID_MAX, &n_nodes))
        return "has a number of nodes that is none";
    for (uint32_t k = 0; k < i; k++) {
        if (strcmp(file->names[k], name) == 0)
            return "names a host for the second time";
    }
    file->n_nodes[i] = (uint32_t)n_nodes;
    file->n++;
    return NULL;
}

/* All tell how many nodes they have, or none. */
static bool nodes_are_sound(const struct emu_hosts_file *file)
{
    for (uint32_t i = 1; i < file->n; i++) {
        if ((file->n_nodes[i] == 0) != (file->n_nodes[0] == 0))
            return false;
    }
    return true;
}

int emu_hosts_file_read(const char *path, struct emu_hosts_file *file_out, char *err, size_t err_len)
{
    const char *wrong = NULL;
    unsigned number = 0;
    char *line = NULL;
    size_t room = 0;
    FILE *f;
    int r;

    *file_out = (struct emu_hosts_file){
        .names = calloc(EMU_HOSTS_FILE_MAX, sizeof(*file_out->names)),
        .addresses = calloc(EMU_HOSTS_FILE_MAX, sizeof(*file_out->addresses)),
        .ports = calloc(EMU_HOSTS_FILE_MAX, sizeof(*file_out->ports)),
        .n_nodes = calloc(EMU_HOSTS_FILE_MAX, sizeof(*file_out->n_nodes)),
    };
    if (!file_out->names || !file_out->addresses || !file_out->ports || !file_out->n_nodes) {
        snprintf(err, err_len, "out of memory");
        return -ENOMEM;
    }
    r = emu_input_file_open(path, FILE_BYTES_MAX, &f);
    if (r < 0) {
        snprintf(err, err_len, "%s: %s", path, emu_input_file_reason(r));
        return r;
    }
    while (!wrong && getline(&line, &room, f) >= 0) {
        number++;
        wrong = take_line(file_out, line);
    }
    free(line);
    fclose(f);
    if (wrong)
        snprintf(err, err_len, "%s: line %u %s", path, number, wrong);
    else if (file_out->n < 2)
        snprintf(err, err_len, "%s: names %u hosts; there must be two or more", path, file_out->n);
    else if (!nodes_are_sound(file_out))
        snprintf(err, err_len, "%s: says of some hosts only how many nodes they have", path);
    else
        return 0;
    return -EINVAL;
}

void emu_hosts_file_free(struct emu_hosts_file *file)
{
    free(file->names);
    free(file->addresses);
    free(file->ports);
    free(file->n_nodes);
}

int emu_key_file_read(const char *path, uint8_t key_out[EMU_KEY_FILE_MAX], uint32_t *length_out)
{
    uint8_t one_more;
    struct stat st;
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int r = 0;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        r = -errno;
    else if (!S_ISREG(st.st_mode))
        r = -EINVAL;
    else if (st.st_mode & (S_IRWXG | S_IRWXO))
        r = -EPERM;
    if (r == 0) {
        n = read(fd, key_out, EMU_KEY_FILE_MAX);
        if (n < 0)
            r = -errno;
        else if (n < (ssize_t)EMU_TRANSPORT_KEY_MIN || read(fd, &one_more, 1) != 0)
            r = -EINVAL;
        else
            *length_out = (uint32_t)n;
    }
    close(fd);
    return r;
}
