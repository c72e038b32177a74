/*
 * fs_attack.c - ways out of the view that once worked. The case of tests/run that runs one looks afterwards at what must not have
 * changed, and at standard output, where nothing that is hidden may be.
 */
#include "guest.h"

#include <elf.h>
#include <sys/stat.h>

/* --- a link to the host's file --------------------------------------------------------------------------------------------- */

static void link_and_write(int fd, const char *path)
{
	char object[32];
	int made;

	snprintf(object, sizeof(object), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, object, AT_FDCWD, path, AT_SYMLINK_FOLLOW) && linkat(fd, "", AT_FDCWD, path, AT_EMPTY_PATH))
		return;
	made = open(path, O_WRONLY | O_TRUNC);
	CHECK(made >= 0 && write(made, "changed", 7) == 7);
}

/* What is open has lost its name in the view, not on the host; `rw` is the host's. argv[1]: what becomes of the name. */
static int test_link(int argc, char **argv)
{
	int fd = open("cow/folder/file", O_RDONLY);

	MUST(fd >= 0 && argc > 1);
	if (!strcmp(argv[1], "unlink"))
		MUST(unlink("cow/folder/file") == 0);
	else if (!strcmp(argv[1], "over"))
		MUST(close(open("cow/new", O_WRONLY | O_CREAT, 0600)) == 0 && rename("cow/new", "cow/folder/file") == 0);
	else
		MUST(rename("cow/folder", "cow/moved") == 0);
	link_and_write(fd, "rw/link");
	return 0;
}

/* --- an interpreter that is changed between the look and the exec ---------------------------------------------------------- */

static long interp_at; /* offset of the program header of ./program */
static volatile bool flip_end;

/* Writes TEXT behind the file's end; the program header that names it. */
static Elf64_Phdr named_at(int fd, off_t at, const char *text)
{
	Elf64_Phdr header;

	MUST(pread(fd, &header, sizeof(header), interp_at) == sizeof(header));
	MUST(pwrite(fd, text, strlen(text) + 1, at) > 0);
	header.p_offset = (Elf64_Off)at;
	header.p_filesz = header.p_memsz = strlen(text) + 1;
	return header;
}

static Elf64_Phdr names[2]; /* of what is shown, and of what is hidden */

/* ./program, and its interpreter again in ./hidden. */
static void want_program(bool copy)
{
	char interp[4096] = "", command[4200];
	Elf64_Ehdr head;
	struct stat st;
	int fd;

	MUST(system("cp \"$SELF\" ./program; chmod 755 ./program") == 0);
	fd = open("program", O_RDWR);
	MUST(fd >= 0 && fstat(fd, &st) == 0 && pread(fd, &head, sizeof(head), 0) == sizeof(head));
	for (int i = 0; i < head.e_phnum && !*interp; i++) {
		Elf64_Phdr header;

		interp_at = (long)(head.e_phoff + i * sizeof(header));
		MUST(pread(fd, &header, sizeof(header), interp_at) == sizeof(header));
		if (header.p_type == PT_INTERP)
			MUST(pread(fd, interp, header.p_filesz, (off_t)header.p_offset) > 0);
	}
	MUST(*interp);
	names[0] = named_at(fd, st.st_size, interp);
	snprintf(command, sizeof(command), "mkdir -p hidden && cp -L %s hidden/interpreter", interp);
	MUST(!copy || system(command) == 0);
	MUST(getcwd(interp, sizeof(interp) - 32));
	strcat(interp, "/hidden/interpreter");
	names[1] = named_at(fd, st.st_size + 4096, interp);
	close(fd);
}

static void name_interp(int which)
{
	int fd = open("program", O_WRONLY);

	if (fd < 0) /* it runs */
		return;
	MUST(pwrite(fd, &names[which], sizeof(names[which]), interp_at) == sizeof(names[which]));
	close(fd);
}

static void *flip_interp(void *arg)
{
	for (unsigned i = 0; !flip_end; i++) {
		name_interp(i & 1);
		for (volatile unsigned spin = i * 7919 % 20000; spin > 0; spin--)
			;
	}
	return NULL;
}

static void run_program(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		execl("./program", "program", "mapped", (char *)NULL);
		_exit(99);
	}
	MUST(pid > 0);
	guest_wait(pid);
}

/* The hidden interpreter would run, if it were not hidden. */
static int test_native(int argc, char **argv)
{
	want_program(true);
	name_interp(1);
	run_program();
	return 0;
}

static int test_interp(int argc, char **argv)
{
	time_t end = time(NULL) + 4;
	pthread_t thread;

	want_program(false);
	guest_thread(&thread, flip_interp, NULL);
	while (time(NULL) < end)
		run_program();
	flip_end = true;
	pthread_join(thread, NULL);
	return 0;
}

static int test_mapped(int argc, char **argv)
{
	char line[8192];
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "interpreter"))
			dprintf(1, "SECRET interpreter: %s", line);
	return 0;
}

/* A program of 1 TiB whose interpreter is the guest's own: the supervisor would have to copy it. */
static int test_huge(int argc, char **argv)
{
	pid_t pid;

	want_program(true);
	MUST(truncate("program", (off_t)1 << 40) == 0);
	name_interp(1);
	pid = vfork();
	if (pid == 0) {
		execl("./program", "program", "mapped", (char *)NULL);
		_exit(errno == ENOMEM ? 0 : 99);
	}
	if (guest_wait(pid) != 0)
		dprintf(1, "it ran\n");
	return 0;
}

static const struct test tests[] = {
	{ "link", test_link }, { "interp", test_interp }, { "native", test_native }, { "mapped", test_mapped }, { "huge", test_huge }, { NULL, NULL }
};

int main(int argc, char **argv)
{
	char self[4096] = "";

	MUST(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	setenv("SELF", self, 0);
	return guest_main(argc, argv, tests);
}
