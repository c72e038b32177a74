/*
 * main.c - the model test: processes that take turns at random file operations, and log what they are told.
 *
 *   model [-w CLASS,...] [-k STEPS] SEED STEPS PROCESSES DIR
 *
 * -w leaves classes of operations out; -k runs only some of the steps: `3,7-12`. Without the same -w a seed means another run.
 * All happens some levels below DIR, so that a `..` too many does not leave it. The log goes to standard output.
 */
#include "tests/model/model.h"

#include <signal.h>
#include <sys/wait.h>

enum { PIPES_FROM = 100, SNAPSHOT_EVERY = 40 };

struct self self;

static const struct op *const tables[] = { file_ops, name_ops, meta_ops, dir_ops, process_ops };
static const char *without = "", *kept;
static uint64_t seed;
static unsigned steps, processes, now;
static int turns[PROCESSES_MAX][2];

void slot_put(int index, int fd)
{
	struct stat st;

	if (self.slot[index] >= 0)
		close(self.slot[index]);
	self.slot[index] = fd;
	self.folder[index] = fd >= 0 && !fstat(fd, &st) && S_ISDIR(st.st_mode);
}

static bool is_inside(const char *path)
{
	size_t len = strlen(self.root);

	return !strncmp(path, self.root, len) && (path[len] == '/' || !path[len] || path[len] == ' ');
}

void stay_inside(void)
{
	char path[8192], link[32];

	if (syscall(SYS_getcwd, path, sizeof(path)) > 0 && !is_inside(path)) {
		say("(back inside%s) ", chdir(self.root) ? " fails" : "");
	}
	for (int i = 0; i < SLOTS; i++) {
		ssize_t len;

		if (!self.folder[i])
			continue;
		snprintf(link, sizeof(link), "/proc/self/fd/%d", self.slot[i]);
		len = readlink(link, path, sizeof(path) - 1);
		path[len > 0 ? len : 0] = 0;
		if (len > 0 && !is_inside(path)) {
			say("(%d was outside) ", self.slot[i]);
			slot_put(i, -1);
		}
	}
}

static bool listed(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += len)
		if ((at == list || at[-1] == ',') && (!at[len] || at[len] == ','))
			return true;
	return false;
}

static const struct op *pick_op(void)
{
	int total = 0, left;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct op *op = tables[i]; op->name; op++)
			total += listed(without, op->class) ? 0 : op->weight;
	left = (int)pick((unsigned)total);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct op *op = tables[i]; op->name; op++) {
			left -= listed(without, op->class) ? 0 : op->weight;
			if (left < 0)
				return op;
		}
	abort();
}

void run_some(unsigned count, const char *who)
{
	while (count--) {
		const struct op *op;

		say_begin(now, who);
		stay_inside();
		op = pick_op();
		say("%s", op->name);
		op->run();
		say_end();
	}
}

/* Whether -k names this step. The last steps, the snapshots of each process, are always made. */
static bool is_kept(unsigned step)
{
	const char *at = kept;

	if (!kept || step >= steps)
		return true;
	while (*at) {
		char *end;
		unsigned long from = strtoul(at, &end, 10), to = from;

		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		if (step >= from && step <= to)
			return true;
		if (end == at || !*end)
			break;
		at = end + 1;
	}
	return false;
}

static unsigned next_step(unsigned step)
{
	while (!is_kept(step))
		step++;
	return step;
}

/* Who makes a step; sets the random sequence of that step. */
static int owner_of(unsigned step)
{
	if (step >= steps)
		return (int)(step - steps);
	pick_begin(seed, step);
	return (int)pick(processes);
}

static void pass_turn(unsigned step)
{
	if (step < steps + processes && write(turns[owner_of(step)][1], "", 1) != 1)
		_exit(3);
}

static void await_turn(void)
{
	char byte;

	while (read(turns[self.index][0], &byte, 1) != 1)
		if (errno != EINTR)
			_exit(3);
}

static void one_step(unsigned step)
{
	now = step;
	if (step < steps) {
		run_some(1, "p");
		if (step % SNAPSHOT_EVERY)
			return;
	}
	say_begin(step, "p");
	say("snapshot");
	op_snapshot();
	say_end();
}

static void take_part(void)
{
	for (unsigned step = next_step(0); step < steps + processes; step = next_step(step + 1)) {
		if (owner_of(step) != self.index)
			continue;
		await_turn();
		owner_of(step);
		one_step(step);
		pass_turn(next_step(step + 1));
	}
	exit(0);
}

/* Pipes out of the way, so that the numbers of opened files are small and tell something. */
static void make_turns(void)
{
	for (unsigned i = 0; i < processes; i++) {
		int ends[2];

		if (pipe(ends))
			abort();
		for (int j = 0; j < 2; j++) {
			turns[i][j] = fcntl(ends[j], F_DUPFD_CLOEXEC, PIPES_FROM);
			close(ends[j]);
		}
	}
}

static int wait_for_all(const pid_t *pids)
{
	int status, result = 0;

	for (unsigned left = processes; left; left--) {
		if (wait(&status) < 0)
			return 3;
		if (status && !result) {
			char text[64];
			int len = snprintf(text, sizeof(text), "a process ended with wait status %#x\n", status);

			result = write(1, text, (size_t)len) == len ? 1 : 3;
			for (unsigned i = 0; i < processes; i++)
				kill(pids[i], SIGKILL);
		}
	}
	return result;
}

static void enter(const char *dir)
{
	snprintf(self.root, sizeof(self.root), "%s", dir);
	for (int i = 0; i < 5; i++) {
		size_t len = strlen(self.root);

		snprintf(self.root + len, sizeof(self.root) - len, "/%d", i);
		if (mkdir(self.root, 0755) && errno != EEXIST)
			exit(3);
	}
	if (chdir(self.root))
		exit(3);
}

static int usage(void)
{
	fprintf(stderr, "usage: model [-w CLASS,...] [-k STEPS] SEED STEPS PROCESSES DIR\n");
	return 2;
}

int main(int argc, char **argv)
{
	pid_t pids[PROCESSES_MAX];
	int option;

	while ((option = getopt(argc, argv, "w:k:")) != -1) {
		if (option == 'w')
			without = optarg;
		else if (option == 'k')
			kept = optarg;
		else
			return usage();
	}
	if (argc - optind != 4 || argv[optind + 3][0] != '/')
		return usage();
	seed = strtoull(argv[optind], NULL, 10);
	steps = (unsigned)strtoul(argv[optind + 1], NULL, 10);
	processes = (unsigned)strtoul(argv[optind + 2], NULL, 10);
	if (processes < 1 || processes > PROCESSES_MAX)
		return usage();
	umask(022);
	signal(SIGPIPE, SIG_IGN);
	for (int fd = 3; fd < 256; fd++)
		close(fd);
	enter(argv[optind + 3]);
	make_turns();
	memset(self.slot, -1, sizeof(self.slot));
	for (unsigned i = 0; i < processes; i++) {
		self.index = (int)i;
		pids[i] = fork();
		if (pids[i] < 0)
			return 3;
		if (!pids[i])
			take_part();
	}
	pass_turn(next_step(0));
	return wait_for_all(pids);
}
