/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asks emunic for the map of places and keeps it for the life of the process: it cannot change. A failure is not kept,
 * because the process may be told its emunic later.
 */
#include "emunic/client/places_map.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "emunic/client/session.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_WRITE)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct emu_places *map;

/* Mapped, if it is what it should be and stays so. */
static const struct emu_places *map_sound(int fd)
{
    const struct emu_places *places;
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(*places))
        return NULL;
    places = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (places == MAP_FAILED)
        return NULL;
    if (places->magic == EMU_PLACES_MAGIC && places->abi_version == EMU_ABI_VERSION &&
        places->n_nids <= EMU_NID_MAX + 1 && emu_places_bytes(places->n_nids) <= (uint64_t)st.st_size)
        return places;
    munmap((void *)(uintptr_t)places, (size_t)st.st_size);
    return NULL;
}

static const struct emu_places *fetch(const char *server)
{
    struct emu_msg msg = { .type = EMU_MSG_MACHINE, .machine = { .wants_places = 1 } };
    const struct emu_places *places = NULL;
    struct emu_session session;
    struct emu_fds fds;

    if (emu_session_open(&session, server, EMU_SOCKET_CONTROL) < 0)
        return NULL;
    if (emu_session_request(&session, &msg, NULL, 0, &fds) == 0) {
        if (msg.result == 0 && fds.n_fds == 1)
            places = map_sound(fds.fd[0]);
        emu_fds_close(&fds);
    }
    emu_session_close(&session);
    return places;
}

const struct emu_places *emu_places_map(void)
{
    const char *server = getenv("EMUNIC_SERVER");
    const struct emu_places *places;
    struct emu_cancel cancel;

    if (!server || !server[0])
        return NULL;
    emu_cancel_hold(&cancel);
    pthread_mutex_lock(&lock);
    if (!map)
        map = fetch(server);
    places = map;
    pthread_mutex_unlock(&lock);
    emu_cancel_release(&cancel);
    return places;
}
