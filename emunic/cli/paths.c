/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the command's other parts are.
 *
 * A command that runs from a build folder uses what was built with it and the machine files of its source tree; it
 * knows the folder by its own name, <build>/emunic/emunic, and by a file that configuration made. Otherwise the folders
 * that Meson was told at configuration.
 */
#include "emunic/cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emunic-config.h"
#include "emunic/fabric/machine.h"

#ifndef OWN_PLACE
#define OWN_PLACE "/emunic/emunic"
#endif
#define BUILD_SIGN       "/emunic-config.h"
#define WRAPPER_PLACE    "/mpi-shim/rank/emunic-rank"
#define MPIRUN_PLACE     "/mpi-shim/rank/libemunic-mpirun.so"
#define DOCTOR_PLACE     "/emunic/doctor/emunic-doctor"
#define TRANSPORT_PLACE  "/emunic/transport/emunic-transport.so"
#define MOVER_PLACE      "/emunic/mover/emunic-mover"
#define HOST_PLACE       "/emunic/emunic-host"
#define AGENT_PLACE      "/emunic/emunic-agent"
#define ALLOCATION_PLACE "/emunic/emunic-allocation"
#define SIM_MPI_PLACE    "/emunic/emunic-sim-mpi"
#define OPENMPI_PLACE    "/mpi-shim/openmpi"
#define OPENMPI_FOLDER   "/emunic/openmpi"
#define OPENMPI_SIGN     "/mca_mtl_portals3.so"
#define FOLDER_ROOM      64 /* for each of them */

/* The build folder that this command runs from. */
static bool find_build_folder(char path_out[PATH_MAX])
{
    ssize_t len = readlink("/proc/self/exe", path_out, PATH_MAX - FOLDER_ROOM);
    size_t own_len = strlen(OWN_PLACE);

    if (len < (ssize_t)own_len)
        return false;
    path_out[len] = '\0';
    if (strcmp(path_out + len - own_len, OWN_PLACE) != 0)
        return false;
    strcpy(path_out + len - own_len, BUILD_SIGN);
    if (access(path_out, R_OK) < 0)
        return false;
    path_out[len - (ssize_t)own_len] = '\0';
    return true;
}

const char *emu_cli_machine_dir(void)
{
    const char *wanted = getenv("EMUNIC_MACHINES");
    char path[PATH_MAX];

    if (wanted && wanted[0])
        return wanted;
    if (find_build_folder(path) && access(EMU_SOURCE_MACHINE_DIR, R_OK) == 0)
        return EMU_SOURCE_MACHINE_DIR;
    return EMU_MACHINE_DIR;
}

int emu_cli_load_machine(const char *verb, const char *what, const char *spec, struct emu_machine **machine_out)
{
    char err[512];

    if (emu_machine_load(spec, emu_cli_machine_dir(), machine_out, err, sizeof(err)) == 0)
        return EMU_EXIT_DONE;
    emu_cli_fail(verb, "%s: %s", what, err);
    return EMU_EXIT_USAGE;
}

/* A program of ours: at this place of the build folder, else among the installed ones. */
static int find_part(const char *place, char path_out[PATH_MAX])
{
    if (find_build_folder(path_out))
        strcat(path_out, place);
    else if (snprintf(path_out, PATH_MAX, "%s%s", EMU_LIBEXEC_DIR, strrchr(place, '/')) >= PATH_MAX)
        return -ENAMETOOLONG;
    return access(path_out, X_OK) == 0 ? 0 : -errno;
}

int emu_cli_wrapper(char path_out[PATH_MAX])
{
    return find_part(WRAPPER_PLACE, path_out);
}

int emu_cli_mpirun_module(char path_out[PATH_MAX])
{
    return find_part(MPIRUN_PLACE, path_out);
}

int emu_cli_mover(char path_out[PATH_MAX])
{
    return find_part(MOVER_PLACE, path_out);
}

int emu_cli_host(char path_out[PATH_MAX])
{
    return find_part(HOST_PLACE, path_out);
}

int emu_cli_agent(char path_out[PATH_MAX])
{
    return find_part(AGENT_PLACE, path_out);
}

int emu_cli_allocation(char path_out[PATH_MAX])
{
    return find_part(ALLOCATION_PLACE, path_out);
}

int emu_cli_sim_mpi(char path_out[PATH_MAX])
{
    return find_part(SIM_MPI_PLACE, path_out);
}

int emu_cli_doctor(char path_out[PATH_MAX])
{
    return find_part(DOCTOR_PLACE, path_out);
}

int emu_cli_transport(char path_out[PATH_MAX])
{
    return find_part(TRANSPORT_PLACE, path_out);
}

int emu_cli_openmpi(char path_out[PATH_MAX])
{
    char sign[PATH_MAX];

    if (find_build_folder(path_out))
        strcat(path_out, OPENMPI_PLACE);
    else if (snprintf(path_out, PATH_MAX, "%s%s", EMU_LIB_DIR, OPENMPI_FOLDER) >= PATH_MAX)
        return -ENAMETOOLONG;
    if (snprintf(sign, sizeof(sign), "%s%s", path_out, OPENMPI_SIGN) >= (int)sizeof(sign))
        return -ENAMETOOLONG;
    return access(sign, R_OK) == 0 ? 0 : -errno;
}

int emu_cli_plotter(char path_out[PATH_MAX])
{
    if (find_build_folder(path_out) && access(EMU_SOURCE_PLOTTER, R_OK) == 0)
        snprintf(path_out, PATH_MAX, "%s", EMU_SOURCE_PLOTTER);
    else if (snprintf(path_out, PATH_MAX, "%s/simplot.py", EMU_LIBEXEC_DIR) >= PATH_MAX)
        return -ENAMETOOLONG;
    return access(path_out, R_OK) == 0 ? 0 : -errno;
}

/* 0 if this can be executed. */
static int check_program(const char *path)
{
    struct stat info;

    if (stat(path, &info) < 0)
        return -errno;
    if (S_ISDIR(info.st_mode))
        return -EISDIR;
    return access(path, X_OK) < 0 ? -errno : 0;
}

int emu_cli_find_program(const char *name, char path_out[PATH_MAX])
{
    const char *folder = getenv("PATH");
    int answer = -ENOENT;

    if (strchr(name, '/')) {
        if (strlen(name) >= PATH_MAX)
            return -ENAMETOOLONG;
        strcpy(path_out, name);
        return check_program(name);
    }
    if (!folder)
        folder = "/usr/bin:/bin";
    for (;;) {
        int len = (int)strcspn(folder, ":");
        int r = -ENOENT;

        /* An empty entry is the current folder. */
        if (name[0] && snprintf(path_out, PATH_MAX, "%.*s%s%s", len, folder, len ? "/" : "./", name) < PATH_MAX)
            r = check_program(path_out);
        if (r == 0)
            return 0;
        if (r == -EACCES)
            answer = r;
        if (folder[len] == '\0')
            return answer;
        folder += len + 1;
    }
}
