/*
 * vfs.h - what paths mean to guests: mounts, the walk, the copy-on-write overlay.
 *
 * Life: vfs_new() with the mounts and the upper; a struct vfs_fs for each guest process (shared by tasks that share it in the
 * kernel: CLONE_FS); for each call a struct vfs_who, a walk to a struct vfs_place, an operation on it, vfs_place_end();
 * vfs_free(). All from one thread. Nothing here knows of ptrace or of guest memory.
 *
 * All functions return 0 or more, or a negative errno: the one that the kernel would give. What is done for a guest is done
 * with its credentials (vfs/cred.h). docs/VFS.md says how an overlay is stored.
 */
#ifndef INTERPOSE_VFS_VFS_H
#define INTERPOSE_VFS_VFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "vfs/cred.h"

struct vfs;
struct vfs_node; /* a name in the guest's view, and what it stands for */
struct upper;    /* vfs/upper.h */

/* --- mounts ------------------------------------------------------------------------------------------------------------- */

enum vfs_kind {
	VFS_COW,   /* the host's tree at the same path; changes go to the upper */
	VFS_RW,    /* the host's tree itself */
	VFS_RO,    /* the host's tree, EROFS for changes */
	VFS_TMP,   /* empty, in memory */
	VFS_BIND,  /* the host's tree at `source`, readable and writable */
	VFS_FILE,  /* the host's file at `source`, read-only */
	VFS_HIDE,  /* ENOENT, not listed */
	VFS_DENY,  /* EACCES */
	VFS_DEV,   /* a few devices, the guest's terminals, shm */
	VFS_PROC   /* the guest's own processes */
};

struct vfs_mount_spec {
	enum vfs_kind kind;
	const char *path;   /* absolute, in the guest's view */
	const char *source; /* VFS_BIND, VFS_FILE: host path */
	bool optional;      /* not an error where the path does not exist (VFS_HIDE never is one) */
};

/* What /proc must know of guests. */
struct vfs_guests {
	bool (*is_guest)(void *context, pid_t pid);  /* a process or task of the run */
	pid_t (*tgid_of)(void *context, pid_t tid);  /* 0 for none */
	struct vfs_fs *(*fs_of)(void *context, pid_t tid);
	/* Affinity that a task chose itself, as "Cpus_allowed" prints it; false where the kernel's is right. */
	bool (*affinity)(void *context, pid_t tid, char *mask, size_t mask_size, char *list, size_t list_size);
	/* Whether a guest has this file of the host open. NULL: always, for all that is known. */
	bool (*holds)(void *context, dev_t dev, ino_t ino);
	/* Stopped by a signal: the kernel says of such a task only that it is traced. NULL: never. */
	bool (*stopped)(void *context, pid_t tid);
};

struct vfs_options {
	const struct vfs_mount_spec *mounts; /* the root's first; a path given twice is -EEXIST */
	size_t mount_count;
	struct upper *upper;                 /* of VFS_COW */
	struct upper *memory;                /* of VFS_TMP and VFS_DEV; may be the same */
	const struct vfs_guests *guests;
	void *guests_context;
	void (*notify)(void *context);       /* called in another thread: vfs_done() has something to tell */
	void *notify_context;
};

/* On failure WHY holds one sentence. */
int vfs_new(struct vfs **vfs, const struct vfs_options *options, char *why, size_t why_size);
void vfs_free(struct vfs *vfs);

/* The supervisor's own credentials. */
const struct vfs_cred *vfs_own_cred(const struct vfs *vfs);

/* An inotify descriptor that tells of changes by the host. Its owner arms it with SIGIO (F_SETOWN, O_ASYNC) and calls
   vfs_host_changed() in the handler: the cache is then current for every call that begins after a host's change has ended,
   and no call costs a look. -1 where there is none: then nothing of the host is cached. */
int vfs_watch_fd(const struct vfs *vfs);
void vfs_host_changed(struct vfs *vfs); /* async-signal-safe */

/* --- a process's view ----------------------------------------------------------------------------------------------------- */

struct vfs_fs { /* the kernel's struct fs_struct */
	unsigned refs;
	struct vfs_node *cwd, *root;
	mode_t umask;
	struct linked *linked; /* linked.c; of this process alone */
};

/* CWD: host path, which is looked up in the view. */
int vfs_fs_new(struct vfs *vfs, const char *cwd, mode_t mask, struct vfs_fs **fs);
struct vfs_fs *vfs_fs_copy(struct vfs *vfs, const struct vfs_fs *fs);
struct vfs_fs *vfs_fs_ref(struct vfs_fs *fs);
void vfs_fs_unref(struct vfs *vfs, struct vfs_fs *fs);

struct vfs_who {
	struct vfs *vfs;
	struct vfs_fs *fs;
	const struct vfs_cred *cred;
	pid_t tid, tgid; /* of the guest task, as the host numbers it */
	int pidfd;       /* of its process, for descriptors */
};

/* --- walking ---------------------------------------------------------------------------------------------------------------- */

enum vfs_walk_flags {
	VFS_FOLLOW = 1 << 0,       /* a symbolic link at the end is followed */
	VFS_EMPTY = 1 << 1,        /* an empty path is the start itself (AT_EMPTY_PATH) */
	VFS_NO_XDEV = 1 << 2,      /* openat2's RESOLVE_* */
	VFS_NO_MAGICLINKS = 1 << 3,
	VFS_NO_SYMLINKS = 1 << 4,
	VFS_BENEATH = 1 << 5,
	VFS_IN_ROOT = 1 << 6,
	VFS_NO_SLASH = 1 << 8,     /* a slash behind the last name is -EISDIR (open with O_CREAT) */
	VFS_CREATE = 1 << 7        /* the last name is to be made or removed: `.` and `..` are told in place.last */
};

/* Where a walk has led. */
struct vfs_place {
	struct vfs_node *dir;   /* the directory of the last name; NULL for an object without a name */
	struct vfs_node *node;  /* what is there; negative (vfs_exists() is false) where nothing is. NULL for an object */
	int fd;                 /* an object without a name in the view (a pipe, a memfd, a deleted file): O_PATH; -1 */
	bool slash;             /* the path ended in slashes */
	enum { VFS_LAST_NORM, VFS_LAST_DOT, VFS_LAST_DOTDOT, VFS_LAST_ROOT } last;
	int late;               /* VFS_CREATE: what is wrong with the last name itself; told after what is wrong with the walk */
	bool fresh;             /* st was read in this walk */
	struct statx st;
	bool plain;             /* host and view agree on every component: the guest's absolute path means the same to the kernel */
};

#define VFS_PLACE_NONE ((struct vfs_place){ .fd = -1 })

/* START: a place to begin from (a directory descriptor's), NULL for the working directory. A missing last name is no error:
   vfs_exists() tells; a missing directory on the way is -ENOENT. */
int vfs_walk(const struct vfs_who *who, const struct vfs_place *start, const char *path, unsigned flags, struct vfs_place *place);
void vfs_place_end(struct vfs *vfs, struct vfs_place *place);
bool vfs_exists(const struct vfs_place *place);
mode_t vfs_type(const struct vfs_place *place); /* S_IF* of what has a name; 0 for nothing */

/* What descriptor FD of the guest refers to. -EBADF. */
int vfs_walk_fd(const struct vfs_who *who, int fd, struct vfs_place *place);

/* The guest's path of a place or of a directory, from the caller's root. Its length with the NUL; -ERANGE; -ENOENT where it
   was removed. */
ssize_t vfs_path(const struct vfs_who *who, const struct vfs_node *node, char *buf, size_t size);
struct vfs_node *vfs_node_ref(struct vfs_node *node);
void vfs_node_unref(struct vfs *vfs, struct vfs_node *node);

/* The place of an O_PATH descriptor of ours, which is taken over. */
int vfs_place_of(const struct vfs_who *who, int fd, struct vfs_place *place);

/* --- asking ------------------------------------------------------------------------------------------------------------------ */

int vfs_stat(const struct vfs_who *who, struct vfs_place *place, unsigned mask, int sync_flags, struct statx *st);
/* To be called on what vfs_stat() told of a path: the numbers of a link that the process has just made (vfs/linked.c). */
void vfs_stat_linked(const struct vfs_who *who, const struct vfs_place *place, struct statx *st);
/* MODE as of access(2), with the caller's real ids unless EFFECTIVE. */
int vfs_access(const struct vfs_who *who, struct vfs_place *place, int mode, bool effective);
ssize_t vfs_readlink(const struct vfs_who *who, struct vfs_place *place, char *buf, size_t size);

/* An O_PATH descriptor of what is there, the caller's to close. CHANGE: it is copied up first, as far as DATA says (the
   attributes alone need no data where it is truncated). -EROFS; -EINPROGRESS: see vfs_done(). Permissions are not checked here
   but by what is done with the descriptor. */
enum vfs_intent { VFS_LOOK, VFS_CHANGE, VFS_TRUNCATE };
int vfs_hold(const struct vfs_who *who, struct vfs_place *place, enum vfs_intent intent);

/* The same to watch with inotify: of a directory of an overlay it is the upper's, where guests' changes happen, made if need be. */
int vfs_hold_watch(const struct vfs_who *who, struct vfs_place *place);

/* --- opening ---------------------------------------------------------------------------------------------------------------- */

struct vfs_open {
	int flags;        /* in: as of openat; out: what is left for the guest's own open of fd */
	mode_t mode;      /* in, without the umask */
	int fd;           /* out: O_PATH, or, where the credentials are foreign, opened */
	bool created;     /* out */
	int chmod_after;  /* out: mode that the new file gets once the guest has it open; -1 */
};
/* -EINPROGRESS: see vfs_done(). */
int vfs_open(const struct vfs_who *who, struct vfs_place *place, struct vfs_open *open);

/* The guest of WHO now holds the directory PLACE open. */
void vfs_opened_dir(struct vfs *vfs, const struct vfs_place *place);

/* --- changing ---------------------------------------------------------------------------------------------------------------- */

int vfs_mkdir(const struct vfs_who *who, struct vfs_place *place, mode_t mode);
int vfs_mknod(const struct vfs_who *who, struct vfs_place *place, mode_t mode, dev_t dev);
int vfs_symlink(const struct vfs_who *who, struct vfs_place *place, const char *target);
int vfs_unlink(const struct vfs_who *who, struct vfs_place *place);
int vfs_rmdir(const struct vfs_who *who, struct vfs_place *place);
int vfs_link(const struct vfs_who *who, struct vfs_place *from, struct vfs_place *to);
int vfs_rename(const struct vfs_who *who, struct vfs_place *from, struct vfs_place *to, unsigned flags);
int vfs_chmod(const struct vfs_who *who, struct vfs_place *place, mode_t mode);
int vfs_chown(const struct vfs_who *who, struct vfs_place *place, uid_t uid, gid_t gid);
int vfs_utimens(const struct vfs_who *who, struct vfs_place *place, const struct timespec times[2]); /* NULL: now */
int vfs_truncate(const struct vfs_who *who, struct vfs_place *place, off_t length);
int vfs_setxattr(const struct vfs_who *who, struct vfs_place *place, const char *name, const void *value, size_t size, int flags);
int vfs_removexattr(const struct vfs_who *who, struct vfs_place *place, const char *name);
ssize_t vfs_getxattr(const struct vfs_who *who, struct vfs_place *place, const char *name, void *value, size_t size);
ssize_t vfs_listxattr(const struct vfs_who *who, struct vfs_place *place, char *list, size_t size);

/* Binds SOCK, a UNIX socket, to the name. The kernel keeps the address by which that is done, which is told in ADDRESS, is never used
   twice, and cannot be named by guests. -EADDRINUSE; what bind(2) gives. */
enum { VFS_ADDRESS_MAX = 108 };
int vfs_bind(const struct vfs_who *who, struct vfs_place *place, int sock, char address[VFS_ADDRESS_MAX]);

/* The same where the guest has to make the call itself, with ADDRESS, between the two; ERROR is its result. DIRFD is the caller's to
   close afterwards. */
int vfs_bind_start(const struct vfs_who *who, struct vfs_place *place, int *dirfd, char address[VFS_ADDRESS_MAX]);
int vfs_bind_end(const struct vfs_who *who, struct vfs_place *place, int dirfd, const char *address, int error);

int vfs_chdir(const struct vfs_who *who, struct vfs_place *place);
int vfs_chroot(const struct vfs_who *who, struct vfs_place *place);

/* --- listing ----------------------------------------------------------------------------------------------------------------- */

struct vfs_dirent {
	uint64_t ino;
	int64_t next;   /* position after it */
	uint8_t type;   /* DT_* */
	const char *name;
};

/* Entries of a directory from POSITION on, in the order of positions; ADD returns false when it has no room, and the entry
   is then the next call's. Positions are hashes of names: they stay right while entries come and go, and need no state.
   The position after the last one taken, or a negative errno. */
int64_t vfs_list(const struct vfs_who *who, struct vfs_place *place, int64_t position,
                 bool (*add)(void *context, const struct vfs_dirent *entry), void *context);

/* Whether a directory's listing needs no merging and no filter, so that the host's own is right. */
bool vfs_list_is_plain(const struct vfs *vfs, const struct vfs_place *place);

/* A guest has opened a pseudo-terminal: /dev/pts/NUMBER is its own as long as it exists. */
void dev_pty_made(struct vfs *vfs, unsigned number);

/* --- copying up what is large -------------------------------------------------------------------------------------------------

   A call that needs a large file copied up gets -EINPROGRESS; the copy is made by another thread, which calls options.notify.
   Then vfs_done() finishes what is ready, and every call that waited is asked again. Whether something was finished. */
bool vfs_done(struct vfs *vfs);

/* Whether a copy is under way, or waits to be finished. */
bool vfs_copying(const struct vfs *vfs);

/* --- descriptors from before a copy-up ---------------------------------------------------------------------------------------

   A guest that opened a file of the lower for reading has the host's own file. When that file is copied up, the call that
   caused it gets -EINPROGRESS once, and who asks it again first takes these: descriptors of guests that refer to DEV, INO are to be
   replaced by an open of FD. */
struct vfs_handover {
	dev_t dev;
	ino_t ino;
	int fd; /* O_PATH, the taker's to close */
};
bool vfs_handover(struct vfs *vfs, struct vfs_handover *handover);

/* --- counters, for --count and the bench ----------------------------------------------------------------------------------------- */

struct vfs_counts { uint64_t walks, probes, hits, copied_up, copied_bytes; size_t nodes; };
void vfs_count(const struct vfs *vfs, struct vfs_counts *counts);

#endif
