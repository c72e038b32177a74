/* view.c - the files that guests see. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracer/handover.h"
#include "tracer/message.h"
#include "tracer/view.h"
#include "tracer/view_impl.h"

static struct vfs *watched; /* of the signal handler */

/* --- defaults -------------------------------------------------------------------------------------------------------------------- */

/* What belongs to nobody but the user, and what guests have no business with. */
static const char *const secrets[] = {
	".ssh", ".gnupg", ".aws", ".azure", ".netrc", ".kube", ".docker", ".config/gcloud", ".config/gh", ".git-credentials",
	".pypirc", ".password-store", ".vault-token", ".local/share/keyrings", ".terraform.d/credentials.tfrc.json",
};
static const char *const system_secrets[] = { "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers",
	"/etc/sudoers.d", "/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key" };

static bool is_given(const struct view *view, const char *path)
{
	for (size_t i = 0; i < view->mount_count; i++)
		if (!strcmp(view->mounts[i].path, path))
			return true;
	return false;
}

/* Unless the command line has something else there. */
static int add_default(struct view *view, enum vfs_kind kind, const char *path)
{
	if (is_given(view, path))
		return 0;
	return view_spec_add(&view->mounts, &view->mount_count, (struct vfs_mount_spec){ .kind = kind, .path = strdup(path), .optional = true });
}

static int add_secrets(struct view *view, const char *home)
{
	char path[PATH_MAX];
	int error = 0;

	for (size_t i = 0; error == 0 && i < sizeof(secrets) / sizeof(secrets[0]); i++)
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", home, secrets[i]) < sizeof(path))
			error = add_default(view, VFS_HIDE, path);
	return error;
}

static int add_defaults(struct view *view)
{
	const struct passwd *user = getpwuid(getuid());
	const char *home = getenv("HOME");
	char why[256], *state, *own = home && home[0] == '/' ? view_absolute(home) : NULL;
	int error = add_default(view, VFS_COW, "/");

	if (error == 0)
		error = add_default(view, VFS_PROC, "/proc");
	if (error == 0)
		error = add_default(view, VFS_DEV, "/dev");
	if (error == 0)
		error = add_default(view, VFS_TMP, "/dev/shm");
	if (error == 0 && own && strcmp(own, "/"))
		error = add_secrets(view, own);
	if (error == 0 && user && user->pw_dir[0] == '/' && user->pw_dir[1] && (!own || strcmp(own, user->pw_dir)))
		error = add_secrets(view, user->pw_dir);
	for (size_t i = 0; error == 0 && i < sizeof(system_secrets) / sizeof(system_secrets[0]); i++)
		error = add_default(view, VFS_HIDE, system_secrets[i]);
	free(own);
	state = upper_state_dir(why, sizeof(why)); /* other overlays */
	if (error == 0 && state)
		error = add_default(view, VFS_HIDE, state);
	free(state);
	if (error == 0 && view->upper.path)
		error = add_default(view, VFS_HIDE, view->upper.path);
	if (error == 0 && view->memory.path && !view->shared)
		error = add_default(view, VFS_HIDE, view->memory.path);
	return error;
}

/* --- making it --------------------------------------------------------------------------------------------------------------------- */

static int open_uppers(struct view *view, const struct view_options *options)
{
	char why[PATH_MAX + 256], *path;
	int error = 0;

	if (options->name) {
		error = upper_open_named(&view->upper, options->name, why, sizeof(why));
	} else if (options->upper) {
		path = view_absolute(options->upper);
		error = path ? upper_open_dir(&view->upper, path, why, sizeof(why)) : -ENOMEM;
		free(path);
	}
	if (error == 0)
		error = upper_open_memory(&view->memory, false, why, sizeof(why));
	if (error == -ENOMEM)
		message("out of memory");
	else if (error < 0)
		message("%s", why);
	view->shared = !options->name && !options->upper;
	return error;
}

static bool is_guest(void *context, pid_t pid)
{
	const struct view *view = context;

	return view->engine && engine_call_of(view->engine, pid);
}

static pid_t tgid_of(void *context, pid_t tid)
{
	const struct view *view = context;
	const struct call *call = view->engine ? engine_call_of(view->engine, tid) : NULL;

	return call ? call->tgid : 0;
}

static struct vfs_fs *fs_of(void *context, pid_t tid)
{
	const struct view *view = context;
	const struct call *call = view->engine ? engine_call_of(view->engine, tid) : NULL;
	const struct task_env *task = call ? call->state : NULL;

	return task ? task->fs : view->env.first;
}

static bool affinity(void *context, pid_t tid, char *mask, size_t mask_size, char *list, size_t list_size)
{
	const struct view *view = context;

	return view->engine && engine_affinity(view->engine, tid, mask, mask_size, list, list_size);
}

static bool is_stopped(void *context, pid_t tid)
{
	const struct view *view = context;

	return view->engine && engine_task_stopped(view->engine, tid);
}

static bool holds(void *context, dev_t dev, ino_t ino)
{
	const struct view *view = context;

	return view->engine && handover_is_held(view->engine, dev, ino);
}

static void notify(void *context)
{
	struct view *view = context;

	if (view->engine)
		engine_attention(view->engine);
}

static int make_vfs(struct view *view)
{
	static const struct vfs_guests guests = { is_guest, tgid_of, fs_of, affinity, holds, is_stopped };
	char why[PATH_MAX + 256];
	struct vfs_options options = {
		.mounts = view->mounts, .mount_count = view->mount_count,
		.upper = view->shared ? &view->memory : &view->upper, .memory = &view->memory,
		.guests = &guests, .guests_context = view, .notify = notify, .notify_context = view,
	};
	int error = vfs_new(&view->env.vfs, &options, why, sizeof(why));

	if (error < 0)
		message("%s", why);
	return error;
}

static int find_cwd(struct view *view, const char *cwd)
{
	mode_t mask = umask(0);
	int error;

	umask(mask);
	view->cwd = view_absolute(cwd ? cwd : ".");
	if (!view->cwd) {
		message("cannot tell the working directory: %s", strerror(errno));
		return -ENOENT;
	}
	error = vfs_fs_new(view->env.vfs, view->cwd, mask, &view->env.first);
	if (error < 0)
		message("cannot change to '%s': %s", view->cwd, strerror(-error));
	return error;
}

int view_make(struct view *view, const struct view_options *options, const char *cwd)
{
	static const struct upper none = { .root_fd = -1, .fs_fd = -1, .work_fd = -1, .index_fd = -1, .view_fd = -1, .origins_fd = -1, .lock_fd = -1 };
	int error = 0;

	memset(view, 0, sizeof(*view));
	view->upper = view->memory = none;
	view->env.work_fd = -1;
	for (size_t i = 0; error == 0 && i < options->mount_count; i++) {
		struct vfs_mount_spec spec = options->mounts[i];

		spec.path = strdup(spec.path);
		spec.source = spec.source ? strdup(spec.source) : NULL;
		error = view_spec_add(&view->mounts, &view->mount_count, spec);
	}
	if (error == 0)
		error = open_uppers(view, options);
	if (error < 0)
		return error;
	error = add_defaults(view);
	if (error < 0) {
		message("out of memory");
		return error;
	}
	view->env.work_fd = view->memory.work_fd;
	error = make_vfs(view);
	return error < 0 ? error : find_cwd(view, cwd);
}

struct vfs_who view_first(struct view *view)
{
	return (struct vfs_who){ .vfs = view->env.vfs, .fs = view->env.first, .cred = vfs_own_cred(view->env.vfs), .tid = getpid(),
	                         .tgid = getpid(), .pidfd = -1 };
}

/* --- the host's changes -------------------------------------------------------------------------------------------------------------- */

static void on_io(int signo)
{
	(void)signo;
	if (watched)
		vfs_host_changed(watched);
}

void view_start(struct view *view, struct engine *engine)
{
	struct f_owner_ex owner = { F_OWNER_TID, syscall(SYS_gettid) };
	struct sigaction action = { .sa_handler = on_io, .sa_flags = SA_RESTART };
	int fd = vfs_watch_fd(view->env.vfs);

	view->engine = engine;
	watched = view->env.vfs;
	if (fd < 0)
		return;
	sigaction(SIGIO, &action, NULL);
	fcntl(fd, F_SETOWN_EX, &owner);
	fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC);
	vfs_host_changed(view->env.vfs); /* before this moment nobody told us */
}

void view_end(struct view *view)
{
	watched = NULL;
	if (view->env.vfs && view->env.first)
		vfs_fs_unref(view->env.vfs, view->env.first);
	vfs_free(view->env.vfs);
	upper_close(&view->upper);
	upper_close(&view->memory);
	view_specs_free(view->mounts, view->mount_count);
	free(view->cwd);
}
