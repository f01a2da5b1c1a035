/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the host's name. Linked statically, so nothing can be preloaded. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    char name[256];

    return gethostname(name, sizeof(name)) == 0 && puts(name) >= 0 ? 0 : 1;
}
