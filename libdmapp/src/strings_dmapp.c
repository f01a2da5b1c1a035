/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and sentences of the return codes. */
#include <dmapp.h>

#define N_CODES (DMAPP_RC_NOT_USED + 1)

const char *dmapp_err_str[N_CODES] = {
    [DMAPP_RC_SUCCESS] = "DMAPP_RC_SUCCESS",
    [DMAPP_RC_INVALID_PARAM] = "DMAPP_RC_INVALID_PARAM",
    [DMAPP_RC_ALIGNMENT_ERROR] = "DMAPP_RC_ALIGNMENT_ERROR",
    [DMAPP_RC_TRANSACTION_ERROR] = "DMAPP_RC_TRANSACTION_ERROR",
    [DMAPP_RC_RESOURCE_ERROR] = "DMAPP_RC_RESOURCE_ERROR",
    [DMAPP_RC_PERMISSION_ERROR] = "DMAPP_RC_PERMISSION_ERROR",
    [DMAPP_RC_NO_SPACE] = "DMAPP_RC_NO_SPACE",
    [DMAPP_RC_NOT_DONE] = "DMAPP_RC_NOT_DONE",
    [DMAPP_RC_NOT_SUPPORTED] = "DMAPP_RC_NOT_SUPPORTED",
    [DMAPP_RC_NOT_FOUND] = "DMAPP_RC_NOT_FOUND",
    [DMAPP_RC_BUSY] = "DMAPP_RC_BUSY",
    [DMAPP_RC_NOT_USED] = "DMAPP_RC_NOT_USED",
};

static const char *const sentences[N_CODES] = {
    [DMAPP_RC_SUCCESS] = "The request is done, or has been accepted.",
    [DMAPP_RC_INVALID_PARAM] = "An argument is not acceptable.",
    [DMAPP_RC_ALIGNMENT_ERROR] = "An address is not aligned as the operation needs it.",
    [DMAPP_RC_TRANSACTION_ERROR] = "The network has reported that a transaction failed.",
    [DMAPP_RC_RESOURCE_ERROR] = "A resource is missing, or the library could not start; nothing was issued.",
    [DMAPP_RC_PERMISSION_ERROR] = "The memory does not permit the operation.",
    [DMAPP_RC_NO_SPACE] = "No request or table entry is left; synchronise and try again.",
    [DMAPP_RC_NOT_DONE] = "The request is still in progress.",
    [DMAPP_RC_NOT_SUPPORTED] = "The operation is not available here, or not for this type.",
    [DMAPP_RC_NOT_FOUND] = "There is no object of that name.",
    [DMAPP_RC_BUSY] = "The object is in use.",
    [DMAPP_RC_NOT_USED] = "This code is never returned.",
};

dmapp_return_t dmapp_explain_error(dmapp_return_t rc, const char **msg)
{
    if (!msg)
        return DMAPP_RC_INVALID_PARAM;
    if ((unsigned)rc >= N_CODES) {
        *msg = "There is no such return code.";
        return DMAPP_RC_INVALID_PARAM;
    }
    *msg = sentences[rc];
    return DMAPP_RC_SUCCESS;
}
