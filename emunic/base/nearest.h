/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What somebody who wrote a word that we do not know probably meant. Any thread.
 *
 *   struct emu_nearest nearest = emu_nearest_to("mahcine", 2);
 *   for each word that we know: emu_nearest_offer(&nearest, word, word);
 *   nearest.answer is that of the word most like it, or NULL
 */
#ifndef EMUNIC_BASE_NEAREST_H
#define EMUNIC_BASE_NEAREST_H

struct emu_nearest {
    const char *word;   /* borrowed */
    const char *answer; /* borrowed from who offered it; NULL: no word is near enough */
    unsigned distance;  /* of the answer's word, or one more than may be */
};

/*
 * Letters to change, add or drop to get from one word to the other; far more than any limit for words of 128 or more.
 */
unsigned emu_word_distance(const char *a, const char *b);

/*
 * distance_max: a word that is farther away was not meant. Neither was one of which less than half stays; so one letter
 * is always too short.
 */
struct emu_nearest emu_nearest_to(const char *word, unsigned distance_max);

/* The first of words that are equally near stays. A word that ours is the beginning of is as near as one letter. */
void emu_nearest_offer(struct emu_nearest *nearest, const char *candidate, const char *answer);

#endif
