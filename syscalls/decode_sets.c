/*
 * decode_sets.c - the sets of calls that --trace=SET names.
 */
#include <errno.h>
#include <stdio.h>

#include "syscalls/decode_impl.h"
#include "syscalls/nearest.h"

enum { WORD_SIZE = 64 };

static const struct {
	const char *name;
	uint16_t classes;
} set_classes[] = {
	{ "%file", CLASS_FILE }, { "%desc", CLASS_DESC }, { "%network", CLASS_NET }, { "%net", CLASS_NET },
	{ "%process", CLASS_PROCESS }, { "%signal", CLASS_SIGNAL }, { "%ipc", CLASS_IPC }, { "%memory", CLASS_MEMORY },
	{ "%creds", CLASS_CREDS }, { "%stat", CLASS_STAT }, { "%clock", CLASS_CLOCK }, { "%pure", CLASS_PURE }
};

enum { CLASSES = sizeof(set_classes) / sizeof(set_classes[0]) };

/* Adds what one word names; false when it names nothing. */
static bool set_add(const char *word, bool *stop)
{
	int id;

	if (!strcmp(word, "all")) {
		memset(stop, true, CALL_COUNT * sizeof(*stop));
		return true;
	}
	if (!strcmp(word, "none"))
		return true;
	for (unsigned i = 0; i < CLASSES; i++) {
		if (strcmp(word, set_classes[i].name))
			continue;
		for (id = 0; id < CALL_COUNT; id++)
			stop[id] |= (row_table[id].classes & set_classes[i].classes) != 0;
		return true;
	}
	id = row_by_name(word);
	if (id == CALL_NONE)
		return false;
	stop[id] = true;
	return true;
}

/* The nearest of all words that would have been right. */
static const char *set_nearest(const char *word)
{
	const char *words[CALL_COUNT + CLASSES + 2];
	size_t count = 0;

	for (unsigned i = 0; i < CLASSES; i++)
		words[count++] = set_classes[i].name;
	words[count++] = "all";
	words[count++] = "none";
	for (int id = 0; id < CALL_COUNT; id++)
		words[count++] = row_table[id].name;
	return nearest_word(word, words, count);
}

int decode_parse_set(const char *set, bool *stop, char bad[64], char near[64])
{
	bool inverted = set[0] == '!';
	const char *from = set + inverted;

	memset(stop, false, CALL_COUNT * sizeof(*stop));
	bad[0] = near[0] = '\0';
	for (;;) {
		size_t len = strcspn(from, ",");
		char word[WORD_SIZE];
		const char *nearest;

		snprintf(word, sizeof(word), "%.*s", len < sizeof(word) ? (int)len : (int)sizeof(word) - 1, from);
		if (len >= sizeof(word) || !set_add(word, stop)) {
			nearest = len < sizeof(word) ? set_nearest(word) : NULL;
			snprintf(bad, WORD_SIZE, "%s", word);
			snprintf(near, WORD_SIZE, "%s", nearest ? nearest : "");
			return -EINVAL;
		}
		if (!from[len])
			break;
		from += len + 1;
	}
	for (int id = 0; inverted && id < CALL_COUNT; id++)
		stop[id] = !stop[id];
	return 0;
}
