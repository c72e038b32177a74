"""Runs cases natively and under the supervisor in the same run, and compares: what tests/run and tests/programs.py share.

Each case runs once for each mode, every time in a fresh folder, a session and a process group of its own, and with a marker
in its environment by which its processes are found again. Natively it must end as the case says; under each engine it must
end with the same wait status and print the same. Afterwards no process of it may be alive and none may be left unreaped.
"""
import argparse
import ctypes
import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PR_SET_CHILD_SUBREAPER = 36
SKIP = 77
MARKER = "INTERPOSE_TEST"
OUTPUT_MAX = 1 << 20
libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Case:
    """One row of a table of cases.

    command   argument list; {BIN} is the folder of the guest programs, {DIR} the case's own folder
    proves    what it is good for, in a few words
    status    wait status as Popen tells it natively (-N for a signal)
    differs   natively it must fail: what it checks holds only under the supervisor, where it must end with `status`
    leaves    natively it leaves processes behind on purpose; under the supervisor none may stay
    tool      the whole command line is given, {INTERPOSE} in it; it is run once and not compared with anything
    stderr    with `tool`: a pattern that the whole of standard error must match
    absent    with `tool`: a file in the case's folder that must not exist afterwards
    out       a pattern that the output must match, natively too
    fds       extra descriptors to start with: {number: "pipe" or "file"}
    setup     shell commands run in the case's folder before
    user      run as `nobody` when we are root
    modes     only in these modes
    needs     something of the host by name; skipped where set_up() found it lacking
    unstable  patterns of output that differ from run to run natively; removed before comparing
    """
    id: str
    command: list
    proves: str
    status: int = 0
    differs: bool = False
    leaves: bool = False
    tool: bool = False
    stderr: str = ""
    absent: str = ""
    out: str = ""
    fds: dict = field(default_factory=dict)
    setup: str = ""
    user: bool = False
    modes: tuple = ()
    needs: str = ""
    unstable: tuple = ()
    timeout: int = 120


def marked(marker):
    """Process ids that carry the marker and are not zombies."""
    found = []
    want = f"{MARKER}={marker}".encode()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if want in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            pass
    return found


def describe(pid):
    """`comm(state wchan)` of each thread of a process, for a message."""
    told = []
    try:
        for tid in sorted(os.listdir(f"/proc/{pid}/task"), key=int)[:6]:
            with open(f"/proc/{pid}/task/{tid}/stat") as file:
                line = file.read()
            comm, state = line[line.index("("):line.rindex(")") + 1], line[line.rindex(")") + 2]
            try:
                with open(f"/proc/{pid}/task/{tid}/syscall") as file:
                    call = file.read().split()[0]
            except (OSError, IndexError):
                call = "?"
            told.append(f"{tid}{comm} {state} call {call}")
    except (OSError, ValueError):
        pass
    return "; ".join(told) or f"{pid} gone"


def await_end(pids, seconds):
    """Waits until these processes have ended; those that have not."""
    end = time.monotonic() + seconds
    left = []
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            continue
        try:
            if not select.select([fd], [], [], max(0, end - time.monotonic()))[0]:
                left.append(pid)
        finally:
            os.close(fd)
    return left


def kill_marked(marker, but=None):
    """Kills until none is left, except process `but`: a forking one may be ahead of us once or twice."""
    for _ in range(200):
        pids = [pid for pid in marked(marker) if pid != but]
        if not pids:
            return
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        await_end(pids, 1)


def session_zombies(session):
    """Dead processes of a session that nobody has waited for."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as file:
                rest = file.read().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if rest[0] == "Z" and int(rest[3]) == session:
            found.append(int(name))
    return found


def reap_all(seconds):
    """Takes every child that has ended; how many, and whether all children are gone within the time."""
    end, taken = time.monotonic() + seconds, 0
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return taken, True
        if pid:
            taken += 1
        elif time.monotonic() > end:
            return taken, False
        else:
            signal.sigtimedwait([signal.SIGCHLD], 0.2)


def become_nobody():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


def prepare(case, folder):
    if case.setup:
        subprocess.run(["/bin/bash", "-ec", case.setup], cwd=folder, check=True, stdin=subprocess.DEVNULL)
    if case.user and os.getuid() == 0:
        for root, dirs, files in os.walk(folder):
            for name in [root] + [os.path.join(root, n) for n in dirs + files]:
                os.chown(name, 65534, 65534, follow_symlinks=False)


def start(case, argv, folder, marker, out, err):
    """Starts the case's command with exactly the descriptors that it asks for."""
    opened = []
    for number, kind in case.fds.items():
        if kind == "pipe":
            ends = os.pipe()
            opened += ends
            source = ends[0]
        else:
            source = os.open(os.path.join(folder, "extra"), os.O_RDWR | os.O_CREAT, 0o600)
            opened.append(source)
        os.dup2(source, number)
        os.set_inheritable(number, True)
    env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": folder, "LC_ALL": "C.UTF-8", "TMPDIR": folder,
           MARKER: marker}

    def child():
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        if case.user and os.getuid() == 0:
            become_nobody()

    process = subprocess.Popen(argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                               start_new_session=True, preexec_fn=child, pass_fds=tuple(case.fds))
    for fd in opened:
        os.close(fd)
    return process


def observe(case, argv, folder, marker):
    """Runs it; a dictionary of status, out, err and problems (things left behind, a timeout)."""
    problems = []
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.monotonic()
        process = start(case, argv, folder, marker, out, err)
        if await_end([process.pid], case.timeout):
            told = " | ".join(describe(pid) for pid in marked(marker)[:12])
            problems.append(f"still running after {case.timeout} s: {told}")
            os.killpg(process.pid, signal.SIGKILL)
            kill_marked(marker)
        status = process.wait()
        took = time.monotonic() - begin
        if not case.leaves or len(argv) > len(case.command):
            left = await_end(marked(marker), 1)
            if left:
                problems.append("left behind: " + " | ".join(describe(pid) for pid in left[:6]))
        kill_marked(marker)
        if not reap_all(10)[1]:
            problems.append("children that never end")
        if not case.leaves:
            zombies = session_zombies(process.pid)
            if zombies:
                problems.append(f"zombies that nobody reaps: {zombies}")
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read(OUTPUT_MAX).decode("utf-8", "backslashreplace"))
    return {"status": status, "out": texts[0], "err": texts[1], "problems": problems, "took": took}


def worker(case, argv, scratch, marker):
    """Runs in a process of its own, the subreaper of all that the case starts."""
    os.setsid()
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    folder = tempfile.mkdtemp(prefix="case.", dir=scratch)
    try:
        prepare(case, folder)
        argv = [word.replace("{DIR}", folder) for word in argv]
        result = observe(case, argv, folder, marker)
        if case.absent and os.path.exists(os.path.join(folder, case.absent)):
            result["problems"].append("something was started")
        for name in ("out", "err"):
            result[name] = result[name].replace(folder, "{DIR}")
            for pattern in case.unstable:
                result[name] = re.sub(pattern, "~", result[name])
        return result
    finally:
        remove_tree(folder)


def remove_tree(folder):
    """Removes a folder whatever its modes, and although a compiler that was just ended may still write into it."""
    end = time.monotonic() + 5
    while os.path.exists(folder) and time.monotonic() < end:
        subprocess.run(["chmod", "-R", "u+rwx", folder], stderr=subprocess.DEVNULL)
        shutil.rmtree(folder, ignore_errors=True)


class Task:
    """One case in one mode, in a worker process that answers over a pipe."""

    def __init__(self, case, mode, argv, scratch, number):
        self.case, self.mode, self.answer = case, mode, b""
        self.marker = f"{os.getpid()}.{number}"
        self.pipe, end = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self.pipe)
                try:
                    result = worker(case, argv, scratch, self.marker)
                except BaseException:
                    result = {"status": None, "out": "", "err": "", "problems": [traceback.format_exc()], "took": 0}
                view = memoryview(json.dumps(result).encode())
                while view:
                    view = view[os.write(end, view):]
            finally:
                os._exit(0)
        os.close(end)

    def finish(self):
        os.close(self.pipe)
        os.waitpid(self.pid, 0)
        try:
            return json.loads(self.answer)
        except ValueError:
            return {"status": None, "out": "", "err": "", "problems": ["the worker died"], "took": 0}


def run_tasks(plans, jobs, scratch, done):
    """Runs (case, mode, argv) with so many at once; done(case, mode, result) for each."""
    running = {}
    plans = list(enumerate(plans))[::-1]
    try:
        while plans or running:
            while plans and len(running) < jobs:
                number, (case, mode, argv) = plans.pop()
                task = Task(case, mode, argv, scratch, number)
                running[task.pipe] = task
            for fd in select.select(list(running), [], [])[0]:
                data = os.read(fd, 1 << 16)
                if data:
                    running[fd].answer += data
                else:
                    task = running.pop(fd)
                    done(task.case, task.mode, task.finish())
    finally:
        for task in running.values():
            kill_marked(task.marker)
            task.finish()


def show_status(status):
    if status is None:
        return "none"
    return f"signal {-status}" if status < 0 else f"status {status}"


def difference(name, want, got):
    """The first line where two outputs part."""
    want, got = want.splitlines(), got.splitlines()
    for i in range(max(len(want), len(got))):
        a = want[i] if i < len(want) else "<end>"
        b = got[i] if i < len(got) else "<end>"
        if a != b:
            return f"{name} line {i + 1}: natively {a[:160]!r}, here {b[:300]!r}"
    return f"{name} differs"


def judge_alone(case, result):
    """What is wrong with one result taken by itself."""
    why = list(result["problems"])
    if result["status"] != case.status:
        why.append(f"{show_status(result['status'])}, want {show_status(case.status)}")
    if case.out and not re.search(case.out, result["out"], re.S):
        why.append(f"no /{case.out}/ in the output")
    if case.stderr and not re.fullmatch(case.stderr, result["err"], re.S):
        why.append(f"standard error {result['err'][:400]!r} is not /{case.stderr}/")
    return why


def judge_native(case, result):
    if not case.differs:
        return judge_alone(case, result)
    why = list(result["problems"])
    if result["status"] == case.status:
        why.append("ends well without the supervisor: it proves nothing")
    return why


def judge_mode(case, native, result):
    why = list(result["problems"])
    want = case.status if case.differs else native["status"]
    if result["status"] != want:
        why.append(f"{show_status(result['status'])}, want {show_status(want)}")
    if not case.differs:
        for name in ("out", "err"):
            if result[name] != native[name]:
                why.append(difference("stdout" if name == "out" else "stderr", native[name], result[name]))
    elif why:
        why.append((result["out"] + result["err"])[:300])
    return why


class Report:
    def __init__(self, verbose):
        self.verbose, self.counts = verbose, {"PASS": 0, "FAIL": 0, "SKIP": 0}

    def add(self, word, case_id, mode, took, text=""):
        self.counts[word] += 1
        if word != "PASS" or self.verbose:
            print(f"{word} {case_id:24} {mode:10} {took:6.2f}s {text}".rstrip(), flush=True)

    def end(self):
        """Prints the line that is read by others; the exit status."""
        print("{PASS} passed, {FAIL} failed, {SKIP} skipped".format(**self.counts))
        return 1 if self.counts["FAIL"] or not self.counts["PASS"] else 0


def modes_of(args):
    """{name: command prefix}; the native mode has an empty one."""
    if args.native:
        return {"native": []}
    if args.tool:
        tool = shlex.split(args.tool)
        if os.path.exists(tool[0]):
            tool[0] = os.path.abspath(tool[0])
        return {"native": [], "tool": tool}
    engines = {
        "trace": ["--engine", "trace"],
        "ptrace": ["--engine", "ptrace"],
        # Every call stops, twice: what the filter lets pass otherwise is mediated as well.
        "all": ["--engine", "trace", "--trace=all", "-o", "/dev/null"],
    }
    modes = {"native": []}
    for name in args.engine.split(","):
        modes[name] = [args.interpose, *engines[name], "-q", "--"]
    return modes


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--interpose", default=os.path.join(TOP, "build/interpose"), help="the program under test")
    parser.add_argument("--engine", default="trace,ptrace,all", help="modes to compare: trace,ptrace,all")
    parser.add_argument("--tool", default="", help="compare with this command prefix instead of the engines")
    parser.add_argument("--native", action="store_true", help="only check that the cases hold natively")
    parser.add_argument("--only", default="", help="ids, or beginnings of ids, with commas")
    parser.add_argument("--list", action="store_true", help="what there is and what it proves")
    parser.add_argument("-j", type=int, default=2, metavar="N", help="so many at once (default 2)")
    parser.add_argument("--tries", type=int, default=1, help="run each case so many times")
    parser.add_argument("--timeout", type=int, help="seconds for a case, instead of its own")
    parser.add_argument("-v", action="store_true", help="tell the ones that pass as well")
    args = parser.parse_args()
    args.interpose = os.path.abspath(args.interpose)
    if not args.native and not args.tool and not args.list and not os.access(args.interpose, os.X_OK):
        parser.error(f"no program {args.interpose}: build it, or use --native or --tool")
    return args


def chosen(case, only):
    return not only or any(case.id == word or case.id.startswith(word + ".") for word in only.split(","))


def plan(cases, modes, args, fill):
    """(case, mode, argv) of every run that the choice of cases and modes asks for."""
    plans = []
    for case in cases:
        case.timeout = args.timeout or case.timeout
        command = [fill(word) for word in case.command]
        for _ in range(args.tries):
            if case.tool:
                if not args.native and not args.tool:
                    plans.append((case, "tool", command))
                continue
            for mode, prefix in modes.items():
                if mode == "native" or not case.modes or mode in case.modes or mode == "tool":
                    plans.append((case, mode, prefix + command))
    return plans


def run(cases, args, scratch, fill, lacking):
    """Runs the table; the exit status."""
    cases = [case for case in cases if chosen(case, args.only)]
    if args.list:
        for case in cases:
            print(f"{case.id:24} {case.proves}")
        return 0
    report, native, waiting = Report(args.v), {}, {}
    for need, why in lacking.items():
        skipped = sum(case.needs == need for case in cases)
        if skipped:
            report.counts["SKIP"] += skipped
            print(f"SKIP {skipped} cases: {why}")
    cases = [case for case in cases if case.needs not in lacking]

    def done(case, mode, result):
        if case.tool:
            why = judge_alone(case, result)
            report.add("FAIL" if why else "PASS", case.id, mode, result["took"], "; ".join(why))
        elif mode == "native":
            if case.id in native:
                return
            native[case.id] = result
            if result["status"] == SKIP and case.status != SKIP:
                report.add("SKIP", case.id, mode, result["took"], "this host lacks it")
            else:
                why = judge_native(case, result)
                report.add("FAIL" if why else "PASS", case.id, mode, result["took"], "; ".join(
                    why + ([(result["out"] + result["err"])[:600]] if why else [])))
            for other, held in waiting.pop(case.id, []):
                compare(case, other, held)
        elif case.id in native:
            compare(case, mode, result)
        else:
            waiting.setdefault(case.id, []).append((mode, result))

    def compare(case, mode, result):
        if native[case.id]["status"] == SKIP and case.status != SKIP:
            report.add("SKIP", case.id, mode, result["took"], "this host lacks it")
            return
        why = judge_mode(case, native[case.id], result)
        report.add("FAIL" if why else "PASS", case.id, mode, result["took"], "; ".join(why))

    run_tasks(plan(cases, modes_of(args), args, fill), args.j, scratch, done)
    return report.end()


def clean_up_on_term():
    """SIGTERM (timeout, a CI that gives up) unwinds as an error does, so that what was started is ended."""
    signal.signal(signal.SIGTERM, lambda signo, frame: sys.exit(128 + signo))


def main(description, cases, set_up):
    """Parses the command line, makes a scratch folder and runs. set_up(scratch, args) gives a function that fills in the
    words of a command, and what the host lacks as {need: why}."""
    args = arguments(description)
    clean_up_on_term()
    scratch = tempfile.mkdtemp(prefix="interpose-test.")
    os.chmod(scratch, 0o711)
    try:
        fill, lacking = (None, {}) if args.list else set_up(scratch, args)
        return run(cases, args, scratch, fill, lacking)
    finally:
        remove_tree(scratch)
