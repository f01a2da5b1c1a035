/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results of internal calls as codes of the API.
 */
#ifndef LIBUGNI_RC_H
#define LIBUGNI_RC_H

#include <gni_pub.h>

/* The call that answers, where calls document different codes for the same result. */
enum gnii_call {
    GNII_CALL_PLAIN,         /* only what all calls have in common */
    GNII_CALL_CREATE,        /* makes, attaches or configures an object that emunic knows */
    GNII_CALL_RESERVE_MDDS,  /* GNI_SetMddResources */
    GNII_CALL_FIND_DATAGRAM, /* probes that do not wait, and cancelling */
    GNII_CALL_LAST_LOOK,     /* a probe that was to wait and has no time left */
    GNII_CALL_MSGQ_INIT,
    GNII_CALL_SUBSCRIBE,     /* GNI_SubscribeErrors with a NIC handle */
    GNII_CALL_SUBSCRIBE_ALL, /* GNI_SubscribeErrors without one: for privileged users */
    GNII_CALL_INJECTION,     /* GNI_SetBIConfig */
    GNII_CALL_CONFIGURE,     /* GNI_ConfigureJob, GNI_ConfigureNTT, GNI_ConfigureNTTandJob */
    GNII_CALL_SUSPEND,
    GNII_CALL_SUSPEND_NOW, /* without time to wait */
    GNII_CALL_RESUME,
    GNII_CALLS,
};

/* The code that `call` answers. result: 0, a negative errno or an enum emu_outcome. Any thread. */
gni_return_t gnii_rc(enum gnii_call call, int result);

#endif
