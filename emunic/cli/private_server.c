/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * It ends with its last job, and with the link when there is no job yet.
 */
#include "emunic/cli/private_server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "emunic/base/log.h"
#include "emunic/cli/cli.h"

#define END_MS 3000

/* Until the server stops. Its messages say what went wrong. */
static int serve(const void *ctx, int link)
{
    struct emu_server_options options = *(const struct emu_server_options *)ctx;
    struct emu_server *server;
    char err[512];
    int r;

    options.ready_fd = link;
    r = emu_daemon_create(&options, &server, err, sizeof(err));
    if (r == -EADDRINUSE) {
        emu_child_tell(link, EMU_CHILD_TAKEN);
        return EMU_EXIT_FAILED;
    }
    if (r < 0)
        return emu_cli_fail("run", "%s", err);
    r = emu_server_run(server);
    if (r < 0)
        emu_log(EMU_LOG_ERROR, "%s", strerror(-r));
    emu_server_destroy(server);
    return EMU_EXIT_DONE;
}

int emu_private_server_start(const struct emu_server_options *options, struct emu_child *server_out)
{
    char title[128];

    snprintf(title, sizeof(title), "emunic serve --name %s", options->name);
    return emu_child_start(title, serve, options, server_out);
}

void emu_private_server_end(struct emu_child *server, int *status_out)
{
    shutdown(server->link, SHUT_RDWR);
    emu_child_await(server, END_MS, status_out);
}
