/*
 * nearest.c - Levenshtein distance over short words.
 */
#include <string.h>

#include "syscalls/nearest.h"

enum { WORD_MAX = 63, FAR = 3 };

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned nearest_distance(const char *a, const char *b, unsigned max)
{
	size_t a_len = strnlen(a, WORD_MAX + 1), b_len = strnlen(b, WORD_MAX + 1);
	unsigned row[WORD_MAX + 1];

	if (a_len > WORD_MAX || b_len > WORD_MAX)
		return max + 1;
	if ((a_len > b_len ? a_len - b_len : b_len - a_len) > max)
		return max + 1;
	for (unsigned j = 0; j <= b_len; j++)
		row[j] = j;
	for (unsigned i = 1; i <= a_len; i++) {
		unsigned diagonal = row[0], smallest;

		smallest = row[0] = i;
		for (unsigned j = 1; j <= b_len; j++) {
			unsigned above = row[j];

			row[j] = least(least(above, row[j - 1]) + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
			smallest = least(smallest, row[j]);
		}
		if (smallest > max)
			return max + 1;
	}
	return least(row[b_len], max + 1);
}

const char *nearest_word(const char *word, const char *const *words, size_t count)
{
	size_t len = strnlen(word, WORD_MAX + 1);
	unsigned best = len > FAR ? FAR + 1 : (unsigned)len; /* to be beaten */
	const char *nearest = NULL;

	for (size_t i = 0; i < count && best; i++) {
		unsigned distance = words[i] ? nearest_distance(word, words[i], best - 1) : best;

		if (distance < best) {
			nearest = words[i];
			best = distance;
		}
	}
	return nearest;
}
