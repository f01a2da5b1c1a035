/* SPDX-License-Identifier: BSD-3-Clause */
/* What the guide of librca compiles. */
#include <rca_lib.h>

int main(void)
{
    rs_node_t node;

    return rca_get_nodeid(&node);
}
