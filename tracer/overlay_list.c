/* overlay_list.c - the named overlays */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tracer/message.h"
#include "tracer/overlay_impl.h"
#include "vfs/changes.h"
#include "vfs/upper_walk.h"

struct overlay {
	const char *name;
	char *path;
	char why[OVERLAY_WHY];	/* what is wrong with it; "" for nothing */
	unsigned long long bytes;
	unsigned long changes;
	pid_t user;
	time_t used;
};

static int add_size(void *arg, struct walk_entry *entry)
{
	struct overlay *overlay = arg;

	overlay->bytes += entry->st.stx_blocks * 512;
	return 0;
}

static int add_change(void *arg, const struct change *change)
{
	struct overlay *overlay = arg;

	(void)change;
	overlay->changes++;
	return 0;
}

static void measure(struct overlay *overlay, int lower)
{
	struct walk walk = { .enter = add_size, .arg = overlay };
	struct upper upper;
	struct stat st;
	char *failed = NULL;
	int error = upper_open_existing(&upper, overlay->path, false, overlay->why, sizeof(overlay->why));

	if (error)
		return;
	overlay->user = upper_user(upper.root_fd);
	if (fstatat(upper.root_fd, "lock", &st, AT_SYMLINK_NOFOLLOW) == 0)
		overlay->used = st.st_mtime;
	error = walk_run(&walk, &upper, lower);
	free(walk.failed);
	if (!error)
		error = changes_walk(&upper, lower, add_change, overlay, &failed);
	if (error)
		snprintf(overlay->why, sizeof(overlay->why), "cannot read all of it: %s", strerror(-error));
	free(failed);
	upper_close(&upper);
}

static void print_json(const struct overlay *overlay, bool first)
{
	char when[32] = "";
	struct tm tm;

	fputs(first ? "\n  {\"name\": " : ",\n  {\"name\": ", stdout);
	overlay_json_string(stdout, overlay->name);
	fputs(", \"path\": ", stdout);
	overlay_json_string(stdout, overlay->path);
	if (overlay->used && gmtime_r(&overlay->used, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	printf(", \"size\": %llu, \"changes\": %lu, \"pid\": ", overlay->bytes, overlay->changes);
	if (overlay->user > 0)
		printf("%d", (int)overlay->user);
	else
		fputs("null", stdout);
	printf(", \"in_use\": %s, \"last_used\": %s%s%s", overlay->user ? "true" : "false", *when ? "\"" : "", *when ? when : "null",
	       *when ? "\"" : "");
	if (overlay->why[0]) {
		fputs(", \"error\": ", stdout);
		overlay_json_string(stdout, overlay->why);
	}
	putchar('}');
}

static void print_line(const struct overlay *overlay)
{
	static const char units[] = " KMGT";
	char when[32] = "never", size[16], use[32] = "";
	double bytes = overlay->bytes;
	int unit = 0;
	struct tm tm;

	for (; bytes >= 1024 && unit < 4; unit++)
		bytes /= 1024;
	snprintf(size, sizeof(size), unit ? "%.1f%c" : "%.0f", bytes, units[unit]);
	if (overlay->used && localtime_r(&overlay->used, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &tm);
	if (overlay->user)
		snprintf(use, sizeof(use), overlay->user > 0 ? ", in use by process %d" : ", in use", (int)overlay->user);
	if (overlay->why[0])
		printf("%-24s damaged: see interpose diff %s\n", overlay->name, overlay->name);
	else
		printf("%-24s %8s, %lu change%s, last used %s%s\n", overlay->name, size, overlay->changes, overlay->changes == 1 ? "" : "s",
		       when, use);
}

static int only_names(const struct dirent *entry)
{
	return upper_name_valid(entry->d_name);
}

static int list(const char *state, const struct overlay_options *options, int lower)
{
	struct dirent **entries;
	int count = scandir(state, &entries, only_names, alphasort);
	bool first = true;

	if (count < 0 && errno != ENOENT) {
		message("cannot read '%s': %s", state, strerror(errno));
		return EXIT_OWN_FAILURE;
	}
	if (options->json)
		putchar('[');
	for (int i = 0; i < count; i++) {
		struct overlay overlay = { .name = entries[i]->d_name };

		if (asprintf(&overlay.path, "%s/%s", state, overlay.name) < 0)
			continue;
		measure(&overlay, lower);
		if (options->json)
			print_json(&overlay, first);
		else
			print_line(&overlay);
		first = false;
		free(overlay.path);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	if (options->json)
		fputs(first ? "]\n" : "\n]\n", stdout);
	return 0;
}

int overlay_list_command(const struct overlay_options *options)
{
	char why[OVERLAY_WHY], *state = upper_state_dir(why, sizeof(why));
	int lower, status;

	if (!state) {
		message("%s", why);
		return EXIT_OWN_FAILURE;
	}
	lower = overlay_lower();
	status = lower < 0 ? EXIT_OWN_FAILURE : list(state, options, lower);
	if (lower >= 0)
		close(lower);
	free(state);
	return status;
}
