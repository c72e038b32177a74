/*
 * walk.c - from a path to a place, as fs/namei.c does it, in the guest's view.
 *
 * Links are resolved here and not by the kernel, which would resolve them in the host's view. Rules: path_resolution(7),
 * openat2(2), link_path_walk(), walk_component(), handle_dots(), nd_jump_root().
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vfs/special.h"

struct walk {
	const struct vfs_who *who;
	unsigned flags;
	struct vfs_place *place;
	struct vfs_node *root;   /* `..` goes no higher */
	struct vfs_node *start;
	struct vfs_node *node;   /* where we are: a reference */
	char *text;              /* allocated: what is left of the path once a link was followed */
	const char *at;
	unsigned links;
};

void vfs_place_end(struct vfs *vfs, struct vfs_place *place)
{
	vfs_node_unref(vfs, place->node);
	vfs_node_unref(vfs, place->dir);
	if (place->fd >= 0)
		close(place->fd);
	*place = VFS_PLACE_NONE;
}

static bool is_hidden(const struct vfs_node *node)
{
	return node->covered && node->covered->kind == VFS_HIDE;
}

/* A file can be mounted at a name where nothing is. */
static bool is_mounted_on(const struct vfs_node *node)
{
	return node->covered && node->covered->root;
}

bool vfs_exists(const struct vfs_place *place)
{
	return place->fd >= 0 || (place->node && node_exists(place->node) && !is_hidden(place->node));
}

static void walk_to(struct walk *w, struct vfs_node *node)
{
	struct vfs_node *old = w->node;

	w->node = node;
	vfs_node_unref(w->who->vfs, old);
}

/* The host finds the same thing at the same path. */
static bool is_plain(const struct vfs_node *node)
{
	enum vfs_kind kind = node->mount->kind;

	if (kind != VFS_COW && kind != VFS_RW && kind != VFS_RO)
		return false;
	return node->in_lower && !node->lower_at && !node->opaque && (node_is_dir(node) || !node->in_upper);
}

static int walk_up(struct walk *w)
{
	struct vfs_node *up;

	if (w->flags & VFS_BENEATH && w->node == w->start)
		return -EXDEV;
	if (w->node == w->root)
		return 0;
	up = node_up(w->node);
	if (!up)
		return 0;
	if (w->flags & VFS_NO_XDEV && up->mount != w->node->mount)
		return -EXDEV;
	walk_to(w, vfs_node_ref(node_top(up)));
	return 0;
}

static int walk_root(struct walk *w)
{
	if (w->flags & VFS_BENEATH)
		return -EXDEV;
	if (w->flags & VFS_NO_XDEV && w->node && w->root->mount != w->node->mount)
		return -EXDEV;
	walk_to(w, vfs_node_ref(w->root));
	return 0;
}

/* A magic link leads to an object, wherever it is. */
static int walk_jump(struct walk *w, struct vfs_node *link, bool last)
{
	struct vfs_place to = VFS_PLACE_NONE;
	int error;

	if (w->flags & VFS_NO_MAGICLINKS)
		return -ELOOP;
	if (w->flags & (VFS_BENEATH | VFS_IN_ROOT | VFS_NO_XDEV))
		return -EXDEV;
	error = special_jump(w->who, link, &to);
	if (error < 0)
		return error;
	if (last && (!to.node || !node_is_dir(to.node))) {
		*w->place = to;
		w->place->plain = false;
		return 1;
	}
	if (!to.node || !node_is_dir(to.node)) {
		vfs_place_end(w->who->vfs, &to);
		return -ENOTDIR;
	}
	w->place->plain = false;
	walk_to(w, vfs_node_ref(to.node));
	vfs_place_end(w->who->vfs, &to);
	return 0;
}

/* What is left of the path is put behind the link's target. */
static int walk_text(struct walk *w, const char *target, const char *rest)
{
	size_t len = strlen(target), rest_len = strlen(rest);
	char *text;

	if (!len)
		return -ENOENT;
	text = malloc(len + rest_len + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, target, len);
	memcpy(text + len, rest, rest_len + 1);
	free(w->text);
	w->text = text;
	w->at = text;
	return text[0] == '/' ? walk_root(w) : 0;
}

/* REST begins at the slash after the link's name, or is empty. 1: the place is found; 0: go on. */
static int walk_link(struct walk *w, struct vfs_node *link, const char *rest, bool last)
{
	char buf[PATH_LONGEST];
	const char *target;
	bool special = link->mount->kind == VFS_PROC || link->mount->kind == VFS_DEV;
	enum special_link kind = special ? special_link(w->who, link) : SPECIAL_PLAIN;
	int error = 0;

	if (++w->links > LINKS_MOST)
		return -ELOOP;
	if (w->flags & VFS_NO_SYMLINKS)
		return -ELOOP;
	if (!perm_follow(w->who, w->node, link))
		return -EACCES;
	if (kind == SPECIAL_JUMP) {
		error = walk_jump(w, link, last && !*rest);
		w->at = rest;
		return error;
	}
	if (kind == SPECIAL_TEXT || special) {
		ssize_t n = special_readlink(w->who, link, buf, sizeof(buf) - 1);

		if (n < 0)
			return n;
		buf[n] = 0;
		return walk_text(w, buf, rest);
	}
	target = node_link_target(w->who->vfs, link, &error);
	return target ? walk_text(w, target, rest) : error;
}

/* The walk ends in the directory itself: an empty rest, `.` or `..`. */
static int end_here(struct walk *w, int last, bool slash)
{
	struct vfs_place *place = w->place;
	struct vfs_node *up = node_up(w->node);

	place->node = vfs_node_ref(w->node);
	place->dir = vfs_node_ref(up ? up : w->node);
	place->last = last;
	place->slash = slash;
	place->fresh = false;
	return 0;
}

/* NODE is the last name's; takes its reference. */
static int end_at(struct walk *w, struct vfs_node *node, bool slash)
{
	struct vfs_place *place = w->place;
	struct vfs_node *dir = w->node;

	if (slash && !(w->flags & VFS_CREATE) && node_exists(node) && !is_hidden(node) && !node_is_dir(node_top(node))) {
		vfs_node_unref(w->who->vfs, node);
		return -ENOTDIR;
	}
	place->node = node;
	place->dir = vfs_node_ref(dir);
	place->last = VFS_LAST_NORM;
	place->slash = slash;
	return 0;
}

/* Mounts on the node just found. */
static int cross(struct walk *w, struct vfs_node **node)
{
	struct vfs_node *found = *node, *top;

	if (found->covered && found->covered->kind == VFS_DENY)
		return -EACCES;
	if (found->host_proc && !found->covered && w->who->vfs->ready)
		return -EACCES; /* it would show the host's processes, the supervisor among them */
	top = node_top(found);
	if (w->flags & VFS_NO_XDEV && (top != found || (found->in_lower && w->node->in_lower && found->dev && w->node->dev &&
	                                                node_is_dir(found) && found->dev != w->node->dev)))
		return -EXDEV;
	if (top != found) {
		vfs_node_ref(top);
		vfs_node_unref(w->who->vfs, found);
		w->place->fresh = false;
		*node = top;
	}
	return 0;
}

/* One name. 1: the place is found; 0: go on. */
static int step(struct walk *w, const char *name, size_t len)
{
	const char *rest = name + len, *next = rest + strspn(rest, "/");
	bool last = !*next, slash = *rest == '/';
	struct vfs_node *node;
	int error;

	if (last && w->flags & VFS_CREATE && (len > NAME_LONGEST || w->node->dead)) {
		w->place->late = w->node->dead ? -ENOENT : -ENAMETOOLONG;
		len = len < NAME_LONGEST ? len : NAME_LONGEST;
		node = node_new(w->who->vfs, w->node, w->node->mount, name, len); /* nobody finds it */
		error = node ? 0 : -ENOMEM;
	} else {
		error = w->node->dead ? -ENOENT : lookup(w->who, w->node, name, len, w->place, &node);
	}
	if (error < 0)
		return error;
	w->at = next;
	if (!is_mounted_on(node) && (!node_exists(node) || is_hidden(node))) {
		w->place->plain = false;
		if (last)
			return end_at(w, node, slash) < 0 ? -ENOTDIR : 1;
		vfs_node_unref(w->who->vfs, node);
		return -ENOENT;
	}
	error = cross(w, &node);
	if (error < 0) {
		vfs_node_unref(w->who->vfs, node);
		return error;
	}
	w->place->plain = w->place->plain && is_plain(node);
	if (node->type == DT_LNK && (!last || (w->flags & VFS_FOLLOW) || (slash && !(w->flags & VFS_CREATE)))) {
		error = walk_link(w, node, rest, last);
		vfs_node_unref(w->who->vfs, node);
		return error;
	}
	if (last) {
		error = end_at(w, node, slash);
		return error < 0 ? error : 1;
	}
	walk_to(w, node);
	return 0;
}

static int walk_on(struct walk *w)
{
	int error = 0;

	while (error == 0) {
		const char *name = w->at + strspn(w->at, "/");
		size_t len = strcspn(name, "/");
		const char *next = name + len + strspn(name + len, "/");

		if (!*name)
			return end_here(w, VFS_LAST_ROOT, false);
		if (!node_is_dir(w->node))
			return -ENOTDIR;
		error = lookup_search(w->who, w->node);
		if (error < 0)
			return error;
		if (name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.'))) {
			error = len == 2 ? walk_up(w) : 0;
			w->at = next;
			if (error == 0 && !*next)
				return end_here(w, len == 2 ? VFS_LAST_DOTDOT : VFS_LAST_DOT, name[len] == '/');
			continue;
		}
		if (w->flags & VFS_NO_SLASH && !*next && name[len] == '/')
			return -EISDIR;
		error = step(w, name, len);
	}
	return error < 0 ? error : 0;
}

static int walk_start(struct walk *w, const struct vfs_place *start, const char *path)
{
	struct vfs_node *from = start ? start->node : w->who->fs->cwd;
	bool absolute = path[0] == '/';

	w->start = from;
	w->root = w->who->fs->root;
	w->place->plain = absolute && !w->who->fs->root->parent && !w->who->fs->root->mount->point;
	if (w->flags & VFS_IN_ROOT && from)
		w->root = from;
	if (absolute && !(w->flags & (VFS_BENEATH | VFS_IN_ROOT)))
		from = w->root;
	else if (absolute && w->flags & VFS_BENEATH)
		return -EXDEV;
	if (!from)
		return -ENOTDIR;
	w->node = vfs_node_ref(from);
	return 0;
}

static int walk_empty(const struct vfs_who *who, const struct vfs_place *start, struct vfs_place *place)
{
	struct vfs_node *node = start ? start->node : who->fs->cwd, *up = node ? node_up(node) : NULL;

	if (!node) {
		place->fd = fcntl(start->fd, F_DUPFD_CLOEXEC, 3);
		return place->fd < 0 ? -errno : 0;
	}
	place->node = vfs_node_ref(node);
	place->dir = vfs_node_ref(start && start->dir ? start->dir : up ? up : node);
	place->last = VFS_LAST_DOT;
	return 0;
}

int vfs_walk(const struct vfs_who *who, const struct vfs_place *start, const char *path, unsigned flags, struct vfs_place *place)
{
	struct walk w = { .who = who, .flags = flags, .place = place, .at = path };
	struct vfs *vfs = who->vfs;
	int error;

	*place = VFS_PLACE_NONE;
	vfs->counts.walks++;
	if (vfs->changed)
		watch_read(vfs);
	if (vfs->fd_count > vfs->fd_most)
		nodes_close(vfs);
	if (!*path)
		return flags & VFS_EMPTY ? walk_empty(who, start, place) : -ENOENT;
	error = cred_enter(who->cred);
	if (error < 0)
		return error;
	error = walk_start(&w, start, path);
	if (error == 0)
		error = walk_on(&w);
	cred_leave(who->cred);
	vfs_node_unref(vfs, w.node);
	free(w.text);
	if (error < 0)
		vfs_place_end(vfs, place);
	return error;
}

ssize_t vfs_path(const struct vfs_who *who, const struct vfs_node *node, char *buf, size_t size)
{
	static const char unreachable[] = "(unreachable)"; /* fs/d_path.c */
	const size_t prefix = sizeof(unreachable) - 1;
	ssize_t n = node_guest_path(node, who->fs->root, buf, size);

	if (n != -EXDEV)
		return n;
	if (size <= prefix)
		return -ERANGE;
	n = node_guest_path(node, who->vfs->root, buf + prefix, size - prefix);
	memcpy(buf, unreachable, prefix);
	return n < 0 ? n : n + (ssize_t)prefix;
}
