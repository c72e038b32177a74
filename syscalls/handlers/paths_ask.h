/*
 * paths_ask.h - handlers of the calls that ask about files, list directories, and name sockets by paths.
 */
#ifndef INTERPOSE_SYSCALLS_HANDLERS_PATHS_ASK_H
#define INTERPOSE_SYSCALLS_HANDLERS_PATHS_ASK_H

#include "arch/call.h"

/* stat.c, xattr.c, list.c, handle.c, notify.c, socket_path.c */
#define ASK_HANDLERS(HANDLER) \
	HANDLER(sys_stat) HANDLER(sys_lstat) HANDLER(sys_stat64) HANDLER(sys_lstat64) HANDLER(sys_oldstat) HANDLER(sys_oldlstat) \
	HANDLER(sys_newfstatat) HANDLER(sys_statx) HANDLER(sys_access) HANDLER(sys_faccessat) HANDLER(sys_readlink) \
	HANDLER(sys_statfs) HANDLER(sys_statfs64) HANDLER(sys_getcwd) \
	HANDLER(sys_getxattr) HANDLER(sys_getxattrat) HANDLER(sys_listxattr) HANDLER(sys_listxattrat) \
	HANDLER(sys_setxattr) HANDLER(sys_fsetxattr) HANDLER(sys_setxattrat) \
	HANDLER(sys_removexattr) HANDLER(sys_fremovexattr) HANDLER(sys_removexattrat) \
	HANDLER(sys_getdents) HANDLER(sys_readdir) \
	HANDLER(sys_name_to_handle_at) HANDLER(sys_file_getattr) HANDLER(sys_inotify_add_watch) \
	HANDLER(sys_bind) HANDLER(sys_connect) HANDLER(sys_sendto) HANDLER(sys_sendmsg) HANDLER(sys_getsockname) HANDLER(sys_socketcall)

#define DECLARE(function) struct verdict function(void *context, struct call *call);
ASK_HANDLERS(DECLARE)
#undef DECLARE

#endif
