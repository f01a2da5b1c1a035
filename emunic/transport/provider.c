/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Providers of libfabric that can carry emunic's traffic between hosts, best first.
 *
 * The order is of what moves data without the processor, then of what runs everywhere. Providers that only reach this
 * host (shm), only exist to test (udp;ofi_rxd is far slower than tcp) or are given up by libfabric (sockets) come last.
 */
#include "emunic/transport/provider.h"

#include <rdma/fi_endpoint.h>
#include <string.h>

static const char *const preferred[] = { "verbs;ofi_rxm", "efa", "cxi", "psm2",        "psm3",    "opx", "gni",
                                         "tcp;ofi_rxm",   "tcp", "net", "udp;ofi_rxd", "sockets", "shm" };

#define N_PREFERRED (sizeof(preferred) / sizeof(preferred[0]))

unsigned emu_provider_rank(const char *name)
{
    unsigned rank = 0;

    while (rank < N_PREFERRED && strcmp(preferred[rank], name) != 0)
        rank++;
    return rank;
}

struct fi_info *emu_provider_hints(void)
{
    struct fi_info *hints = fi_allocinfo();

    if (!hints)
        return NULL;
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG | FI_RMA;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->tx_attr->msg_order = FI_ORDER_SAS;
    hints->rx_attr->msg_order = FI_ORDER_SAS;
    return hints;
}
