/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program sees of a transaction that an injected fault hits.
 */
#ifndef TESTS_CONFORMANCE_FAULTS_H
#define TESTS_CONFORMANCE_FAULTS_H

#include "tests/conformance/pair.h"

struct outcome {
    const char *fault; /* "action=..." */
    enum status status;
    uint32_t recoverable;
    const char *text; /* in what GNI_CqErrorStr() says */
};

static inline void expect_entry(gni_cq_entry_t entry, const struct outcome *o)
{
    uint32_t recoverable = 77;
    char text[256];

    assert_int_equal(GNI_CQ_GET_STATUS(entry), o->status);
    assert_int_equal(GNI_CqErrorRecoverable(entry, &recoverable), GNI_RC_SUCCESS);
    assert_int_equal(recoverable, o->recoverable);
    assert_int_equal(GNI_CqErrorStr(entry, text, sizeof(text)), GNI_RC_SUCCESS);
    if (!strstr(text, o->text))
        fail_msg("%s: the text is '%s'", o->fault, text);
    assert_int_equal(GNI_CQ_REM_OVERRUN(entry) != 0, o->status == STATUS_REMOTE_CQ_FULL);
}

#endif
