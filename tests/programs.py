#!/usr/bin/env python3
"""Real programs: interpreters, compilers, version control and shells give the same output and status under every engine."""
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness
from harness import Case

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable

PY_THREADS = """
import threading, queue
q, done = queue.Queue(), []
lock = threading.Lock()
def work():
    while (n := q.get()) is not None:
        with lock: done.append(n * n)
ts = [threading.Thread(target=work) for _ in range(16)]
for t in ts: t.start()
for n in range(2000): q.put(n)
for t in ts: q.put(None)
for t in ts: t.join()
print(sum(done), len(done))
e = threading.Event(); t = threading.Timer(0.05, e.set); t.start(); print(e.wait(20)); t.join()
"""
PY_ASYNCIO = """
import asyncio
async def serve(reader, writer):
    while line := await reader.readline():
        writer.write(line.upper()); await writer.drain()
    writer.close()
async def client(path, n):
    reader, writer = await asyncio.open_unix_connection(path)
    got = []
    for i in range(20):
        writer.write(f'{n}-{i}\\n'.encode()); got.append(await reader.readline())
    writer.close(); return len(got)
async def main():
    server = await asyncio.start_unix_server(serve, 'socket')
    print(sum(await asyncio.gather(*[client('socket', n) for n in range(20)])))
    server.close()
    p = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-1)
    print(await p.communicate(b'through cat'), p.returncode)
    ps = [await asyncio.create_subprocess_shell(f'exit {n}') for n in range(20)]
    print([await p.wait() for p in ps])
    try: await asyncio.wait_for(asyncio.sleep(100), 0.05)
    except asyncio.TimeoutError: print('timeout')
    print(await asyncio.to_thread(lambda: 'thread'))
asyncio.run(main())
"""
PY_POOL = """
import multiprocessing as mp, os, sys
def work(n): return n * n
def talk(conn):
    while (got := conn.recv()) is not None: conn.send(got + 1)
if __name__ == '__main__':
    mp.set_start_method(sys.argv[1])
    with mp.Pool(4) as pool: print(sum(pool.map(work, range(500))))
    a, b = mp.Pipe(); p = mp.Process(target=talk, args=(b,)); p.start()
    for i in range(50): a.send(i); assert a.recv() == i + 1
    a.send(None); p.join(); print(p.exitcode)
    with mp.Manager() as m:
        d = m.dict(); d['x'] = 5; print(dict(d))
    p = mp.Process(target=os.abort); p.start(); p.join(); print(p.exitcode)
"""
PY_SUBPROCESS = """
import subprocess as sp, signal, sys
print([sp.run(['sh', '-c', f'exit {n}']).returncode for n in range(40)])
print(sp.run(['sh', '-c', 'kill -9 $$']).returncode, sp.run(['sh', '-c', 'kill -SEGV $$']).returncode)
print(sp.run(['sort'], input='b\\na\\n', text=True, capture_output=True).stdout.split())
try: sp.run(['tail', '-f', '/dev/null'], timeout=0.1)
except sp.TimeoutExpired: print('timeout')
try: sp.run(['/nonexistent'])
except FileNotFoundError as e: print(e)
a = sp.Popen(['seq', '20000'], stdout=sp.PIPE); b = sp.Popen(['wc', '-l'], stdin=a.stdout, stdout=sp.PIPE)
a.stdout.close(); print(b.communicate()[0].strip(), a.wait(), b.returncode)
p = sp.Popen(['cat'], stdin=sp.PIPE, start_new_session=True); p.send_signal(signal.SIGTERM); print(p.wait()); p.stdin.close()
"""
PY_SIGNALS = """
import signal, os, time, threading
seen = []
for s in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGCHLD): signal.signal(s, lambda n, f: seen.append(n))
os.kill(os.getpid(), signal.SIGUSR1); signal.raise_signal(signal.SIGUSR2)
signal.setitimer(signal.ITIMER_REAL, 0.02); signal.pause()
if os.fork() == 0: os._exit(4)
while signal.SIGCHLD not in seen: signal.sigtimedwait([signal.SIGRTMIN], 0.01)
print(sorted(set(int(s) for s in seen)), os.waitstatus_to_exitcode(os.wait()[1]))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1]); os.kill(os.getpid(), signal.SIGUSR1)
print(signal.sigpending(), signal.sigwait([signal.SIGUSR1]))
try:
    signal.signal(signal.SIGINT, signal.default_int_handler); os.kill(os.getpid(), signal.SIGINT); time.monotonic()
except KeyboardInterrupt: print('interrupted')
os.kill(os.getpid(), signal.SIGTERM)
"""
NODE = """
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const cp = require('child_process');
if (!isMainThread) { let s = 0; for (let i = 0; i < 1e5; i++) s += i % workerData; parentPort.postMessage(s); }
else (async () => {
  const one = n => new Promise((ok, no) => {
    const w = new Worker(__filename, { workerData: n }); w.on('message', ok); w.on('error', no); });
  console.log((await Promise.all([3, 5, 7, 11].map(one))).join());
  console.log(cp.execSync('echo from a shell').toString().trim(), cp.spawnSync('sh', ['-c', 'exit 6']).status);
  const c = cp.spawn('cat'); c.stdin.end('piped'); for await (const d of c.stdout) console.log(String(d));
  const fs = require('fs'); await fs.promises.writeFile('f', 'x'.repeat(1e6));
  console.log((await fs.promises.stat('f')).size);
  await Promise.all([...Array(50)].map((_, i) => fs.promises.writeFile('f' + i, String(i))));
  console.log(fs.readdirSync('.').length);
  process.exitCode = 3;
})();
"""
GO = """
package main
import ("fmt"; "os"; "os/exec"; "os/signal"; "sync"; "syscall"; "runtime")
func main() {
	var wg sync.WaitGroup; var mu sync.Mutex; sum := 0
	for i := 0; i < 200; i++ { wg.Add(1)
		go func(n int) { defer wg.Done(); runtime.Gosched(); mu.Lock(); sum += n; mu.Unlock() }(i) }
	wg.Wait(); fmt.Println(sum)
	for i := 0; i < 20; i++ { wg.Add(1); go func() { defer wg.Done()
		if out, err := exec.Command("echo", "x").Output(); err != nil || string(out) != "x\\n" { fmt.Println("bad", err) } }() }
	wg.Wait()
	c := make(chan os.Signal, 1); signal.Notify(c, syscall.SIGUSR1)
	syscall.Kill(os.Getpid(), syscall.SIGUSR1); fmt.Println(<-c)
	os.WriteFile("f", []byte("hello"), 0644); b, _ := os.ReadFile("f"); fmt.Println(string(b)); os.Exit(5)
}
"""
JAVA = """
import java.util.*; import java.util.concurrent.*; import java.nio.file.*;
public class Main { public static void main(String[] a) throws Exception {
  ExecutorService e = Executors.newFixedThreadPool(8); List<Future<Integer>> l = new ArrayList<>();
  for (int i = 0; i < 200; i++) { int n = i; l.add(e.submit(() -> n * n)); }
  int s = 0; for (Future<Integer> f : l) s += f.get(); e.shutdown(); System.out.println(s);
  Process p = new ProcessBuilder("sh", "-c", "cat; exit 4").start();
  p.getOutputStream().write(65); p.getOutputStream().close();
  System.out.println(p.getInputStream().read() + " " + p.waitFor());
  Files.writeString(Path.of("f"), "hello"); System.out.println(Files.readString(Path.of("f")));
  Object o = null; try { o.hashCode(); } catch (NullPointerException x) { System.out.println("null"); } System.exit(7); } }
"""
PERL = """
use strict; my %r; pipe(my $in, my $out) or die;
for my $n (1 .. 30) { my $p = fork(); if (!$p) { syswrite($out, "$n\\n"); exit $n } $r{$p} = $n }
for (1 .. 30) { my $p = wait(); die unless ($? >> 8) == delete $r{$p} }
close $out; my $s = 0; $s += $_ while <$in>; print "$s\\n";
my $got = 0; local $SIG{ALRM} = sub { $got++ }; alarm 1; select(undef, undef, undef, 20); print "alarm $got\\n";
print `echo backticks`; system('exit 9'); print $? >> 8, "\\n"; open(my $f, '-|', 'seq', '5') or die; print <$f>; exit 2;
"""
GIT = """
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a
export GIT_COMMITTER_EMAIL=a@b GIT_AUTHOR_DATE='2020-01-01 00:00 +0000' GIT_COMMITTER_DATE='2020-01-01 00:00 +0000'
git init -q -b main one; cd one
for n in 1 2 3 4 5; do seq $n 200 > file$n; git add .; git commit -q -m "number $n"; done
git checkout -q -b side; echo x > other; git add .; git commit -q -m other; git checkout -q main
git merge -q --no-ff -m merged side
git gc -q; git fsck --strict; cd ..; git clone -q one two; cd two; git log --format='%H %s'
git status --short; git rev-parse HEAD
seq 5 > file1; git diff --stat | cat; git stash -q; git stash list; ls
"""
MAKE = """
all: prog
	./prog
prog: $(patsubst %,f%.o,1 2 3 4 5 6 7 8) main.o
	$(CC) -o $@ $^
%.o: %.c
	$(CC) -O1 -c $<
"""
MAKE_SETUP = "\n".join(
    [f"echo 'int f{n}(int x) {{ return x + {n}; }}' > f{n}.c" for n in range(1, 9)] +
    ["printf '#include <stdio.h>\\nint f1(int), f8(int);\\n'"
     "'int main(void) { printf(\"%d\\\\n\", f1(1) + f8(2)); return 0; }\\n'"
     " > main.c"])
PIPELINE = """
set -o pipefail; seq 1 3000 | grep 7 | sort -rn | awk '{ s += $1 } END { print s }'; for i in $(seq 50); do :; done
x=$(for i in 1 2 3; do (echo $i; exit $i) & done; wait) ; echo $x | tr ' ' '\\n' | sort | tr '\\n' ' '; echo
diff <(seq 5) <(seq 6); echo $?; yes | head -n 1000 | wc -l; echo ${PIPESTATUS[@]}; coproc cat; echo hi >&${COPROC[1]}
read -r y <&${COPROC[0]}; echo $y; eval "exec ${COPROC[1]}>&-"; wait
trap 'echo bye' EXIT; trap 'echo usr1' USR1; kill -USR1 $$
ulimit -n > /dev/null; (ulimit -n 64; ulimit -n); timeout 0.1 tail -f /dev/null; echo $?; exit 11
"""
DASH = """
i=0; while [ $i -lt 200 ]; do (exit $((i % 256))); [ $? -eq $((i % 256)) ] || echo bad; i=$((i + 1)); done
echo one | { read x; echo got $x; }; cat <<EOF
here $i
EOF
trap 'echo term; exit 8' TERM; kill -TERM $$; echo not here
"""
TAR = """
mkdir -p d/e; seq 1 20000 > d/e/f; ln -s f d/e/l; ln d/e/f d/e/h; mkfifo d/p; chmod 4750 d/e/f
touch -d '2001-02-03 04:05:06' d/e/f
tar cf a.tar --sort=name d; mkdir x; tar xf a.tar -C x; tar tvf a.tar | awk '{ print $1, $3, $NF }' | sort; cmp d/e/f x/d/e/f
stat -c '%a %h %s %Y' x/d/e/f; tar czf - d | tar tzf - | wc -l; find x | sort
xz -T2 < a.tar | xz -d | cmp - a.tar; rm -r x d
"""


def script(name, text):
    """A set-up line that writes a file, whatever is in it."""
    return f"cat > {name} <<'END_OF_FILE'\n{text}\nEND_OF_FILE\n"


def python(name, text, proves, **more):
    """A case of a Python program; what follows a dash in its name is its argument."""
    return Case("python." + name, [PYTHON, "prog.py", *name.split("-")[1:]], proves, setup=script("prog.py", text), **more)


CASES = [
    python("threads", PY_THREADS, "python threads and queues"),
    python("asyncio", PY_ASYNCIO, "asyncio: sockets, subprocesses, time-outs"),
    python("pool-fork", PY_POOL, "multiprocessing by fork"),
    python("pool-spawn", PY_POOL, "multiprocessing by spawn"),
    python("pool-forkserver", PY_POOL, "multiprocessing by forkserver"),
    python("subprocess", PY_SUBPROCESS, "subprocess"),
    python("signals", PY_SIGNALS, "signals, dying of SIGTERM", status=-15),
    Case("python.traceback", [PYTHON, "-c", "import os; os.abort()"], "abort", status=-6),
    Case("node.workers", ["node", "prog.js"], "node with worker threads", status=3,
         setup=script("prog.js", NODE), needs="node"),
    Case("git.life", ["/bin/bash", "-e", "prog"], "git: commit, merge, gc, clone", setup=script("prog", GIT), needs="git"),
    Case("make.parallel", ["make", "-j2", "-s"], "make -j2 with its job server, gcc",
         setup=script("Makefile", MAKE) + MAKE_SETUP, needs="make"),
    Case("gcc.error", ["gcc", "-c", "bad.c"], "a compiler's error", status=1,
         setup="echo 'int main(void) { return x; }' > bad.c"),
    Case("perl.life", ["perl", "prog.pl"], "perl: fork, wait, alarm, pipes", status=2,
         setup=script("prog.pl", PERL), needs="perl"),
    Case("tar.life", ["/bin/bash", "-e", "prog"], "tar, xz, find", setup=script("prog", TAR)),
    Case("bash.pipelines", ["/bin/bash", "prog"], "bash: pipelines, coprocesses, traps", status=11,
         setup=script("prog", PIPELINE)),
    Case("dash.life", ["dash", "prog"], "dash: subshells and traps", status=8, setup=script("prog", DASH), needs="dash"),
    Case("go.program", ["{SHARED}/goprog"], "a Go program", status=5, needs="go"),
    Case("java.program", ["java", "-Xshare:auto", "-cp", "{SHARED}", "Main"], "java: threads, processes, its own SIGSEGV",
         status=7, needs="java"),
    Case("static.program", ["{SHARED}/static"], "a static program", status=6),
    Case("compat.program", ["{SHARED}/compat"], "a 32-bit program", status=6, needs="32-bit"),
    Case("busybox.life", ["busybox", "sh", "-c", "seq 100 | busybox sort -n | busybox tail -n 1; exit 4"], "busybox",
         status=4, needs="busybox"),
    Case("coreutils.env", ["env", "-i", "A=b", "sh", "-c", "echo $A; nice -n 0 nohup true; exit 3"], "env, nice, nohup",
         status=3),
    Case("find.exec", ["bash", "-c", "find /usr/share/doc -maxdepth 1 -name 'ba*' -exec sh -c 'echo $1' sh {} ';' | sort"],
         "find -exec"),
    Case("xargs.parallel", ["sh", "-c", "seq 200 | xargs -P 4 -n 1 sh -c 'exit 0'; seq 10 | xargs -n 1 sh -c 'exit 255'"],
         "xargs -P", status=124),
    Case("script.wall", ["timeout", "1", "sh", "-c", "exec tail -f /dev/null"], "timeout", status=124),
]

PLAIN_C = """
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static void *run(void *arg) { return arg; }
int main(void)
{
	pthread_t t; int status;
	for (int i = 0; i < 100; i++) { pthread_create(&t, 0, run, 0); pthread_join(t, 0); }
	if (fork() == 0) _exit(3);
	wait(&status); printf("%d\\n", WEXITSTATUS(status)); fflush(stdout);
	if (fork() == 0) { execl("/bin/echo", "echo", "hello", (char *)0); _exit(1); }
	wait(&status); return 6;
}
"""


def built(command, folder, **more):
    return subprocess.run(command, cwd=folder, capture_output=True, **more).returncode == 0


def set_up(scratch, args):
    """Builds the compiled programs once; what the host has no compiler for is lacking."""
    shared, lacking = os.path.join(scratch, "shared"), {}
    os.mkdir(shared)
    for name, text in (("goprog.go", GO), ("Main.java", JAVA), ("plain.c", PLAIN_C)):
        with open(os.path.join(shared, name), "w") as file:
            file.write(text)
    for need in ("node", "git", "make", "perl", "dash", "busybox"):
        if not shutil.which(need):
            lacking[need] = f"no {need} here"
    env = {**os.environ, "GOCACHE": scratch + "/gocache", "GOFLAGS": "", "GO111MODULE": "off", "HOME": scratch}
    if not shutil.which("go") or not built(["go", "build", "-o", "goprog", "goprog.go"], shared, env=env):
        lacking["go"] = "no Go here"
    if not shutil.which("java") or not shutil.which("javac") or not built(["javac", "Main.java"], shared):
        lacking["java"] = "no Java here"
    subprocess.run(["gcc", "-O1", "-static", "-pthread", "plain.c", "-o", "static"], cwd=shared, check=True)
    if not built(["gcc", "-m32", "-O1", "-pthread", "plain.c", "-o", "compat"], shared):
        lacking["32-bit"] = "gcc builds no 32-bit program here"
    elif not runs(os.path.join(shared, "compat")):
        lacking["32-bit"] = "this host runs no 32-bit program"
    return lambda word: word.replace("{SHARED}", shared), lacking


def runs(program):
    try:
        return subprocess.run([program], capture_output=True).returncode == 6
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(harness.main(__doc__.splitlines()[0], CASES, set_up))
