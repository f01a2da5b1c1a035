/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMI_SRC_TEXT_H
#define PMI_SRC_TEXT_H

/* Checks and copies that PMI-1 and PMI-2 share. All return API codes (both numberings are equal). Any thread. */

/** @retval PMI_ERR_INVALID_ARG, PMI_ERR_INVALID_KEY, PMI_ERR_INVALID_KEY_LENGTH */
int pmii_check_key(const char *key);

/** @retval PMI_ERR_INVALID_ARG, PMI_ERR_INVALID_VAL_LENGTH */
int pmii_check_value(const char *value);

/** Copy with NUL. @retval PMI_ERR_INVALID_LENGTH room too small; nothing written. */
int pmii_copy_text(const char *text, char *out, int room);

/** Numbers of "1,2,3": how many, the first `room` of them stored. @return -1 when it is not such a list. */
int pmii_text_to_ints(const char *text, int *out, int room);

#endif
