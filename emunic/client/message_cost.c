/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message layer's own cost. The clock moves as by computing: nothing is asked of emunic. A thread whose first call
 * this is gets its clock here, as by any call of a library.
 */
#include "emunic/client/message_cost.h"

#include "emunic/client/virtual_clock.h"

bool emu_message_costs(void)
{
    return emu_vclock_page();
}

void emu_message_spend(enum emu_message_end end)
{
    const struct emu_vclock_page *page = emu_vclock_page();
    uint32_t cost_ps;

    if (!page)
        return;
    cost_ps = end == EMU_MESSAGE_SENT ? page->message_send_ps : page->message_recv_ps;
    if (cost_ps == 0)
        return;
    emu_vclock_begin();
    emu_vclock_spend(cost_ps);
}
