/* SPDX-License-Identifier: BSD-3-Clause */
/* For message layers of this project that are linked with libugni: their own cost. */
#include "emunic/client/message_cost.h"

bool gnii_message_costs(void)
{
    return emu_message_costs();
}

void gnii_message_spend(enum emu_message_end end)
{
    emu_message_spend(end);
}
