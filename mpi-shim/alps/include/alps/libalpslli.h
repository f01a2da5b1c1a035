/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The request channel between an application process and its launcher: application id and network credentials.
 *
 * Here nobody is asked: the answers come from the environment that `emunic run` sets. A dialogue is: lock; put a
 * request; get_response tells status and length of the answer; get_response_bytes fetches it; perhaps more requests;
 * unlock.
 *
 * All calls: any thread, never block but for the lock, 0 (ALPS_APP_LLI_ALPS_STAT_OK) is success, anything else failure.
 * Source: use by public clients (share/doc/emunic/spec/cray-runtime.md 3.1, 3.2). The vendor header was not seen:
 * numbers and layouts are our own, so programs must be compiled against this header.
 */
#ifndef ALPS_LIBALPSLLI_H
#define ALPS_LIBALPSLLI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Results and statuses */
#define ALPS_APP_LLI_ALPS_STAT_OK    0
#define ALPS_APP_LLI_ALPS_STAT_ERROR 1 /* no such request; nothing known; wrong order of calls; wrong argument */

/* Requests */
#define ALPS_APP_LLI_ALPS_REQ_APID    1 /* answer: uint64_t, the application id */
#define ALPS_APP_LLI_ALPS_REQ_GNI     2 /* answer: alpsAppLLIGni_t with its credentials */
#define ALPS_APP_LLI_ALPS_REQ_START   3 /* answer: status only */
#define ALPS_APP_LLI_ALPS_REQ_EXITING 4 /* answer: status only */

/** One credential: what a process needs to join a communication domain. */
typedef struct alpsAppGni {
    uint32_t device_id;
    int32_t local_addr; /* NIC address of this node */
    uint32_t cookie;
    uint32_t ptag;
} alpsAppGni_t;

/**
 * Answer to ALPS_APP_LLI_ALPS_REQ_GNI: this header with `count` credentials in u.buf, one behind the other; 1024 bytes
 * at most.
 */
typedef struct alpsAppLLIGni {
    int32_t type; /* 0 */
    int32_t len;  /* bytes of all credentials */
    int32_t count;
    union {
        uint64_t alignment;
        char buf[sizeof(alpsAppGni_t)];
    } u;
} alpsAppLLIGni_t;

/** Begin a dialogue: no other thread comes between. A thread may lock again. @return 0. */
int alps_app_lli_lock(void);

/** End it. @return 0, also without a lock. */
int alps_app_lli_unlock(void);

/**
 * Ask. Replaces an answer that was not fetched.
 *
 * @param buf, len  Data of the request; ignored, as no request has any.
 * @retval 1  No such request.
 */
int alps_app_lli_put_request(int request, void *buf, size_t len);

/**
 * What became of the request.
 *
 * @param[out] status  ALPS_APP_LLI_ALPS_STAT_ERROR with 0 bytes: outside a job (PMI_GNI_COOKIE, EMUNIC_COOKIE and, for
 *                     the application id, ALPS_APP_ID are all unset).
 * @param[out] nbytes  Length of the answer, 8 for the application id.
 * @retval 1  Nothing was asked, or an argument is NULL.
 */
int alps_app_lli_get_response(int *status, size_t *nbytes);

/**
 * Fetch the next bytes of the answer. Beyond its end nothing is written.
 * @retval 1  Nothing was asked, or buf is NULL and nbytes is not 0.
 */
int alps_app_lli_get_response_bytes(void *buf, size_t nbytes);

#ifdef __cplusplus
}
#endif

#endif
