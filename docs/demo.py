"""What `make demo` runs under interpose: threads, other programs, an event loop, and two calls that are refused."""
import asyncio
import ctypes
import os
import subprocess
import sys
import threading


def threads():
    total, lock = 0, threading.Lock()

    def work(numbers):
        nonlocal total
        for n in numbers:
            with lock:
                total += n

    workers = [threading.Thread(target=work, args=(range(i, 1000, 4),)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print("four threads counted to", total)


def programs():
    sorted_ = subprocess.run(["sort", "-n"], input="3\n1\n2\n", capture_output=True, text=True, check=True)
    print("sort says", sorted_.stdout.split())
    died = subprocess.run([sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"])
    print("a child that was ended by SIGTERM has status", died.returncode)


async def answer(reader, writer):
    writer.write((await reader.readline()).upper())
    await writer.drain()
    writer.close()


async def loop():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"hello from a coroutine\n")
        print("the server answers", (await reader.readline()).decode().strip())
        writer.close()
        await writer.wait_closed()


def refused():
    """Two calls that harm nothing where they are let through: the mount point does not exist."""
    libc = ctypes.CDLL(None, use_errno=True)
    for name, *args in (("ptrace", 0, 0, 0, 0), ("mount", b"none", b"/dev/null/none", b"tmpfs", 0, None)):
        result = getattr(libc, name)(*args)
        print(f"{name}: {'let through' if result == 0 else os.strerror(ctypes.get_errno())}", flush=True)


threads()
programs()
asyncio.run(loop())
refused()
