/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The request channel, without a channel.
 *
 * An answer is made when it is asked for and kept until the next request; `at` tells how much was fetched. The lock
 * that clients take is theirs alone (recursive, of the process); a second one guards the answer, so that a client that
 * forgot the first does no harm.
 *
 * Credentials are a transcription of the PMI_GNI_* variables, element for element: lists separated by colons, in
 * decimal, a cookie perhaps signed. Without them EMUNIC_COOKIE and the tag that belongs to it. Source:
 * spec/cray-runtime.md 2.6, 3.1, 3.2.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/abi/credentials.h"
#pragma GCC visibility push(default)
#include "mpi-shim/alps/include/alps/libalpslli.h"
#pragma GCC visibility pop

#define CREDENTIALS_MAX 16 /* the answer must stay below 1024 bytes */
#define HEADER_BYTES    offsetof(alpsAppLLIGni_t, u)

static pthread_mutex_t dialogue = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static struct {
    pthread_mutex_t lock;
    bool is_asked;
    int status;
    size_t len;
    size_t at;
    _Alignas(8) char bytes[HEADER_BYTES + CREDENTIALS_MAX * sizeof(alpsAppGni_t)];
} answer = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- facts ---- */

/* The element of a list, as a number that fits 32 bits, signed or not. */
static bool element(const char *list, unsigned index, uint32_t *value_out)
{
    long long value;
    char *end;

    while (list && index-- > 0) {
        list = strchr(list, ':');
        list = list ? list + 1 : NULL;
    }
    if (!list)
        return false;
    value = strtoll(list, &end, 10);
    if (end == list || (*end != '\0' && *end != ':') || value > UINT32_MAX || value < INT32_MIN)
        return false;
    *value_out = (uint32_t)value;
    return true;
}

static bool find_apid(uint64_t *apid_out)
{
    const char *text = getenv("ALPS_APP_ID");
    uint32_t cookie;
    char *end;

    if (text && *text) {
        *apid_out = strtoull(text, &end, 10);
        return *end == '\0';
    }
    if (!element(getenv("EMUNIC_COOKIE"), 0, &cookie) && !element(getenv("PMI_GNI_COOKIE"), 0, &cookie))
        return false;
    *apid_out = cookie;
    return true;
}

static bool find_credential(unsigned index, alpsAppGni_t *credential_out)
{
    alpsAppGni_t c = { 0 };
    uint32_t addr = 0;

    if (element(getenv("PMI_GNI_COOKIE"), index, &c.cookie)) {
        if (!element(getenv("PMI_GNI_PTAG"), index, &c.ptag))
            c.ptag = emu_ptag_of_cookie(c.cookie);
    } else if (index == 0 && element(getenv("EMUNIC_COOKIE"), 0, &c.cookie)) {
        if (!element(getenv("EMUNIC_PTAG"), 0, &c.ptag))
            c.ptag = emu_ptag_of_cookie(c.cookie);
    } else {
        return false;
    }
    element(getenv("PMI_GNI_DEV_ID"), index, &c.device_id);
    if (!element(getenv("PMI_GNI_LOC_ADDR"), index, &addr))
        element(getenv("EMUNIC_NID"), 0, &addr);
    c.local_addr = (int32_t)addr;
    *credential_out = c;
    return true;
}

/* ---- answers ---- */

static bool answer_apid(void)
{
    uint64_t apid;

    if (!find_apid(&apid))
        return false;
    memcpy(answer.bytes, &apid, sizeof(apid));
    answer.len = sizeof(apid);
    return true;
}

static bool answer_gni(void)
{
    alpsAppLLIGni_t header = { 0 };
    alpsAppGni_t credential;
    int n = 0;

    while (n < CREDENTIALS_MAX && find_credential((unsigned)n, &credential)) {
        memcpy(answer.bytes + HEADER_BYTES + (size_t)n * sizeof(credential), &credential, sizeof(credential));
        n++;
    }
    header.len = n * (int)sizeof(credential);
    header.count = n;
    memcpy(answer.bytes, &header, HEADER_BYTES);
    answer.len = HEADER_BYTES + (size_t)n * sizeof(credential);
    return n > 0;
}

static int make_answer(int request)
{
    bool is_known = true;

    answer.len = 0;
    switch (request) {
    case ALPS_APP_LLI_ALPS_REQ_APID:
        is_known = answer_apid();
        break;
    case ALPS_APP_LLI_ALPS_REQ_GNI:
        is_known = answer_gni();
        break;
    case ALPS_APP_LLI_ALPS_REQ_START:
    case ALPS_APP_LLI_ALPS_REQ_EXITING:
        break;
    default:
        answer.is_asked = false;
        return ALPS_APP_LLI_ALPS_STAT_ERROR;
    }
    answer.is_asked = true;
    answer.at = 0;
    answer.status = is_known ? ALPS_APP_LLI_ALPS_STAT_OK : ALPS_APP_LLI_ALPS_STAT_ERROR;
    if (!is_known)
        answer.len = 0;
    return ALPS_APP_LLI_ALPS_STAT_OK;
}

/* ---- calls ---- */

int alps_app_lli_lock(void)
{
    pthread_mutex_lock(&dialogue);
    return 0;
}

int alps_app_lli_unlock(void)
{
    pthread_mutex_unlock(&dialogue); /* refuses, harmlessly, when it is not ours */
    return 0;
}

int alps_app_lli_put_request(int request, void *buf, size_t len)
{
    int r;

    (void)buf;
    (void)len;
    pthread_mutex_lock(&answer.lock);
    r = make_answer(request);
    pthread_mutex_unlock(&answer.lock);
    return r;
}

int alps_app_lli_get_response(int *status, size_t *nbytes)
{
    int r = ALPS_APP_LLI_ALPS_STAT_ERROR;

    pthread_mutex_lock(&answer.lock);
    if (answer.is_asked && status && nbytes) {
        *status = answer.status;
        *nbytes = answer.len;
        r = ALPS_APP_LLI_ALPS_STAT_OK;
    }
    pthread_mutex_unlock(&answer.lock);
    return r;
}

int alps_app_lli_get_response_bytes(void *buf, size_t nbytes)
{
    int r = ALPS_APP_LLI_ALPS_STAT_ERROR;

    pthread_mutex_lock(&answer.lock);
    if (answer.is_asked && (buf || nbytes == 0)) {
        size_t n = answer.len - answer.at < nbytes ? answer.len - answer.at : nbytes;

        if (n > 0)
            memcpy(buf, answer.bytes + answer.at, n);
        answer.at += n;
        r = ALPS_APP_LLI_ALPS_STAT_OK;
    }
    pthread_mutex_unlock(&answer.lock);
    return r;
}
