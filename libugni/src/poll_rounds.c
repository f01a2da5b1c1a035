/* SPDX-License-Identifier: BSD-3-Clause */
#include "libugni/src/poll_rounds.h"

#include "emunic/client/port.h"
#include "libugni/src/ugni.h"

void gnii_rounds_begin(gni_nic_handle_t nic_hndl)
{
    struct gnii_nic *nic = gnii_nic_find(nic_hndl);

    if (nic)
        emu_port_poll_in_rounds(&nic->port);
}

void gnii_rounds_end_one(gni_nic_handle_t nic_hndl, bool may_yield)
{
    struct gnii_nic *nic = gnii_nic_find(nic_hndl);

    if (nic)
        emu_port_end_round(&nic->port, may_yield);
}

void gnii_rounds_stir(gni_nic_handle_t nic_hndl)
{
    struct gnii_nic *nic = gnii_nic_find(nic_hndl);

    if (nic)
        emu_port_stir(&nic->port);
}
