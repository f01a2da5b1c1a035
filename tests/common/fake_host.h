/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host of a machine that is no emunic: a process of the test that speaks the transport. It says its hello, makes
 * every domain that the head asks for and answers the question for its status; to all else it is silent, unless the
 * test's functions, which run in that process, do something about it.
 */
#ifndef TESTS_COMMON_FAKE_HOST_H
#define TESTS_COMMON_FAKE_HOST_H

#include <stdatomic.h>

#include "emunic/abi/host_admin.h"
#include "emunic/transport/inner.h"
#include "tests/common/fixture.h"

/* Both processes have it mapped. */
struct fake_host {
    unsigned number;
    pid_t pid;
    _Atomic bool is_over;
    _Atomic bool holds_hello[FX_HOSTS_MAX]; /* of that host: it does not say it before this is cleared */
    _Atomic bool hides_status;              /* the question is not answered */
    _Atomic unsigned mode;                  /* what the test's functions make of it */
    _Atomic unsigned n_ends;                /* of its sessions */
    _Atomic unsigned n_rounds;              /* of test.act, for a test that waits for some */
    /* In that process only. */
    struct emu_transport *transport;
    bool is_up[FX_HOSTS_MAX]; /* there is a session */
    bool owes_hello[FX_HOSTS_MAX];
};

/* Both functions may be NULL. */
struct fake_host_test {
    unsigned held_hellos; /* a bit for each host that holds_hello is set of in the beginning */
    const char *key;      /* NULL: the machine's */
    /* A message of a host. True: dealt with. */
    bool (*take)(struct fake_host *fake, uint32_t host, const uint8_t *bytes, uint32_t length);
    /* Again and again. */
    void (*act)(struct fake_host *fake);
};

/* Host `number` of a machine that was started without it (fx_options.n_absent). Ends the program if that fails. */
struct fake_host *fake_host_start(struct fx *fx, unsigned number, const struct fake_host_test *test);
/* Wait status of the process, which is 0 unless something is wrong. */
int fake_host_stop(struct fake_host *fake);

/* ---- in that process ---- */

/* The answer to a question for its status, of which it says next to nothing. False: it was no such question. */
bool fake_host_answer_status(struct emu_transport *transport, uint32_t host, const uint8_t *bytes, uint32_t length);
/* The same with rows that the test has made. */
bool fake_host_answer_rows(struct emu_transport *transport, uint32_t host, const uint8_t *bytes, uint32_t length,
                           const uint64_t *words, uint32_t n);
/* The answer to the question whether it is there. False: it was no such question. */
bool fake_host_answer_ping(struct fake_host *fake, uint32_t host, const uint8_t *bytes, uint32_t length);

#endif
