/*
 * nearest.h - the valid word that a mistyped one most likely meant.
 */
#ifndef INTERPOSE_SYSCALLS_NEAREST_H
#define INTERPOSE_SYSCALLS_NEAREST_H

#include <stddef.h>

/* Changes of one letter (put in, left out, replaced) between two words, or more than MAX as MAX + 1. Words of over 63 bytes
   are far from everything. */
unsigned nearest_distance(const char *a, const char *b, unsigned max);

/* The word of the list with the smallest distance, at most 3 and less than the length of WORD (so that "x" does not suggest
   whatever is short); the first of several. NULL for none. NULL entries of the list are skipped. */
const char *nearest_word(const char *word, const char *const *words, size_t count);

#endif
