/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which providers of libfabric can carry emunic's traffic between hosts, and in what order we take them. For
 * transport and for `emunic doctor`, so that the one does what the other says.
 */
#ifndef EMUNIC_TRANSPORT_PROVIDER_H
#define EMUNIC_TRANSPORT_PROVIDER_H

#include <rdma/fabric.h>

#define EMU_PROVIDER_API FI_VERSION(1, 17)

/* In our order of preference, 0 is best; names that we do not know come last. */
unsigned emu_provider_rank(const char *name);

/*
 * What we ask of a provider: reliable datagram endpoints with messages in order, and remote memory access. To be freed
 * with fi_freeinfo(). NULL: no memory.
 */
struct fi_info *emu_provider_hints(void);

#endif
