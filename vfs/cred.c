#include "vfs/cred.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct vfs_cred supervisor; /* what cred_leave() goes back to */

static int parse_groups(struct vfs_cred *cred, const char *text)
{
	char *end;
	unsigned long gid;

	for (gid = strtoul(text, &end, 10); end != text; gid = strtoul(text, &end, 10)) {
		gid_t *grown = realloc(cred->groups, (cred->group_count + 1) * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		cred->groups = grown;
		cred->groups[cred->group_count++] = gid;
		text = end;
	}
	return 0;
}

static int read_status(struct vfs_cred *cred, pid_t tid)
{
	unsigned real, effective, saved, fs;
	unsigned long long caps;
	char path[40], *line = NULL;
	size_t size = 0;
	int error = 0, seen = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	status = fopen(path, "re");
	if (!status)
		return -errno;
	while (error == 0 && getline(&line, &size, status) > 0) {
		if (sscanf(line, "Uid: %u %u %u %u", &real, &effective, &saved, &fs) == 4)
			cred->ruid = real, cred->uid = fs, seen++;
		else if (sscanf(line, "Gid: %u %u %u %u", &real, &effective, &saved, &fs) == 4)
			cred->rgid = real, cred->gid = fs, seen++;
		else if (sscanf(line, "CapEff: %llx", &caps) == 1)
			cred->caps = caps, seen++;
		else if (!strncmp(line, "Groups:", 7))
			error = parse_groups(cred, line + 7);
	}
	free(line);
	fclose(status);
	return error ? error : seen == 3 ? 0 : -ESRCH;
}

int cred_own(struct vfs_cred *cred)
{
	int error;

	memset(cred, 0, sizeof(*cred));
	error = read_status(cred, syscall(SYS_gettid));
	supervisor = *cred;
	return error;
}

static bool same_groups(const struct vfs_cred *a, const struct vfs_cred *b)
{
	return a->group_count == b->group_count &&
	       (a->group_count == 0 || !memcmp(a->groups, b->groups, a->group_count * sizeof(*a->groups)));
}

int cred_of(struct vfs_cred *cred, pid_t tid, const struct vfs_cred *own)
{
	int error;

	memset(cred, 0, sizeof(*cred));
	error = read_status(cred, tid);
	if (error < 0) {
		cred_free(cred);
		return error;
	}
	cred->foreign = cred->uid != own->uid || cred->gid != own->gid || cred->caps != own->caps || !same_groups(cred, own);
	return 0;
}

void cred_free(struct vfs_cred *cred)
{
	free(cred->groups);
	cred->groups = NULL;
	cred->group_count = 0;
}

/* linux/capability.h: what setfsuid() takes away from who is not root, capset() must give to a user with capabilities. */
static void set_effective(uint64_t caps)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return;
	data[0].effective = data[0].permitted & (uint32_t)caps;
	data[1].effective = data[1].permitted & (uint32_t)(caps >> 32);
	syscall(SYS_capset, &header, data);
}

/* Changing the file-system ids makes a process undumpable (kernel/cred.c: commit_creds), and guests could not open our
   descriptors. */
static void assume(const struct vfs_cred *cred)
{
	syscall(SYS_setfsgid, cred->gid);
	syscall(SYS_setfsuid, cred->uid);
	prctl(PR_SET_DUMPABLE, 1);
}

int cred_enter(const struct vfs_cred *cred)
{
	if (!cred || !cred->foreign)
		return 0;
	if (syscall(SYS_setgroups, cred->group_count, cred->groups))
		return -errno;
	assume(cred);
	set_effective(cred->caps);
	return 0;
}

void cred_leave(const struct vfs_cred *cred)
{
	if (!cred || !cred->foreign)
		return;
	set_effective(supervisor.caps);
	assume(&supervisor);
	set_effective(supervisor.caps);
	syscall(SYS_setgroups, supervisor.group_count, supervisor.groups);
}

bool cred_in_group(const struct vfs_cred *cred, gid_t gid)
{
	if (cred->gid == gid)
		return true;
	for (unsigned i = 0; i < cred->group_count; i++)
		if (cred->groups[i] == gid)
			return true;
	return false;
}

bool cred_capable(const struct vfs_cred *cred, int cap)
{
	return cred->caps >> cap & 1;
}
