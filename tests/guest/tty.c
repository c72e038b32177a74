/* tty.c - what the terminal tests run: tells each signal and each line that it gets. */
#include "guest.h"

#include <sys/ioctl.h>
#include <termios.h>

static volatile sig_atomic_t ints_left;

static void say(const char *text)
{
	ssize_t put = write(1, text, strlen(text));

	(void)put;
}

static void say_size(void)
{
	struct winsize size = { 0 };
	char line[64];

	ioctl(0, TIOCGWINSZ, &size);
	snprintf(line, sizeof(line), "size %dx%d\n", size.ws_col, size.ws_row);
	say(line);
}

static void on_signal(int signo)
{
	switch (signo) {
	case SIGINT:
		say("got INT\n");
		if (--ints_left == 0)
			_exit(5);
		break;
	case SIGQUIT:
		say("got QUIT\n");
		_exit(6);
	case SIGTERM:
		say("got TERM\n");
		_exit(9);
	case SIGCONT:
		say("got CONT\n");
		break;
	case SIGWINCH:
		say_size();
		break;
	case SIGTSTP:
		say("got TSTP\n");
		break;
	case SIGHUP: {
		int fd = open("hangup", O_WRONLY | O_CREAT, 0600);

		close(fd);
		_exit(8);
	}
	}
}

/* As an editor does it: tidies up, then stops by the default action, and goes on after SIGCONT. */
static void on_tstp_stop(int signo)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL }, again;

	say("got TSTP\n");
	sigaction(SIGTSTP, &dfl, &again);
	guest_block(SIG_UNBLOCK, SIGTSTP);
	kill(getpid(), SIGTSTP);
	sigaction(SIGTSTP, &again, NULL);
	say("went on\n");
}

static void ready(void)
{
	char line[32];

	snprintf(line, sizeof(line), "ready %d.\n", getpid());
	say(line);
}

static void copy_lines(void)
{
	char line[256];

	for (;;) {
		ssize_t got = read(0, line, sizeof(line) - 1);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return;
		line[got] = 0;
		dprintf(1, "line %s", line);
		if (!strcmp(line, "end\n"))
			_exit(3);
	}
}

static int test_lines(int argc, char **argv)
{
	ready();
	copy_lines();
	return 0;
}

/* handle INTS: all signals of the terminal have handlers; that many SIGINT end it, the end of the input does not. */
static int test_handle(int argc, char **argv)
{
	static const int signals[] = { SIGINT, SIGQUIT, SIGTERM, SIGCONT, SIGWINCH, SIGTSTP, SIGHUP };

	ints_left = argc > 1 ? atoi(argv[1]) : 1;
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

		sigaction(signals[i], &action, NULL);
	}
	ready();
	copy_lines();
	while (pause())
		;
	return 0;
}

static int test_editor(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_tstp_stop, .sa_flags = SA_RESTART };

	sigaction(SIGTSTP, &action, NULL);
	ready();
	copy_lines();
	return 0;
}

/* Ignores what asks it to end. */
static int test_stubborn(int argc, char **argv)
{
	guest_action(SIGTERM, SIG_IGN);
	guest_action(SIGINT, SIG_IGN);
	guest_action(SIGHUP, SIG_IGN);
	ready();
	while (pause())
		;
	return 0;
}

/* A tree of processes that fork all the time. */
static int test_tree(int argc, char **argv)
{
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			setsid();
			for (unsigned n = 0;; n++) {
				pid_t pid = fork();

				if (pid == 0)
					_exit(0);
				if (pid > 0)
					waitpid(pid, NULL, 0);
				guest_stopped_call(n);
			}
		}
	ready();
	while (pause())
		;
	return 0;
}

/* Sets a raw terminal, stops by itself, shows after SIGCONT that nobody touched what it set then. */
static int test_raw(int argc, char **argv)
{
	struct termios saved, raw, now;

	MUST(tcgetattr(0, &saved) == 0);
	raw = saved;
	cfmakeraw(&raw);
	MUST(tcsetattr(0, TCSANOW, &raw) == 0);
	say("raw\r\n");
	kill(getpid(), SIGTSTP);
	MUST(tcsetattr(0, TCSANOW, &raw) == 0 && tcgetattr(0, &now) == 0);
	CHECK(now.c_lflag == raw.c_lflag && now.c_iflag == raw.c_iflag && now.c_oflag == raw.c_oflag);
	say("raw again\r\n");
	MUST(tcsetattr(0, TCSANOW, &saved) == 0);
	return guest_failures ? 1 : 4;
}

/* Whose is the terminal? */
static int test_owner(int argc, char **argv)
{
	printf("foreground %d controlling %d\n", tcgetpgrp(0) == getpgrp(), tcgetsid(0) == getsid(0));
	return 0;
}

static const struct test tests[] = {
	{ "lines", test_lines }, { "handle", test_handle }, { "editor", test_editor }, { "stubborn", test_stubborn },
	{ "tree", test_tree }, { "raw", test_raw }, { "owner", test_owner }, { NULL, NULL }
};

int main(int argc, char **argv)
{
	return guest_main(argc, argv, tests);
}
