/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts from outside (files, arguments, peers) must not break a line or reach a terminal with more than letters. Any
 * thread.
 */
#ifndef EMUNIC_BASE_TEXT_H
#define EMUNIC_BASE_TEXT_H

/* Control characters become `instead`. */
static inline void emu_text_tame(char *text, char instead)
{
    for (char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = instead;
    }
}

/* Control characters and all that is not ASCII become '?'. */
static inline void emu_text_tame_to_ascii(char *text)
{
    for (char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ' || (unsigned char)*c >= 127)
            *c = '?';
    }
}

#endif
