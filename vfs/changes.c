/*
 * changes.c - changes of an upper
 *
 * Two walks: the first finds what was renamed, so that the second does not tell the old name as gone.
 */
#include "vfs/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vfs/mark.h"
#include "vfs/origin.h"
#include "vfs/upper_walk.h"

struct move {
	char *from, *to;
};

struct find {
	const struct upper *upper;
	struct origins origins;
	struct move *moves;	/* sorted by `from` after the first walk */
	size_t count, room;
	int (*tell)(void *arg, const struct change *change);
	void *arg;
};

/* --- what was renamed ---------------------------------------------------------------------------------------------------------- */

static int move_add(struct find *find, const char *from, const char *to)
{
	struct move move;

	if (find->count == find->room) {
		size_t more = find->room ? find->room * 2 : 16;
		struct move *grown = reallocarray(find->moves, more, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		find->moves = grown;
		find->room = more;
	}
	move = (struct move){ strdup(from), strdup(to) };
	if (!move.from || !move.to) {
		free(move.from);
		free(move.to);
		return -ENOMEM;
	}
	find->moves[find->count++] = move;
	return 0;
}

static int move_order(const void *a, const void *b)
{
	const struct move *one = a, *two = b;
	int order = strcmp(one->from, two->from);

	return order ? order : strcmp(one->to, two->to);
}

/* The first name, of several links, that was renamed from there. */
static const struct move *move_from(const struct find *find, const char *from)
{
	size_t low = 0, high = find->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(find->moves[middle].from, from) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < find->count && !strcmp(find->moves[low].from, from) ? &find->moves[low] : NULL;
}

/* Whether guests deleted the name. */
static bool is_whiteout_at(const struct upper *upper, const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	char *above = strndup(path, name - path);
	int dir = above ? walk_open(upper->fs_fd, above) : -1;
	struct stat st;
	bool is;

	is = dir >= 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && mark_is_whiteout(dir, name, &st);
	if (dir >= 0)
		close(dir);
	free(above);
	return is;
}

/* The guest path of which the file was copied, when that is not its place. */
static const char *origin_elsewhere(const struct find *find, const struct walk_entry *entry)
{
	const struct origin *origin = entry->whiteout ? NULL : origins_find(&find->origins, &entry->st);

	if (!origin || !strcmp(origin->path, entry->path) || !strcmp(origin->path, entry->place))
		return NULL;
	return origin->path;
}

static int moves_enter(void *arg, struct walk_entry *entry)
{
	struct find *find = arg;
	const char *from = entry->fd >= 0 ? entry->moved : origin_elsewhere(find, entry);

	if (!from || (entry->fd < 0 && !is_whiteout_at(find->upper, from)))
		return 0;
	return move_add(find, from, entry->path);
}

/* --- what to tell -------------------------------------------------------------------------------------------------------------- */

static int tell(struct find *find, const struct walk_entry *entry, char kind, unsigned what, const char *from)
{
	const struct statx *st = kind == 'D' ? &entry->place_st : &entry->st;
	bool lower = kind != 'A' && entry->placed;
	const struct change change = {
		.kind = kind,
		.what = what,
		.mode = st->stx_mode,
		.size = st->stx_size,
		.path = entry->path,
		.from = from,
		.upper_dir = kind == 'D' ? -1 : entry->dirfd,
		.lower_dir = lower ? entry->place_dir : -1,
		.name = entry->name,
	};

	return find->tell(find->arg, &change);
}

static bool lower_is_seen(const struct walk_entry *entry)
{
	return entry->placed && !entry->hidden;
}

/* What was at the place, and has not only gone elsewhere, is gone. */
static int tell_gone(struct find *find, const struct walk_entry *entry)
{
	if (!lower_is_seen(entry) || move_from(find, entry->path) || move_from(find, entry->place))
		return 0;
	return tell(find, entry, 'D', 0, NULL);
}

static unsigned directory_compare(const struct walk_entry *entry)
{
	struct statx lower;

	if (entry->scaffold || entry->lower_fd < 0 || statx(entry->lower_fd, "", AT_EMPTY_PATH, WALK_STATX, &lower) < 0)
		return 0;
	return change_compare(entry->fd, ".", &entry->st, entry->lower_fd, ".", &lower);
}

static int directory_tell(struct find *find, const struct walk_entry *entry)
{
	bool root = !strcmp(entry->path, "/"), merged = root || (lower_is_seen(entry) && S_ISDIR(entry->place_st.stx_mode));
	unsigned what;
	int error;

	if (entry->moved) {
		error = tell_gone(find, entry);
		return error ? error : tell(find, entry, 'R', directory_compare(entry), entry->moved);
	}
	if (merged && !entry->opaque) {
		what = directory_compare(entry);
		return what ? tell(find, entry, 'M', what, NULL) : 0;
	}
	error = tell_gone(find, entry);
	return error ? error : tell(find, entry, 'A', 0, NULL);
}

static int file_tell(struct find *find, const struct walk_entry *entry)
{
	const char *from = origin_elsewhere(find, entry);
	const struct move *move = from ? move_from(find, from) : NULL;
	unsigned what;
	int error;

	if (move && !strcmp(move->to, entry->path))
		return tell(find, entry, 'R', 0, from);
	if (!lower_is_seen(entry))
		return tell(find, entry, 'A', 0, NULL);
	if (S_ISDIR(entry->place_st.stx_mode) || move_from(find, entry->path)) {
		error = tell_gone(find, entry);
		return error ? error : tell(find, entry, 'A', 0, NULL);
	}
	what = change_compare(entry->dirfd, entry->name, &entry->st, entry->place_dir, entry->name, &entry->place_st);
	return what ? tell(find, entry, 'M', what, NULL) : 0;
}

static int tell_enter(void *arg, struct walk_entry *entry)
{
	if (entry->fd >= 0)
		return directory_tell(arg, entry);
	return entry->whiteout ? tell_gone(arg, entry) : file_tell(arg, entry);
}

int changes_walk(const struct upper *upper, int lower_root, int (*tell_one)(void *arg, const struct change *change), void *arg,
		 char **failed)
{
	struct find find = { .upper = upper, .tell = tell_one, .arg = arg };
	struct walk first = { .enter = moves_enter, .arg = &find }, second = { .enter = tell_enter, .arg = &find };
	int error = origins_load(&find.origins, upper->origins_fd);

	*failed = NULL;
	if (!error) {
		error = walk_run(&first, upper, lower_root);
		*failed = first.failed;
	}
	if (!error && find.count)
		qsort(find.moves, find.count, sizeof(*find.moves), move_order);
	if (!error) {
		error = walk_run(&second, upper, lower_root);
		*failed = second.failed;
	}
	for (size_t i = 0; i < find.count; i++) {
		free(find.moves[i].from);
		free(find.moves[i].to);
	}
	free(find.moves);
	origins_free(&find.origins);
	return error;
}
