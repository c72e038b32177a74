/*
 * dispatch.c - what the supervisor itself spends between a stop and its verdict, without the kernel.
 *
 *   dispatch MS               for each call `name verdict ns instructions`, instructions `-` where the CPU has no counter
 *   dispatch -n COUNT NAME    decides NAME so often in dispatch_many(), for a profiler that counts that function
 *
 * Links the program's own session, table and handlers (build/libinterpose.a) and starts from what PTRACE_GET_SYSCALL_INFO
 * gives at a stop. Guest memory is this process's own, so a copy costs a memcpy: the functions here take the place of those
 * in the library (ld -z muldefs). A handler that asks the host something pays for that in ns; instructions are those of user
 * space.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

#include "arch/arch.h"
#include "arch/call.h"
#include "bench/loop.h"
#include "syscalls/row.h"
#include "tracer/session.h"

enum { COUNTED = 20000 };

/* --- guest memory: our own ----------------------------------------------------------------------------------------- */

int guest_read(struct call *call, uint64_t addr, void *buf, size_t len)
{
	call->read_memory = true;
	memcpy(buf, (const void *)(uintptr_t)addr, len);
	return 0;
}

ssize_t guest_read_string(struct call *call, uint64_t addr, char *buf, size_t size)
{
	const char *string = (const char *)(uintptr_t)addr;
	size_t len = strnlen(string, size);

	call->read_memory = true;
	if (len == size)
		return -ENAMETOOLONG;
	memcpy(buf, string, len + 1);
	return (ssize_t)len;
}

ssize_t guest_peek(const struct call *call, uint64_t addr, void *buf, size_t len)
{
	(void)call;
	memcpy(buf, (const void *)(uintptr_t)addr, len);
	return (ssize_t)len;
}

int guest_window_put(struct call *call, const void *data, size_t len, uint64_t *addr)
{
	static char window[4096];

	(void)call;
	if (len > sizeof(window))
		return -E2BIG;
	memcpy(window, data, len);
	*addr = (uintptr_t)window;
	return 0;
}

bool guest_window_overlaps(const struct call *call, uint64_t addr, uint64_t len)
{
	(void)call, (void)addr, (void)len;
	return false;
}

void guest_affinity_settle(struct call *call, pid_t pid)
{
	(void)call, (void)pid;
}

/* --- one stop ------------------------------------------------------------------------------------------------------ */

/* What the kernel tells of a stop, as far as the engine reads it. */
struct stop {
	const char *name;
	uint32_t audit, nr;
	uint64_t args[6];
};

static struct session *session;
static pid_t self;

/* As the engine does at each stop, up to the verdict. */
static struct verdict dispatch(const struct stop *stop)
{
	static void *state; /* of the one task */
	struct call call = { .arch = arch_by_audit(stop->audit), .nr = stop->nr, .state = state };
	struct verdict verdict;

	call.tid = call.tgid = self;
	call.id = arch_call_of(call.arch, stop->nr);
	memcpy(call.args, stop->args, sizeof(call.args));
	verdict = session_call(session, &call);
	state = call.state;
	return verdict;
}

static long dispatch_once(void *context)
{
	return (long)dispatch(context).kind;
}

/* A profiler is told to count in here and nowhere else. */
__attribute__((noinline)) static long dispatch_many(const struct stop *stop, unsigned long count)
{
	long sum = 0;

	for (unsigned long i = 0; i < count; i++)
		sum += (long)dispatch(stop).kind;
	return sum;
}

/* --- measuring ----------------------------------------------------------------------------------------------------- */

/* A counter of this thread's user-space instructions, or -1: virtual machines often have none. */
static int counter_open(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Instructions of one dispatch, or a negative number. */
static double instructions(const struct stop *stop, int counter)
{
	uint64_t count = 0;

	if (counter < 0)
		return -1;
	ioctl(counter, PERF_EVENT_IOC_RESET, 0);
	ioctl(counter, PERF_EVENT_IOC_ENABLE, 0);
	dispatch_many(stop, COUNTED);
	ioctl(counter, PERF_EVENT_IOC_DISABLE, 0);
	if (read(counter, &count, sizeof(count)) != sizeof(count) || !count)
		return -1;
	return (double)count / COUNTED;
}

static const char *verdict_name(enum verdict_kind kind)
{
	switch (kind) {
	case VERDICT_FORWARD: return "forward";
	case VERDICT_ANSWER: return "answer";
	case VERDICT_ANSWER_FD: return "answer_fd";
	case VERDICT_REWRITE: return "rewrite";
	case VERDICT_WAIT: return "wait";
	case VERDICT_KILL: return "kill";
	}
	return "unknown";
}

static void measure(struct stop *stop, unsigned ms, int counter)
{
	struct loop_result result = loop_run(dispatch_once, stop, ms);
	double count = instructions(stop, counter);

	printf("%s %s %.1f ", stop->name, verdict_name((enum verdict_kind)result.last), result.ns);
	if (count < 0)
		printf("-\n");
	else
		printf("%.1f\n", count);
	fflush(stdout);
}

static struct timex timex; /* modes 0: reads the clock's state */
static unsigned long mask[128];

/* False where this architecture lacks the call. */
static bool stop_find(struct stop *stop)
{
	const struct arch *arch = arch_all[arch_host[0]];
	int id = row_by_name(stop->name);
	int nr = id == CALL_NONE ? -1 : arch_nr_of(arch, id);

	stop->audit = arch->audit;
	stop->nr = (uint32_t)nr;
	return nr >= 0;
}

int main(int argc, char **argv)
{
	/* The engine on which every call comes here: calls that pass are seen as well. */
	static const struct session_options options = { .mechanism = ENGINE_PTRACE };
	struct stop stops[] = {
		{ .name = "getppid" }, /* passed */
		{ .name = "ioctl", .args = { 0, 0x5401 /* TCGETS */ } }, /* passed after its rules */
		{ .name = "sched_getaffinity", .args = { 0, sizeof(mask), (uintptr_t)mask } }, /* handled, forwarded */
		{ .name = "adjtimex", .args = { (uintptr_t)&timex } }, /* handled, answered with a write */
		{ .name = "kcmp" }, /* refused by its row, and told */
	};
	unsigned long count = argc == 4 && !strcmp(argv[1], "-n") ? strtoul(argv[2], NULL, 10) : 0;
	unsigned ms = argc == 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	int counter = count ? -1 : counter_open();

	if (!count && !ms) {
		fprintf(stderr, "usage: dispatch MS | dispatch -n COUNT NAME\n");
		return 2;
	}
	self = getpid();
	session = session_new(&options);
	if (!session) {
		perror("dispatch");
		return 1;
	}
	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
		if (!stop_find(&stops[i]) || (count && strcmp(stops[i].name, argv[3])))
			continue;
		if (count)
			return dispatch_many(&stops[i], count) < 0; /* the profiler's run ends here */
		measure(&stops[i], ms, counter);
	}
	if (counter >= 0)
		close(counter);
	session_free(session);
	return count ? 2 : 0; /* -n: no such call */
}
