/* vfs.c - a view: its mounts, and what processes see of it. */
#include "vfs/vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "vfs/special.h"

__attribute__((format(printf, 4, 5)))
static int fail(char *why, size_t size, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, size, format, args);
	va_end(args);
	return error;
}

/* --- mounts -------------------------------------------------------------------------------------------------------------------------- */

static const char *kind_name(enum vfs_kind kind)
{
	static const char *const names[] = { "cow", "rw", "ro", "tmp", "bind", "file", "hide", "deny", "dev", "proc" };

	return names[kind];
}

static struct vfs_mount *mount_new(struct vfs *vfs, const struct vfs_mount_spec *spec)
{
	struct vfs_mount *mount = calloc(1, sizeof(*mount)), **end = &vfs->mounts;

	if (!mount)
		return NULL;
	mount->kind = spec->kind;
	mount->overlay = spec->kind == VFS_COW || spec->kind == VFS_TMP;
	mount->read_only = spec->kind == VFS_RO || spec->kind == VFS_FILE;
	mount->upper = spec->kind == VFS_COW ? vfs->options.upper : spec->kind == VFS_TMP ? vfs->options.memory : NULL;
	while (*end)
		end = &(*end)->next;
	*end = mount;
	return mount;
}

/* In what is empty by itself nothing of the host is at the mount point: its path is meant. */
static bool is_in_tmp(const struct vfs_node *point)
{
	return point->mount->kind == VFS_TMP;
}

/* The host's path of what is shown: given, or what was at the mount point. */
static int mount_source(struct vfs *vfs, struct vfs_mount *mount, const struct vfs_mount_spec *spec, const struct vfs_node *point)
{
	char path[PATH_LONGEST];

	if (spec->kind == VFS_TMP || spec->kind == VFS_HIDE || spec->kind == VFS_DENY)
		return 0;
	if (spec->source || (point && is_in_tmp(point) && spec->kind != VFS_DEV && spec->kind != VFS_PROC)) {
		if (!realpath(spec->source ? spec->source : spec->path, path))
			return -errno;
	} else if (spec->kind == VFS_DEV || spec->kind == VFS_PROC) {
		strcpy(path, spec->kind == VFS_DEV ? "/dev" : "/proc");
	} else if (!point) {
		strcpy(path, "/");
	} else if (node_lower_path(vfs, point, path, sizeof(path)) < 0) {
		return -ENOENT;
	}
	mount->source = strdup(path);
	return mount->source ? 0 : -ENOMEM;
}

static int mount_root(struct vfs *vfs, struct vfs_mount *mount)
{
	struct vfs_node *root = node_new(vfs, NULL, mount, "", 0);
	struct stat st;

	if (!root)
		return -ENOMEM;
	mount->root = root;
	root->type = DT_DIR;
	if (mount->kind == VFS_TMP && mount->point && node_exists(mount->point) && !node_is_dir(mount->point))
		return -ENOTDIR;
	if (!mount->source)
		return mount->overlay ? layer_mount_root(vfs, mount) : 0;
	root->lower_fd = open(mount->source, O_PATH | O_CLOEXEC);
	if (root->lower_fd < 0 || fstat(root->lower_fd, &st))
		return -errno;
	vfs->fd_count++;
	root->in_lower = true;
	root->type = IFTODT(st.st_mode);
	root->ino = st.st_ino;
	root->dev = (uint64_t)major(st.st_dev) << 32 | minor(st.st_dev);
	if (mount->kind == VFS_FILE)
		return S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (mount->overlay && !S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return mount->overlay ? layer_mount_root(vfs, mount) : 0;
}

/* In what is empty by itself, the directories down to the mount are made; of what is no directory, those above it. */
static int make_point(const struct vfs_who *who, const struct vfs_mount_spec *spec, struct vfs_place *place)
{
	const char *source = spec->source ? spec->source : spec->path, *at = spec->path;
	char path[PATH_LONGEST];
	struct stat st;
	bool file = spec->kind != VFS_TMP && stat(source, &st) == 0 && !S_ISDIR(st.st_mode);
	int error = 0;

	while (error == 0 && *at) {
		at += strspn(at, "/");
		at += strcspn(at, "/");
		if ((size_t)(at - spec->path) >= sizeof(path))
			return -ENAMETOOLONG;
		snprintf(path, sizeof(path), "%.*s", (int)(at - spec->path), spec->path);
		vfs_place_end(who->vfs, place);
		error = vfs_walk(who, NULL, path, VFS_FOLLOW, place);
		if (error == 0 && !vfs_exists(place) && !(file && !*at))
			error = place->dir && is_in_tmp(place->dir) ? vfs_mkdir(who, place, 0755) : -ENOENT;
	}
	return error;
}

static int find_place(const struct vfs_who *who, const struct vfs_mount_spec *spec, struct vfs_place *place)
{
	bool hides = spec->kind == VFS_HIDE || spec->kind == VFS_DENY;
	int error = vfs_walk(who, NULL, spec->path, VFS_FOLLOW, place);

	if (hides || spec->optional || (error < 0 ? error != -ENOENT : vfs_exists(place) || spec->kind == VFS_FILE))
		return error;
	return make_point(who, spec, place);
}

/* Where the mount goes. 1: there is no such place, or it is taken, which is no error for this one. */
static int find_point(struct vfs *vfs, const struct vfs_mount_spec *spec, struct vfs_place *place, char *why, size_t size)
{
	struct vfs_fs top = { .refs = 1, .cwd = vfs->root, .root = vfs->root, .umask = vfs->umask };
	struct vfs_who who = { .vfs = vfs, .fs = &top, .cred = &vfs->own, .pidfd = -1 };
	bool hides = spec->kind == VFS_HIDE || spec->kind == VFS_DENY;
	int error = find_place(&who, spec, place);
	const struct vfs_mount *taken;

	if (error < 0) {
		if ((hides || spec->optional) && (error == -ENOENT || error == -ENOTDIR || error == -EACCES))
			return 1;
		if (error == -ENOENT)
			return fail(why, size, error, "cannot mount %s at '%s': there is no such %s", kind_name(spec->kind), spec->path,
			            spec->kind == VFS_FILE ? "directory for it" : "directory");
		return fail(why, size, error, "cannot mount %s at '%s': %s", kind_name(spec->kind), spec->path, strerror(-error));
	}
	taken = !place->node ? NULL : place->node->covered ? place->node->covered :
	        !place->node->parent && place->node->mount->point ? place->node->mount : NULL;
	if (taken && spec->optional) /* by another name */
		return 1;
	if (taken)
		return fail(why, size, -EEXIST, "'%s' is given twice, as %s and as %s", spec->path, kind_name(taken->kind),
		            kind_name(spec->kind));
	if (vfs_exists(place) || hides || spec->kind == VFS_FILE || (place->dir && is_in_tmp(place->dir)))
		return 0;
	if (spec->optional)
		return 1;
	return fail(why, size, -ENOENT, "cannot mount %s at '%s': there is no such directory", kind_name(spec->kind), spec->path);
}

/* What is wrong with a mount that was begun. */
static int mount_failed(const struct vfs_mount_spec *spec, int error, char *why, size_t size)
{
	const char *kind = kind_name(spec->kind);

	if (spec->source && error == -EINVAL)
		return fail(why, size, error, "cannot mount %s at '%s': '%s' is no regular file", kind, spec->path, spec->source);
	if (spec->source)
		return fail(why, size, error, "cannot mount %s at '%s': '%s': %s", kind, spec->path, spec->source, strerror(-error));
	return fail(why, size, error, "cannot mount %s at '%s': %s", kind, spec->path, strerror(-error));
}

static int mount_add(struct vfs *vfs, const struct vfs_mount_spec *spec, char *why, size_t size)
{
	struct vfs_place place = VFS_PLACE_NONE;
	struct vfs_mount *mount;
	char path[PATH_LONGEST];
	int error;

	if ((spec->kind == VFS_HIDE || spec->kind == VFS_DENY) && hidden_add(vfs, spec->path) < 0)
		return fail(why, size, -ENOMEM, "out of memory");
	error = vfs->root ? find_point(vfs, spec, &place, why, size) : 0;
	if (error) {
		vfs_place_end(vfs, &place);
		return error < 0 ? error : 0;
	}
	mount = mount_new(vfs, spec);
	if (!mount) {
		vfs_place_end(vfs, &place);
		return fail(why, size, -ENOMEM, "out of memory");
	}
	if (place.node && node_guest_path(place.node, vfs->root, path, sizeof(path)) > 0)
		mount->path = strdup(path);
	else
		mount->path = strdup(spec->path);
	error = mount->path ? mount_source(vfs, mount, spec, place.node) : -ENOMEM;
	if (place.node && mount->kind != VFS_HIDE && mount->kind != VFS_DENY && mount->path)
		mount->point = vfs_node_ref(place.node);
	if (error == 0 && spec->kind != VFS_HIDE && spec->kind != VFS_DENY)
		error = mount_root(vfs, mount);
	if (error < 0) {
		vfs_place_end(vfs, &place);
		return mount_failed(spec, error, why, size);
	}
	if (place.node) {
		if (!mount->point)
			mount->point = vfs_node_ref(place.node);
		place.node->covered = mount;
	} else {
		vfs->root = mount->root;
	}
	vfs_place_end(vfs, &place);
	return 0;
}

struct ordered { const struct vfs_mount_spec *spec; char *key; };

/* A mount needs those above it to be there. */
static int compare_specs(const void *a, const void *b)
{
	const struct ordered *x = a, *y = b;

	int order = strcmp(x->key, y->key);

	return order ? order : strcmp(x->spec->path, y->spec->path);
}

/* Where the host has the path, its links followed as far as it is there: an order by the text alone could put a mount on top of
   one that is in it. */
static char *key_of(const struct vfs_mount_spec *spec)
{
	char host[PATH_LONGEST], resolved[PATH_LONGEST], *key, *slash;
	size_t len = strlen(spec->path);

	if (spec->optional || len >= sizeof(host))
		return strdup(spec->path);
	strcpy(host, spec->path);
	while (!realpath(host, resolved)) {
		slash = strrchr(host, '/');
		if (!slash || slash == host)
			return strdup(spec->path);
		*slash = 0;
	}
	return asprintf(&key, "%s%s", resolved[1] ? resolved : "", spec->path[1] ? spec->path + strlen(host) : "/") < 0 ? NULL : key;
}

static int mounts_order(struct vfs *vfs, struct ordered *all)
{
	size_t count = vfs->options.mount_count;

	for (size_t i = 0; i < count; i++) {
		all[i] = (struct ordered){ &vfs->options.mounts[i], key_of(&vfs->options.mounts[i]) };
		if (!all[i].key)
			return -ENOMEM;
	}
	qsort(all, count, sizeof(*all), compare_specs);
	return 0;
}

static int mounts_add(struct vfs *vfs, char *why, size_t size)
{
	size_t count = vfs->options.mount_count;
	struct ordered *all = calloc(count + 1, sizeof(*all));
	int error = all ? mounts_order(vfs, all) : -ENOMEM;

	if (error < 0)
		fail(why, size, error, "out of memory");
	if (error == 0 && (count == 0 || strcmp(all[0].spec->path, "/")))
		error = fail(why, size, -EINVAL, "there is no mount at '/'");
	for (size_t i = 0; error == 0 && i < count; i++) {
		if (i > 0 && !strcmp(all[i].spec->path, all[i - 1].spec->path))
			error = fail(why, size, -EEXIST, "'%s' is given twice, as %s and as %s", all[i].spec->path,
			             kind_name(all[i - 1].spec->kind), kind_name(all[i].spec->kind));
		else
			error = mount_add(vfs, all[i].spec, why, size);
	}
	for (size_t i = 0; all && i < count; i++)
		free(all[i].key);
	free(all);
	return error;
}

/* --- life ----------------------------------------------------------------------------------------------------------------------------- */

static bool sysctl_on(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char digit = '0';

	if (fd < 0)
		return false;
	if (read(fd, &digit, 1) != 1)
		digit = '0';
	close(fd);
	return digit != '0';
}

static void read_limits(struct vfs *vfs)
{
	struct rlimit limit;

	vfs->protected_symlinks = sysctl_on("/proc/sys/fs/protected_symlinks");
	vfs->protected_hardlinks = sysctl_on("/proc/sys/fs/protected_hardlinks");
	vfs->protected_regular = sysctl_on("/proc/sys/fs/protected_regular");
	vfs->protected_fifos = sysctl_on("/proc/sys/fs/protected_fifos");
	vfs->fd_most = 256;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max / 4 > vfs->fd_most)
		vfs->fd_most = limit.rlim_max / 4 < 16384 ? limit.rlim_max / 4 : 16384;
}

/* What the walk cannot do without. */
static int check_kernel(char *why, size_t size)
{
	if (syscall(SYS_openat2, -1, "", NULL, 0) < 0 && errno == ENOSYS)
		return fail(why, size, -ENOSYS, "this kernel has no openat2(2): Linux 5.6 or newer is needed for the file system's view");
	if (syscall(SYS_faccessat2, -1, "", 0, AT_EMPTY_PATH) < 0 && errno == ENOSYS)
		return fail(why, size, -ENOSYS, "this kernel has no faccessat2(2): Linux 5.8 or newer is needed for the file system's view");
	return 0;
}

int vfs_new(struct vfs **made, const struct vfs_options *options, char *why, size_t size)
{
	struct vfs *vfs = calloc(1, sizeof(*vfs));
	int error;

	*made = NULL;
	if (!vfs)
		return fail(why, size, -ENOMEM, "out of memory");
	vfs->options = *options;
	vfs->inotify = -1;
	vfs->umask = umask(0);
	umask(vfs->umask);
	nodes_init(vfs);
	read_limits(vfs);
	if (getrandom(&vfs->seed, sizeof(vfs->seed), GRND_NONBLOCK) != sizeof(vfs->seed))
		vfs->seed = (uintptr_t)vfs;
	vfs->host_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	error = vfs->host_root < 0 ? fail(why, size, -errno, "cannot open '/': %s", strerror(errno)) : check_kernel(why, size);
	if (error == 0) {
		error = cred_own(&vfs->own);
		if (error < 0)
			fail(why, size, error, "cannot read /proc/self/status: %s", strerror(-error));
	}
	watch_init(vfs);
	if (error == 0 && special_start(vfs) < 0)
		error = fail(why, size, -ENOMEM, "out of memory");
	if (error == 0) {
		error = layer_open(vfs);
		if (error < 0)
			fail(why, size, error, "cannot read the overlay's index: %s", strerror(-error));
	}
	if (error == 0)
		error = mounts_add(vfs, why, size);
	if (error < 0) {
		vfs_free(vfs);
		return error;
	}
	vfs->ready = true;
	*made = vfs;
	return 0;
}

static void mount_free(struct vfs *vfs, struct vfs_mount *mount)
{
	if (mount->root) {
		node_clear(vfs, mount->root);
		free(mount->root);
	}
	free(mount->path);
	free(mount->source);
	free(mount);
}

void vfs_free(struct vfs *vfs)
{
	struct vfs_mount *mount, *next;

	if (!vfs)
		return;
	layer_end(vfs);
	handovers_free(vfs);
	dirs_free(vfs);
	nodes_free(vfs);
	for (mount = vfs->mounts; mount; mount = next) {
		next = mount->next;
		mount_free(vfs, mount);
	}
	watch_end(vfs);
	special_end(vfs);
	hidden_free(vfs);
	if (vfs->host_root >= 0)
		close(vfs->host_root);
	cred_free(&vfs->own);
	free(vfs);
}

void vfs_count(const struct vfs *vfs, struct vfs_counts *counts)
{
	*counts = vfs->counts;
	counts->nodes = vfs->node_count;
}

const struct vfs_cred *vfs_own_cred(const struct vfs *vfs)
{
	return &vfs->own;
}

/* --- processes ---------------------------------------------------------------------------------------------------------------------------- */

int vfs_fs_new(struct vfs *vfs, const char *cwd, mode_t mask, struct vfs_fs **made)
{
	struct vfs_fs top = { .refs = 1, .cwd = vfs->root, .root = vfs->root };
	struct vfs_who who = { .vfs = vfs, .fs = &top, .cred = &vfs->own, .pidfd = -1 };
	struct vfs_fs *fs = calloc(1, sizeof(*fs));
	struct vfs_place place = VFS_PLACE_NONE;
	int error = fs ? vfs_walk(&who, NULL, cwd, VFS_FOLLOW, &place) : -ENOMEM;

	if (error == 0 && (!vfs_exists(&place) || !place.node))
		error = -ENOENT;
	if (error == 0 && !node_is_dir(place.node))
		error = -ENOTDIR;
	if (error < 0) {
		vfs_place_end(vfs, &place);
		free(fs);
		return error;
	}
	fs->refs = 1;
	fs->umask = mask;
	fs->cwd = vfs_node_ref(place.node);
	fs->root = vfs_node_ref(vfs->root);
	vfs_place_end(vfs, &place);
	*made = fs;
	return 0;
}

struct vfs_fs *vfs_fs_copy(struct vfs *vfs, const struct vfs_fs *fs)
{
	struct vfs_fs *copy = calloc(1, sizeof(*copy));

	(void)vfs;
	if (!copy)
		return NULL;
	*copy = *fs;
	copy->refs = 1;
	copy->linked = NULL;
	vfs_node_ref(copy->cwd);
	vfs_node_ref(copy->root);
	return copy;
}

struct vfs_fs *vfs_fs_ref(struct vfs_fs *fs)
{
	fs->refs++;
	return fs;
}

void vfs_fs_unref(struct vfs *vfs, struct vfs_fs *fs)
{
	if (!fs || --fs->refs)
		return;
	linked_end(vfs, fs);
	vfs_node_unref(vfs, fs->cwd);
	vfs_node_unref(vfs, fs->root);
	free(fs);
}
