/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic doctor`: becomes emunic-doctor (emunic/doctor/doctor.c), which alone loads the libraries of the network.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "emunic/cli/cli.h"

int emu_verb_doctor(int argc, char **argv)
{
    char path[PATH_MAX];
    int r = emu_cli_doctor(path);

    (void)argc;
    if (r < 0)
        return emu_cli_fail("doctor", "%s: %s", path, strerror(-r));
    execv(path, argv);
    return emu_cli_fail("doctor", "%s: %s", path, strerror(errno));
}
