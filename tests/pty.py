#!/usr/bin/env python3
"""Terminal tests: an interactive shell on a pseudo-terminal, driven as a person does, natively and under every engine."""
import fcntl
import os
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.dont_write_bytecode = True
import harness

TOP = harness.TOP
LIMIT = 20


class Wrong(Exception):
    pass


class Shell:
    """bash -i on a terminal of its own. `tool` is the command prefix, as text, empty natively."""

    def __init__(self, prefix, folder, guest, marker):
        self.tool = " ".join(map(shlex.quote, prefix)) + (" " if prefix else "")
        self.prefix, self.folder, self.guest, self.marker = prefix, folder, guest, marker
        self.env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "PS1": "PR> ", "TERM": "dumb", "HOME": folder,
                    "LC_ALL": "C.UTF-8", "HISTFILE": "/dev/null", harness.MARKER: marker}
        self.pid, self.fd = os.forkpty()
        if self.pid == 0:
            try:
                for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
                    signal.signal(ignored, signal.SIG_DFL)
                os.chdir(folder)
                os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"], self.env)
            finally:
                os._exit(127)
        self.seen = ""
        self.resize(300, 50)
        self.expect("PR> ")

    def resize(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def expect(self, pattern, seconds=LIMIT):
        """Reads until the pattern comes; the match. What comes after it is kept."""
        end = time.monotonic() + seconds
        while True:
            match = re.search(pattern, self.seen)
            if match:
                self.before, self.seen = self.seen[:match.start()], self.seen[match.end():]
                return match
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise Wrong(f"no /{pattern}/ in {self.seen[-300:]!r}")
            try:
                self.seen += os.read(self.fd, 65536).decode("utf-8", "replace").replace("\r", "")
            except OSError:
                raise Wrong(f"the terminal ended before /{pattern}/: {self.seen[-300:]!r}") from None

    def send(self, text):
        os.write(self.fd, text.encode())

    def line(self, text):
        """A command line. Its echo is swallowed."""
        self.send(text + "\n")
        self.expect(re.escape(text[-30:]) + r"\n")

    def run(self, test, after=""):
        """The tool with a test of the guest program, as a command line."""
        self.line(f"{self.tool}{self.guest} {test}{after}")

    def ready(self):
        """The guest's own pid."""
        return int(self.expect(r"ready (\d+)\.\n").group(1))

    def prompt(self):
        self.expect("PR> ")

    def status(self, want):
        self.send("echo RC=$?=\n")
        got = int(self.expect(r"RC=(\d+)=\n").group(1))
        self.prompt()
        if got != want:
            raise Wrong(f"status {got}, want {want}")

    def never(self, pattern, text):
        if re.search(pattern, text):
            raise Wrong(f"/{pattern}/ came: {text[-300:]!r}")

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def state(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def stopped(pid):
    """Waits until the process is stopped."""
    end = time.monotonic() + LIMIT
    while state(pid) not in ("T", "t"):
        if time.monotonic() > end:
            raise Wrong(f"not stopped, in state {state(pid)!r}")
        time.sleep(0.002)


def none_left(shell, but=()):
    """No process of this test is alive but the shell."""
    pids = [pid for pid in harness.marked(shell.marker) if pid != shell.pid and pid not in but]
    left = harness.await_end(pids, 5)
    if left:
        raise Wrong("left behind: " + "; ".join(harness.describe(pid) for pid in left))


def await_stopped_job(s):
    """Asks the shell for its jobs until one has stopped."""
    end = time.monotonic() + LIMIT
    while True:
        s.send("jobs\n"); s.expect("jobs\n"); s.prompt()
        if "Stopped" in s.before:
            return
        if time.monotonic() > end:
            raise Wrong("a job that reads the terminal in the background is not stopped")


# --- signals of the keyboard -----------------------------------------------------------------------------------------

def ctrl_c(s):
    s.run("lines"); s.ready(); s.send("\x03"); s.prompt(); s.status(130)


def ctrl_c_handled(s):
    s.run("handle 2"); s.ready()
    s.send("\x03"); s.expect("got INT\n"); s.send("still\n"); s.expect("line still\n")
    s.send("\x03"); s.expect("got INT\n"); s.prompt(); s.never("got INT", s.before); s.status(5)


def ctrl_backslash(s):
    s.run("lines"); s.ready(); s.send("\x1c"); s.prompt(); s.status(131)


def ctrl_backslash_handled(s):
    s.run("handle"); s.ready(); s.send("\x1c"); s.expect("got QUIT\n"); s.prompt(); s.status(6)


def ctrl_d(s):
    s.run("lines"); s.ready(); s.send("a\n"); s.expect("line a\n"); s.send("\x04"); s.prompt(); s.status(0)


# --- job control ------------------------------------------------------------------------------------------------------

def ctrl_z(s):
    """The default action, three times over; the guest has stopped when the shell says so."""
    s.run("lines"); pid = s.ready()
    for n in range(3):
        s.send("\x1a"); s.expect("Stopped"); s.prompt()
        if state(pid) not in ("T", "t"):
            raise Wrong(f"the shell says Stopped and the guest is in state {state(pid)!r}")
        s.status(148)
        s.line("fg"); s.send(f"word{n}\n"); s.expect(f"line word{n}\n")
    s.send("end\n"); s.prompt(); s.status(3)


def ctrl_z_editor(s):
    """The guest's own handler runs first, and only its own stop stops the tool."""
    s.run("editor"); pid = s.ready()
    for n in range(3):
        s.send("\x1a"); s.expect("got TSTP\n"); s.expect("Stopped"); s.never("got TSTP", s.before); s.prompt()
        if n == 0 and state(pid) not in ("T", "t"):
            raise Wrong(f"the shell says Stopped and the guest is in state {state(pid)!r}")
        s.line("fg"); s.expect("went on\n"); s.send(f"word{n}\n"); s.expect(f"line word{n}\n")
    s.send("end\n"); s.prompt(); s.status(3)


def ctrl_z_order(s):
    s.run("editor"); s.ready(); s.send("\x1a")
    s.expect("got TSTP\n"); s.never("Stopped", s.before)
    s.expect("Stopped"); s.never("went on", s.before); s.prompt()
    s.line("fg"); s.expect("went on\n"); s.send("end\n"); s.prompt(); s.status(3)


def ctrl_z_handled(s):
    """A guest that handles Ctrl-Z and goes on: nothing stops."""
    s.run("handle"); s.ready()
    for n in range(3):
        s.send("\x1a"); s.expect("got TSTP\n")
        s.send(f"word{n}\n"); s.expect(f"line word{n}\n"); s.never("Stopped", s.before)
    s.send("end\n"); s.prompt(); s.never("Stopped", s.before); s.status(3)


def fg_cont(s):
    """SIGCONT reaches the guest's handler after fg, and after bg."""
    s.run("handle"); pid = s.ready()
    for n in range(2):
        os.kill(pid, signal.SIGSTOP); s.expect("Stopped"); s.prompt()
        s.line("fg"); s.expect("got CONT\n"); s.send(f"word{n}\n"); s.expect(f"line word{n}\n")
    os.kill(pid, signal.SIGSTOP); s.expect("Stopped"); s.prompt()
    s.send("bg\n"); s.expect("got CONT\n"); await_stopped_job(s) # it reads the terminal
    s.line("fg"); s.expect("got CONT\n"); s.send("word9\n"); s.expect("line word9\n")
    s.send("\x03"); s.expect("got INT\n"); s.prompt(); s.status(5)


def background(s):
    """A job in the background ends, and the shell is told its status."""
    s.line(s.tool + "sh -c 'exit 3' &")
    s.prompt(); s.line("wait $!"); s.status(3)


def background_reads(s):
    """Reading the terminal in the background stops the job; fg lets it read."""
    s.run("lines", " &"); s.ready(); s.send("\n"); s.prompt(); await_stopped_job(s)
    s.line("fg"); s.send("hello\n"); s.expect("line hello\n"); s.send("end\n"); s.prompt(); s.status(3)


def stopped_killed(s):
    """A stopped job can be killed."""
    s.run("lines"); s.ready(); s.send("\x1a"); s.expect("Stopped"); s.prompt()
    s.line("kill -9 %1"); s.prompt(); s.line("wait %1"); s.prompt(); none_left(s)


def stopped_term(s):
    s.run("lines"); s.ready(); s.send("\x1a"); s.expect("Stopped"); s.prompt()
    s.line("kill %1; fg"); s.prompt(); s.status(143); none_left(s)


def shell_inside(s):
    """A shell in the tool with its own job control."""
    s.line(s.tool + "bash --norc --noprofile --noediting -i"); s.prompt()
    s.line("PS1='I''N> '"); s.expect("IN> ")
    for _ in range(2):
        s.line(f"{s.guest} lines"); pid = s.ready(); s.send("\x1a"); s.expect("Stopped"); s.expect("IN> ")
        if state(pid) not in ("T", "t"):
            raise Wrong(f"Stopped, and in state {state(pid)!r}")
        # in the background it reads from the terminal and is stopped for that; a `fg` before it is would race with it
        s.line("bg"); s.expect("IN> "); stopped(pid)
        s.line("fg"); s.send("hello\n"); s.expect("line hello\n"); s.send("\x03"); s.expect("IN> ")
    s.line(f"{s.guest} owner | cat"); s.expect("foreground 1 controlling 1\n"); s.expect("IN> ")
    s.line("exit 7"); s.prompt(); s.status(7)


# --- the terminal -------------------------------------------------------------------------------------------------------

def owner(s):
    s.run("owner"); s.expect("foreground 1 controlling 1\n"); s.prompt(); s.status(0)


def resize(s):
    s.run("handle"); s.ready()
    for n in range(1, 6):
        s.resize(100 + n, 30 + n); s.expect(f"size {100 + n}x{30 + n}\n")
    s.send("end\n"); s.prompt(); s.status(3)


def modes(s):
    """The terminal is left as it was found: after an end, a stop, a death."""
    def now():
        s.send("stty -g\n")
        got = s.expect(r"\n([0-9a-f:]+)\n").group(1); s.prompt()
        return got
    before = now()
    s.line(s.tool + "true"); s.prompt()
    s.line(f"{s.tool}{s.guest} raw"); s.expect("raw\n"); s.expect("Stopped"); s.prompt()
    if now() != before:
        raise Wrong("other modes after a stop")
    s.line("fg"); s.expect("raw again\n"); s.prompt(); s.status(4)
    s.line(s.tool + "sh -c 'stty raw; kill -9 $$'"); s.prompt()
    if now() != before:
        raise Wrong("other modes after a death")


def hangup(s):
    """The terminal goes away: SIGHUP reaches the guest, and nothing stays."""
    s.run("handle"); s.ready()
    os.kill(s.pid, 0)
    os.close(s.fd)
    s.fd = os.open("/dev/null", os.O_RDWR)
    none_left(s)
    if not os.path.exists(os.path.join(s.folder, "hangup")):
        raise Wrong("the guest's handler of SIGHUP did not run")


# --- pipelines ----------------------------------------------------------------------------------------------------------

def pipelines(s):
    t = s.tool
    s.line(f"echo hello | {t}cat"); s.expect("hello\n"); s.prompt(); s.status(0)
    s.line(f"seq 1 50000 | {t}cat | tail -n 1"); s.expect("50000\n"); s.prompt(); s.status(0)
    s.line(f"{t}sh -c 'seq 1 50000 | sort -n | tail -n 1'"); s.expect("50000\n"); s.prompt(); s.status(0)
    s.line(f"{t}seq 1 1000000 | head -n 1; echo ${{PIPESTATUS[0]}}"); s.expect("1\n141\n"); s.prompt()
    s.line(f"x=$({t}echo inside); echo got-$x"); s.expect("got-inside\n"); s.prompt()
    s.line(f"{t}cat <(echo substituted)"); s.expect("substituted\n"); s.prompt(); s.status(0)
    s.line(f"{t}sh -c 'exit 3' || echo was-$?"); s.expect("was-3\n"); s.prompt()
    s.line(f"{t}cat < /dev/null"); s.prompt(); s.status(0)
    s.line(f"{t}sh -c 'kill -SEGV $$' 2> /dev/null"); s.prompt(); s.status(139)
    s.line(f"{t}cat | {t}cat"); s.send("both\n"); s.expect("both\nboth\n"); s.send("\x03"); s.prompt(); s.status(130)


# --- signals to the tool ------------------------------------------------------------------------------------------------

def start(s, test, *args):
    """The tool in a session of its own, with the guest's first line read; the process and the guest's pid."""
    process = subprocess.Popen([*s.prefix, s.guest, test, *args], cwd=s.folder, env=s.env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, start_new_session=True)
    said = process.stdout.readline()
    match = re.fullmatch(rb"ready (\d+)\.\n", said)
    if not match:
        process.kill(); process.wait(); process.stdout.close()
        raise Wrong(f"the guest says {said!r}")
    return process, int(match.group(1))


def ended(process, want):
    if harness.await_end([process.pid], LIMIT):
        process.kill(); process.wait()
        raise Wrong("does not end")
    status = process.wait(); process.stdout.close()
    if status not in want:
        raise Wrong(f"ended with {status}, want {want}")


def term_default(s):
    process, _ = start(s, "tree"); process.terminate(); ended(process, (-15, 143))
    if s.prefix:
        none_left(s)


def term_handled(s):
    """The stdin is empty there, so it waits by another test: the guest's own status is the tool's."""
    process = subprocess.Popen([*s.prefix, s.guest, "handle"], cwd=s.folder, env=s.env, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, start_new_session=True)
    process.stdout.readline(); process.terminate(); ended(process, (9,)); process.stdin.close(); none_left(s)


def term_ignored(s):
    """A guest that ignores SIGTERM ends all the same: natively it goes on."""
    process, _ = start(s, "stubborn"); process.terminate()
    if s.prefix:
        ended(process, (-15, -9, 143, 137)); none_left(s)
    else:
        process.kill(); ended(process, (-9,))


def kill_tool(s):
    """SIGKILL to the supervisor leaves no guest alive, however they fork: 20 tries."""
    for n in range(20):
        process, _ = start(s, "tree")
        for _ in range(n * 40):
            os.getppid()
        process.kill(); ended(process, (-9,))
        if s.prefix:
            none_left(s)
        else:
            harness.kill_marked(s.marker, but=s.pid)


def stop_tool_guest(s):
    """SIGSTOP to the guest stops the tool as a shell sees it, SIGCONT to the tool lets both go on."""
    process, pid = start(s, "stubborn")
    for _ in range(5):
        os.kill(pid, signal.SIGSTOP)
        got = os.waitpid(process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(got[1]):
            raise Wrong(f"wait status {got[1]:#x}")
        os.kill(process.pid, signal.SIGCONT)
        got = os.waitpid(process.pid, os.WCONTINUED)
        if not os.WIFCONTINUED(got[1]):
            raise Wrong(f"wait status {got[1]:#x}")
        end = time.monotonic() + LIMIT
        while state(pid) in ("T", "t"):
            if time.monotonic() > end:
                raise Wrong("the guest stays stopped")
    process.kill(); ended(process, (-9,)); none_left(s)


TESTS = (ctrl_c, ctrl_c_handled, ctrl_backslash, ctrl_backslash_handled, ctrl_d, ctrl_z, ctrl_z_editor, ctrl_z_order,
         ctrl_z_handled, fg_cont, background, background_reads, stopped_killed, stopped_term, shell_inside, owner, resize,
         modes, hangup, pipelines, term_default, term_handled, term_ignored, kill_tool, stop_tool_guest)


def run_one(test, prefix, scratch, guest, number):
    """What went wrong, or nothing; and how long it took."""
    folder = tempfile.mkdtemp(prefix="case.", dir=scratch)
    begin, shell, why = time.monotonic(), None, ""
    marker = f"{os.getpid()}.{number}"
    if prefix and prefix[-1] == "--":  # what a guest leaves there is looked at
        prefix = [*prefix[:-1], "--rw", folder, "--"]
    try:
        shell = Shell(prefix, folder, guest, marker)
        test(shell)
    except Wrong as wrong:
        why = str(wrong)
    finally:
        if shell:
            shell.end()
        harness.kill_marked(marker)
        harness.remove_tree(folder)
    return why, time.monotonic() - begin


def main():
    args = harness.arguments(__doc__)
    if args.list:
        for test in TESTS:
            print(f"{test.__name__:24} {(test.__doc__ or '').strip()}")
        return 0
    harness.clean_up_on_term()
    report, number = harness.Report(args.v), 0
    scratch = tempfile.mkdtemp(prefix="interpose-pty.")
    os.chmod(scratch, 0o711)
    try:
        guest = os.path.join(scratch, "tty")
        subprocess.run(["gcc", "-std=gnu11", "-O1", "-g", os.path.join(TOP, "tests/guest/tty.c"), "-o", guest, "-pthread"],
                       check=True)
        for mode, prefix in harness.modes_of(args).items():
            for test in TESTS * args.tries:
                if args.only and test.__name__ not in args.only.split(","):
                    continue
                number += 1
                why, took = run_one(test, prefix, scratch, guest, number)
                report.add("FAIL" if why else "PASS", test.__name__, mode, took, why)
    finally:
        harness.remove_tree(scratch)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
