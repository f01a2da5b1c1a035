/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words by their edit distance: the last row of the matrix of Wagner and Fischer (1974) is all that is kept.
 */
#include "emunic/base/nearest.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

#define LENGTH_MAX    127
#define BEGINNING_MIN 3 /* letters that say something about the rest */

unsigned emu_word_distance(const char *a, const char *b)
{
    size_t len = strlen(b);
    unsigned row[LENGTH_MAX + 1];

    if (len > LENGTH_MAX || strlen(a) > LENGTH_MAX)
        return UINT_MAX;
    for (size_t j = 0; j <= len; j++)
        row[j] = (unsigned)j;
    for (size_t i = 0; a[i] != '\0'; i++) {
        unsigned diagonal = row[0];

        row[0] = (unsigned)i + 1;
        for (size_t j = 0; j < len; j++) {
            unsigned above = row[j + 1];
            unsigned best = diagonal + (a[i] != b[j]);

            if (above + 1 < best)
                best = above + 1;
            if (row[j] + 1 < best)
                best = row[j] + 1;
            diagonal = above;
            row[j + 1] = best;
        }
    }
    return row[len];
}

struct emu_nearest emu_nearest_to(const char *word, unsigned distance_max)
{
    unsigned half = (unsigned)strlen(word) / 2;

    return (struct emu_nearest){ .word = word, .distance = (distance_max < half ? distance_max : half) + 1 };
}

void emu_nearest_offer(struct emu_nearest *nearest, const char *candidate, const char *answer)
{
    size_t len = strlen(nearest->word);
    unsigned distance = emu_word_distance(nearest->word, candidate);

    if (distance > 1 && len >= BEGINNING_MIN && strncmp(nearest->word, candidate, len) == 0)
        distance = 1;
    if (distance < nearest->distance) {
        nearest->distance = distance;
        nearest->answer = answer;
    }
}
