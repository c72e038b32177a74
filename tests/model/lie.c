/*
 * lie.c - a library that is loaded before others and lies in one call: what the model test must notice.
 *
 * INTERPOSE_LIE says which. mtime: utimensat forgets the nanoseconds. mode: mkdir gives 0755 always. unlink: says 0 for what
 * is not there. data: every third pwrite is one byte late. rename: RENAME_NOREPLACE is not heeded.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static bool lies(const char *what)
{
	const char *told = getenv("INTERPOSE_LIE");

	return told && !strcmp(told, what);
}

static long pass(long nr, const long *args)
{
	static long (*real)(long nr, ...);

	if (!real)
		real = (long (*)(long nr, ...))dlsym(RTLD_NEXT, "syscall");
	return real(nr, args[0], args[1], args[2], args[3], args[4], args[5]);
}

long syscall(long nr, ...)
{
	long args[6], result;
	va_list list;

	va_start(list, nr);
	for (int i = 0; i < 6; i++)
		args[i] = va_arg(list, long);
	va_end(list);
	if (nr == SYS_utimensat && args[2] && lies("mtime")) {
		struct timespec *times = (struct timespec *)args[2];

		if (times[1].tv_nsec < 1000000000)
			times[1].tv_nsec = 0;
	}
	if (nr == SYS_mkdirat && lies("mode"))
		args[2] = 0755;
	if (nr == SYS_renameat2 && lies("rename"))
		args[4] &= ~1l;
	result = pass(nr, args);
	if (nr == SYS_unlinkat && lies("unlink") && result < 0 && errno == ENOENT)
		return 0;
	return result;
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
	static int count;
	long args[6] = { fd, (long)data, (long)len, at + (lies("data") && ++count % 3 == 0) };

	return pass(SYS_pwrite64, args);
}
