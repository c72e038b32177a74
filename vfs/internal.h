/* internal.h - what the files of vfs/ share. */
#ifndef INTERPOSE_VFS_INTERNAL_H
#define INTERPOSE_VFS_INTERNAL_H

#include <dirent.h>
#include <signal.h>

#include "vfs/mark.h"
#include "vfs/upper.h"
#include "vfs/vfs.h"

enum { NAME_LONGEST = 255, PATH_LONGEST = 4096, LINKS_MOST = 40, LISTINGS_KEPT = 32 };

struct vfs_mount {
	enum vfs_kind kind;
	bool overlay;             /* changes go to `upper` */
	bool read_only;
	struct vfs_mount *next;
	struct vfs_node *root;    /* NULL for HIDE and DENY */
	struct vfs_node *point;   /* what it covers; NULL for / */
	struct upper *upper;
	char *path;               /* the guest's */
	char *source;             /* the host's: of its lower; NULL for none */
};

struct listing; /* list.c */
struct hidden;  /* hidden.c */

enum node_search { SEARCH_UNKNOWN, SEARCH_OK, SEARCH_DENIED };

struct vfs_node {
	struct vfs_node *chain;             /* hash bucket */
	struct vfs_node *lru_prev, *lru_next; /* unused ones */
	struct vfs_node *parent;            /* holds a reference; NULL for a mount's root */
	struct vfs_mount *mount;            /* that it is in */
	struct vfs_mount *covered;          /* that is on it */
	char *lower_at;                     /* lower of a renamed directory: its guest path in the lower; NULL: at its own place */
	char *link;                         /* target of a symbolic link, once read */
	struct listing *listing;
	uint64_t ino, dev;                  /* of the lower directory, to see whether it is still the same */
	uint64_t gen;                       /* of the parent's watch when the lower was looked at; 0: look again */
	uint64_t watch_gen;                 /* of its own watch; 0 for none */
	uint32_t hash;
	uint32_t refs;
	int lower_fd, upper_fd;             /* O_PATH, directories only; -1 */
	int wd;                             /* inotify; -1 */
	uint8_t type;                       /* DT_*; DT_UNKNOWN: nothing is there */
	uint8_t search;                     /* enum node_search, by the supervisor's own credentials */
	uint8_t visits;
	bool hashed;
	bool in_upper;                      /* it exists in the upper */
	bool in_lower;                      /* it exists in the lower and is seen (through the upper directory, if both) */
	bool whiteout;                      /* negative: a whiteout in the upper says so */
	bool opaque, scaffold;              /* directory in the upper */
	bool dead;                          /* directory that was removed */
	bool followed;                      /* a link that everybody may follow */
	bool host_proc;                     /* the host has a /proc mounted here */
	uint8_t name_len;
	char *name;                         /* short_name or allocated */
	char short_name[24];
};

struct dir_entry { /* a directory that guests hold open */
	struct dir_entry *chain, *older, *newer;
	uint64_t dev, ino;
	struct vfs_node *node;
};

struct copy_wait; /* layer.c */

struct vfs {
	struct vfs_options options;
	struct vfs_mount *mounts;
	struct vfs_node *root;
	struct hidden *hidden;              /* hidden.c */
	int host_root;                      /* O_PATH of / */
	struct vfs_node **buckets;
	size_t bucket_count, node_count;
	struct vfs_node lru;                /* sentinel: lru_next is the oldest */
	size_t unused;                      /* length of the list */
	bool shrinking;
	size_t fd_count, fd_most;           /* directories held open */
	/* watch.c */
	int inotify;
	struct vfs_node **watched;          /* by watch descriptor */
	size_t watched_size;
	uint64_t next_gen;
	volatile sig_atomic_t changed;
	/* fd.c */
	struct dir_entry **dirs;
	struct dir_entry *dirs_oldest, *dirs_newest;
	size_t dir_count;
	struct vfs_node **moved;            /* directories whose lower is at another place */
	size_t moved_count, moved_room;
	/* layer.c */
	struct index_entry **indexed;       /* lower files with links that are copied up */
	size_t index_size, index_count;
	struct copy_wait *copies;
	uint64_t *readers;                  /* handover.c: a Bloom filter of lower files that guests were given */
	struct handover *handovers;
	unsigned serial;                    /* of temporaries */
	mode_t umask;                       /* of this process now */
	struct vfs_node *listed[LISTINGS_KEPT]; /* list.c: directories whose listing is kept, the oldest goes next */
	unsigned listed_next;
	uint64_t seed;                      /* of positions in directories */
	struct vfs_counts counts;
	struct vfs_cred own;
	/* sysctls that change the rules of a walk */
	bool protected_symlinks, protected_hardlinks, protected_regular, protected_fifos;
	struct proc_view *proc;             /* special.c */
	bool ready;                         /* all mounts are there */
};

/* node.c */
struct vfs_node *node_new(struct vfs *vfs, struct vfs_node *parent, struct vfs_mount *mount, const char *name, size_t len);
struct vfs_node *node_find(struct vfs *vfs, const struct vfs_node *parent, const char *name, size_t len);
struct vfs_node *node_get(struct vfs *vfs, struct vfs_node *parent, const char *name, size_t len);
void node_link(struct vfs *vfs, struct vfs_node *node);
void node_unlink(struct vfs *vfs, struct vfs_node *node);
void node_forget(struct vfs *vfs, struct vfs_node *node);
int node_move(struct vfs *vfs, struct vfs_node *node, struct vfs_node *parent, const char *name, size_t len);
void node_close(struct vfs *vfs, struct vfs_node *node);
void nodes_init(struct vfs *vfs);
void nodes_close(struct vfs *vfs);
void nodes_doubt(struct vfs *vfs, uint64_t dev, uint64_t ino);
void node_clear(struct vfs *vfs, struct vfs_node *node);
void nodes_free(struct vfs *vfs);
struct vfs_node *node_up(struct vfs_node *node);
bool node_is_below(const struct vfs_node *node, const struct vfs_node *top);
bool node_holds_mount(const struct vfs *vfs, const struct vfs_node *node);
ssize_t node_guest_path(const struct vfs_node *node, const struct vfs_node *root, char *buf, size_t size);

/* watch.c */
void watch_init(struct vfs *vfs);
void watch_end(struct vfs *vfs);
void watch_add(struct vfs *vfs, struct vfs_node *dir);
void watch_drop(struct vfs *vfs, struct vfs_node *dir);
void watch_read(struct vfs *vfs);

/* hidden.c: objects of the host that are hidden at every place of the view */
int hidden_add(struct vfs *vfs, const char *path);
void hidden_free(struct vfs *vfs);
bool hidden_is(const struct vfs *vfs, uint64_t dev, uint64_t ino);
bool hidden_may_be(const struct vfs *vfs, const char *name, uint64_t ino);
bool hidden_has(const struct vfs *vfs, const char *path);
bool hidden_in(struct vfs *vfs, const struct vfs_node *dir, const char *name, uint64_t dev, uint64_t ino);

/* lookup.c: a name in a directory of the view */
int lookup(const struct vfs_who *who, struct vfs_node *dir, const char *name, size_t len, struct vfs_place *place,
           struct vfs_node **node);
int lookup_search(const struct vfs_who *who, struct vfs_node *dir);
int dir_lower(struct vfs *vfs, struct vfs_node *dir);  /* its lower's descriptor, or -ENOENT */
int dir_upper(struct vfs *vfs, struct vfs_node *dir);  /* its upper's descriptor, or -ENOENT */
const char *node_link_target(struct vfs *vfs, struct vfs_node *node, int *error);
bool lower_has(struct vfs *vfs, struct vfs_node *dir, const char *name, struct stat *st);
ssize_t node_lower_path(struct vfs *vfs, const struct vfs_node *node, char *buf, size_t size);

/* layer.c: the upper is changed here alone */
int layer_open(struct vfs *vfs);
void layer_end(struct vfs *vfs);
int layer_dir(struct vfs *vfs, struct vfs_node *dir);                     /* the directory exists in the upper: its descriptor */
int layer_copy_up(const struct vfs_who *who, struct vfs_node *node, bool data);
int layer_copy_object(const struct vfs_who *who, int fd);
int layer_dead_dir(struct vfs *vfs, struct upper *upper);
int layer_mark_read(int fd, struct mark *mark);
int layer_mark_write(int fd, const struct mark *mark);
int layer_alias(struct vfs *vfs, struct vfs_node *node, const struct statx *lower);
bool layer_is_indexed(const struct vfs *vfs, uint64_t dev, uint64_t ino);
int layer_remove(struct vfs *vfs, struct vfs_node *dir, const char *name); /* what is no directory */
int layer_hide(struct vfs *vfs, struct vfs_node *dir, const char *name);  /* a whiteout, where the lower has the name */
int layer_discard_dir(struct vfs *vfs, struct vfs_node *node);            /* an empty directory of the view goes from the upper */
int layer_mount_root(struct vfs *vfs, struct vfs_mount *mount);

/* A directory of the upper whose mode denies its owner, that is us, what must be done in it. TIMES: they are put back as well. */
struct upper_lock { int fd; mode_t mode; bool changed; struct timespec times[2]; };
int upper_unlock(struct upper_lock *lock, int dirfd);
void upper_relock(struct upper_lock *lock, bool times);

/* linked.c */
void linked_start(const struct vfs_who *who, struct vfs_place *from);
void linked_made(const struct vfs_who *who, struct vfs_node *from, struct vfs_node *to);
void linked_end(struct vfs *vfs, struct vfs_fs *fs);

/* handover.c */
void readers_add(struct vfs *vfs, uint64_t dev, uint64_t ino);
bool handover_put(struct vfs *vfs, const struct statx *lower, int fd);
bool handover_add(const struct vfs_who *who, struct vfs_node *node, const struct statx *lower);
bool reader_was(const struct vfs *vfs, const struct vfs_node *node);
bool reader_holds(struct vfs *vfs, const struct vfs_node *node);
void handovers_free(struct vfs *vfs);

/* perm.c: what the kernel would check where it cannot, since the attributes that count are the lower's */
int perm_dir_write(const struct vfs_who *who, struct vfs_node *dir);
int perm_delete(const struct vfs_who *who, struct vfs_node *dir, struct vfs_node *node, bool is_dir);
int perm_file(const struct vfs_who *who, int fd, int mask);
int perm_owner(const struct vfs_who *who, struct vfs_place *place);
bool perm_follow(const struct vfs_who *who, struct vfs_node *dir, struct vfs_node *link);

/* stat.c */
struct at { /* for the *at() calls; the name is empty where the descriptor is the object itself: pass AT_EMPTY_PATH */
	int fd;
	const char *name;
};
int node_at(struct vfs *vfs, struct vfs_node *node, struct at *at);
int place_at(const struct vfs_who *who, struct vfs_place *place, struct at *at);
int place_hold(const struct vfs_who *who, struct vfs_place *place);
int place_usable(const struct vfs_place *place);

/* open.c */
int node_view(const struct vfs_who *who, struct vfs_node *node);
int make_start(const struct vfs_who *who, struct vfs_place *place, int *dirfd);
int make_end(const struct vfs_who *who, struct vfs_place *place, int error, uint8_t type);
int make_enter(const struct vfs_who *who, const struct vfs_place *place);
void make_leave(const struct vfs_who *who, const struct vfs_place *place);

/* fd.c */
bool object_is_own(struct vfs *vfs, const struct stat *st, const char *host_path);
bool guest_path_of(struct vfs *vfs, const struct stat *st, const char *host_path, char *out, size_t size);
void moved_add(struct vfs *vfs, struct vfs_node *node);
void dirs_add(struct vfs *vfs, uint64_t dev, uint64_t ino, struct vfs_node *node);
struct vfs_node *dirs_find(struct vfs *vfs, uint64_t dev, uint64_t ino);
void dirs_free(struct vfs *vfs);

/* list.c */
void listing_drop(struct vfs *vfs, struct vfs_node *dir);  /* its memory */
void listing_stale(struct vfs_node *dir);                  /* something changed: a reading from the start sees it */
bool dir_is_empty(const struct vfs_who *who, struct vfs_node *dir, int *error);

static inline bool node_exists(const struct vfs_node *node)
{
	return node->type != DT_UNKNOWN;
}

static inline bool node_is_dir(const struct vfs_node *node)
{
	return node->type == DT_DIR;
}

/* The covering mount's root, through any number of mounts. */
static inline struct vfs_node *node_top(struct vfs_node *node)
{
	while (node->covered && node->covered->root)
		node = node->covered->root;
	return node;
}

/* Paths that the kernel resolves by descriptor. */
struct fd_path { char text[32]; };
struct fd_path fd_path(int fd);

#endif
