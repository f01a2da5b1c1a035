/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In place of emunic-mover: waits for as many milliseconds as the number behind the last '-' in its own name, as on a
 * loaded host, and executes the program `mover` in its own folder.
 */
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    const char *ms;
    char *name;

    if (n < 0)
        return 1;
    path[n] = '\0';
    ms = strrchr(path, '-');
    name = strrchr(path, '/');
    if (!ms || !name || name + sizeof("/mover") > path + sizeof(path))
        return 1;
    poll(NULL, 0, atoi(ms + 1));
    strcpy(name, "/mover");
    execl(path, "emunic-mover", (char *)NULL);
    return 1;
}
