/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this node is called.
 *
 * Where emunic-rank could give the process a host name in the kernel, uname() and gethostname() say it by themselves
 * and nothing is done here. Else they get the name that emunic-rank has told. gethostid() is made of the address that
 * the host's name has, so it would be the same or nothing on all nodes: here it is the nid plus one, never 0.
 */
#include <string.h>

#include "mpi-shim/node/src/view.h"

#include <errno.h>
#include <unistd.h>

NODE_EXPORT int uname(struct utsname *out)
{
    const struct node_view *view = node_view();
    int r = node_real()->uname(out);

    if (r == 0 && view->name[0])
        strcpy(out->nodename, view->name);
    return r;
}

/* As glibc has it: what has room is copied, also when it is not all. */
static int tell_name(const char *name, char *out, size_t room)
{
    size_t len = strlen(name) + 1;

    memcpy(out, name, len < room ? len : room);
    if (len <= room)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

NODE_EXPORT int gethostname(char *out, size_t room)
{
    const struct node_view *view = node_view();

    return view->name[0] ? tell_name(view->name, out, room) : node_real()->gethostname(out, room);
}

/* Of programs that were compiled with _FORTIFY_SOURCE; size is that of `out`. */
int __gethostname_chk(char *out, size_t room, size_t size);

NODE_EXPORT int __gethostname_chk(char *out, size_t room, size_t size)
{
    const struct node_view *view = node_view();

    if (view->name[0] && room <= size)
        return tell_name(view->name, out, room);
    return node_real()->__gethostname_chk(out, room, size);
}

NODE_EXPORT long gethostid(void)
{
    const struct node_view *view = node_view();

    return view->is_named ? (long)view->nid + 1 : node_real()->gethostid();
}
