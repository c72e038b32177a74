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

/* The host's path of what is shown: given, or what was at the mount point. */
static int mount_source(struct vfs *vfs, struct vfs_mount *mount, const struct vfs_mount_spec *spec, const struct vfs_node *point)
{
	char path[PATH_LONGEST];

	if (spec->kind == VFS_TMP || spec->kind == VFS_HIDE || spec->kind == VFS_DENY)
		return 0;
	if (spec->source) {
		if (!realpath(spec->source, path))
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

/* Where the mount goes. 1: there is no such place, which is no error for this one. */
static int find_point(struct vfs *vfs, const struct vfs_mount_spec *spec, struct vfs_place *place, char *why, size_t size)
{
	struct vfs_fs top = { .refs = 1, .cwd = vfs->root, .root = vfs->root };
	struct vfs_who who = { .vfs = vfs, .fs = &top, .cred = &vfs->own, .pidfd = -1 };
	bool hides = spec->kind == VFS_HIDE || spec->kind == VFS_DENY;
	int error = vfs_walk(&who, NULL, spec->path, VFS_FOLLOW, place);

	if (error < 0) {
		if ((hides || spec->optional) && (error == -ENOENT || error == -ENOTDIR || error == -EACCES))
			return 1;
		return fail(why, size, error, "cannot mount %s at '%s': %s", kind_name(spec->kind), spec->path, strerror(-error));
	}
	if (place->node && !place->node->parent && place->node->mount->point && !strcmp(place->node->mount->path, spec->path))
		return fail(why, size, -EEXIST, "'%s' is given twice, as %s and as %s", spec->path, kind_name(place->node->mount->kind),
		            kind_name(spec->kind));
	if (place->node && place->node->covered)
		return fail(why, size, -EEXIST, "'%s' is given twice, as %s and as %s", spec->path, kind_name(place->node->covered->kind),
		            kind_name(spec->kind));
	if (vfs_exists(place) || hides || spec->kind == VFS_FILE)
		return 0;
	if (spec->optional)
		return 1;
	return fail(why, size, -ENOENT, "cannot mount %s at '%s': there is no such directory", kind_name(spec->kind), spec->path);
}

static int mount_add(struct vfs *vfs, const struct vfs_mount_spec *spec, char *why, size_t size)
{
	struct vfs_place place = VFS_PLACE_NONE;
	struct vfs_mount *mount;
	char path[PATH_LONGEST];
	int error;

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
		return fail(why, size, error, "cannot mount %s at '%s': %s", kind_name(spec->kind), spec->path, strerror(-error));
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

/* A mount needs those above it to be there. */
static int compare_specs(const void *a, const void *b)
{
	const struct vfs_mount_spec *const *x = a, *const *y = b;

	return strcmp((*x)->path, (*y)->path);
}

static int mounts_add(struct vfs *vfs, char *why, size_t size)
{
	size_t count = vfs->options.mount_count;
	const struct vfs_mount_spec **sorted = calloc(count + 1, sizeof(*sorted));
	int error = sorted ? 0 : -ENOMEM;

	for (size_t i = 0; error == 0 && i < count; i++)
		sorted[i] = &vfs->options.mounts[i];
	if (error == 0)
		qsort(sorted, count, sizeof(*sorted), compare_specs);
	if (error == 0 && (count == 0 || strcmp(sorted[0]->path, "/")))
		error = fail(why, size, -EINVAL, "there is no mount at '/'");
	for (size_t i = 0; error == 0 && i < count; i++) {
		if (i > 0 && !strcmp(sorted[i]->path, sorted[i - 1]->path))
			error = fail(why, size, -EEXIST, "'%s' is given twice, as %s and as %s", sorted[i]->path,
			             kind_name(sorted[i - 1]->kind), kind_name(sorted[i]->kind));
		else
			error = mount_add(vfs, sorted[i], why, size);
	}
	free(sorted);
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
	vfs_node_unref(vfs, fs->cwd);
	vfs_node_unref(vfs, fs->root);
	free(fs);
}
