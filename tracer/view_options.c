/* view_options.c - the mounts of the command line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracer/message.h"
#include "tracer/view.h"
#include "tracer/view_impl.h"

/* Absolute, `~` taken for the home directory as in a policy file, no `.`, `..` or double slashes left. Links stay. */
char *view_absolute(const char *path)
{
	char here[PATH_MAX] = "", *joined = NULL, *out, *to;
	const char *home = getenv("HOME"), *at;

	if (path[0] == '~' && (!path[1] || path[1] == '/') && home) {
		if (asprintf(&joined, "%s%s", home, path + 1) < 0)
			return NULL;
	} else if (path[0] == '/') {
		joined = strdup(path);
	} else if (!getcwd(here, sizeof(here)) || asprintf(&joined, "%s/%s", here, path) < 0) {
		return NULL;
	}
	out = joined ? malloc(strlen(joined) + 2) : NULL;
	if (!out) {
		free(joined);
		return NULL;
	}
	to = out;
	for (at = joined; *at;) {
		size_t len;

		at += strspn(at, "/");
		len = strcspn(at, "/");
		if (len == 2 && !strncmp(at, "..", 2)) {
			while (to > out && *--to != '/')
				;
		} else if (len && !(len == 1 && *at == '.')) {
			*to++ = '/';
			memcpy(to, at, len);
			to += len;
		}
		at += len;
	}
	if (to == out)
		*to++ = '/';
	*to = 0;
	free(joined);
	return out;
}

int view_spec_add(struct vfs_mount_spec **specs, size_t *count, struct vfs_mount_spec spec)
{
	struct vfs_mount_spec *grown = realloc(*specs, (*count + 1) * sizeof(*grown));

	if (!grown || !spec.path) {
		if (grown)
			*specs = grown;
		free((char *)spec.path);
		free((char *)spec.source);
		return -ENOMEM;
	}
	grown[(*count)++] = spec;
	*specs = grown;
	return 0;
}

static const char *option_name(enum vfs_kind kind)
{
	static const char *const names[] = { "--cow", "--rw", "--ro", "--tmp", "--bind", "--file", "--hide" };

	return names[kind];
}

/* SRC:DST and DST=SRC. */
static int split(enum vfs_kind kind, const char *word, char **path, char **source)
{
	const char *at = strchr(word, kind == VFS_BIND ? ':' : '=');
	char *first;

	if (!at || at == word || !at[1]) {
		message("%s '%s': %s is wanted", option_name(kind), word, kind == VFS_BIND ? "SRC:DST" : "DST=SRC");
		return -EINVAL;
	}
	first = strndup(word, at - word);
	if (!first)
		return -ENOMEM;
	*path = view_absolute(kind == VFS_BIND ? at + 1 : first);
	*source = view_absolute(kind == VFS_BIND ? first : at + 1);
	free(first);
	return 0;
}

int view_option(struct view_options *options, enum vfs_kind kind, const char *word)
{
	char *path = NULL, *source = NULL;
	int error = 0;

	if (!*word) {
		message("%s needs a path", option_name(kind));
		return -EINVAL;
	}
	if (kind == VFS_BIND || kind == VFS_FILE)
		error = split(kind, word, &path, &source);
	else
		path = view_absolute(word);
	if (error < 0)
		return error;
	return view_spec_add(&options->mounts, &options->mount_count, (struct vfs_mount_spec){ .kind = kind, .path = path, .source = source });
}

void view_specs_free(struct vfs_mount_spec *specs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free((char *)specs[i].path);
		free((char *)specs[i].source);
	}
	free(specs);
}

void view_options_free(struct view_options *options)
{
	view_specs_free(options->mounts, options->mount_count);
	options->mounts = NULL;
	options->mount_count = 0;
}
