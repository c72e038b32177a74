/* special_impl.h - what special.c, proc.c, proc_content.c and dev.c share. */
#ifndef INTERPOSE_VFS_SPECIAL_IMPL_H
#define INTERPOSE_VFS_SPECIAL_IMPL_H

#include "vfs/special.h"

enum { PROC_PARTS = 6, UUID_TEXT = 37 };

struct terminal {
	unsigned number; /* of /dev/pts/NUMBER */
	bool made;       /* by a guest */
	int fd;          /* O_PATH; it has no links once the terminal is gone and the number is free for others */
};

struct proc_view {
	char boot_id[UUID_TEXT];
	struct terminal *terminals;
	size_t terminal_count, terminal_room;
	dev_t console_devices[3]; /* of standard input, output and error; 0: no terminal */
	char consoles[3][32];  /* names in /dev of terminals that were ours at the start; empty: none */
};

/* A name below a /proc, taken apart. */
struct proc_at {
	unsigned depth;               /* names below the mount's root; 0: the root itself */
	const char *part[PROC_PARTS]; /* the first of them */
	pid_t pid, task;              /* that part[0], and `task/TID`, name; 0 where it is no process; task is pid without one */
	const char *file;             /* entry of the process's or the task's directory; NULL */
	const char *below;            /* entry of that; NULL */
	bool own;                     /* the process is the caller's */
	char last[NAME_LONGEST + 1];
};

enum proc_made { PROC_MAPS, PROC_SMAPS, PROC_MOUNTINFO, PROC_MOUNTS, PROC_MOUNTSTATS, PROC_STATUS, PROC_STAT };

/* proc.c */
bool proc_visible(const struct vfs_who *who, const struct vfs_node *dir, const char *name, size_t len);
enum special_link proc_link(const struct vfs_who *who, const struct vfs_node *node);
ssize_t proc_readlink(const struct vfs_who *who, struct vfs_node *node, char *buf, size_t size);
int proc_jump(const struct vfs_who *who, struct vfs_node *node, struct vfs_place *place);
int proc_open(const struct vfs_who *who, struct vfs_node *node, int flags, int *fd);
int proc_access(const struct vfs_who *who, const struct vfs_node *node, int mask);
struct vfs_fs *proc_fs(const struct vfs_who *who, pid_t task);
void proc_start(struct vfs *vfs);

/*
 * What the kernel shows of an object's path, in the guest's words: a host path becomes the guest's from the caller's root, with
 * " (deleted)" kept. DEV: the device that the object is on. Texts that are no paths stay. Length without the NUL, -ERANGE.
 */
ssize_t proc_guest_text(const struct vfs_who *who, dev_t dev, const char *text, char *out, size_t size);

/* proc_content.c: 1 with *FD, as special_open(); 0 where the host's own file is right. */
int proc_make(const struct vfs_who *who, struct vfs_node *node, const struct proc_at *at, enum proc_made made, int *fd);
int proc_make_text(const struct vfs_who *who, const struct vfs_node *node, const char *text, int *fd);

/* dev.c */
bool dev_visible(const struct vfs_who *who, const struct vfs_node *dir, const char *name, size_t len);
int dev_open(const struct vfs_who *who, const struct vfs_node *node, int flags);
int dev_access(const struct vfs_who *who, const struct vfs_node *node, int mask);
void dev_start(struct vfs *vfs);
void dev_end(struct vfs *vfs);

/* special.c */
int special_host_open(const struct vfs_who *who, struct vfs_node *node, int flags); /* as the caller */
ssize_t special_host_link(const struct vfs_who *who, struct vfs_node *node, char *buf, size_t size);

#endif
