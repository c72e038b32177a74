/*
 * cred.h - credentials with which the supervisor acts for a guest.
 *
 * An ordinary user's guests cannot have others than the supervisor's. A root's can: after su, setpriv, capsh. The thread then
 * takes the guest's file-system ids, groups and capabilities for the length of an operation, by the calls that concern one
 * thread (not libc's, which change all).
 */
#ifndef INTERPOSE_VFS_CRED_H
#define INTERPOSE_VFS_CRED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct vfs_cred {
	bool foreign;      /* not the supervisor's own */
	uid_t uid, ruid;   /* file-system and real */
	gid_t gid, rgid;
	uint64_t caps;     /* effective */
	unsigned group_count;
	gid_t *groups;     /* allocated */
};

/* The supervisor's own. */
int cred_own(struct vfs_cred *cred);

/* Of task TID, from /proc/TID/status, compared with OWN. */
int cred_of(struct vfs_cred *cred, pid_t tid, const struct vfs_cred *own);
void cred_free(struct vfs_cred *cred);

/* Acts as CRED until cred_leave(). Nothing is done for ones that are not foreign. Do not nest. */
int cred_enter(const struct vfs_cred *cred);
void cred_leave(const struct vfs_cred *cred);

bool cred_in_group(const struct vfs_cred *cred, gid_t gid);
bool cred_capable(const struct vfs_cred *cred, int cap);

#endif
