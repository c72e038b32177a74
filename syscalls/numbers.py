#!/usr/bin/env python3
"""Makes arch/ARCH/numbers.def from the kernel's own uapi headers.

    syscalls/numbers.py ARCH -I INCLUDE [-I INCLUDE]... > arch/ARCH/numbers.def

INCLUDE is what `make ARCH=... headers_install` of a kernel tree writes (its include directory); a distribution's
/usr/include and /usr/include/x86_64-linux-gnu do for x86_64 and i386. Every __NR_ macro that <asm/unistd.h> leaves
defined is a number; GAP(first, last) are those in between that are none. A name that rows.def lacks is an error of the
next build, so a later kernel's new calls cannot be overlooked.
"""
import argparse
import re
import subprocess
import sys

# What the compiler of that architecture predefines and <asm/unistd.h> looks at.
LP64 = ["-D__LP64__", "-D__SIZEOF_LONG__=8", "-D__CHAR_BIT__=8"]
PREDEFINED = {
    "x86_64": ["-D__x86_64__"] + LP64,
    "i386": ["-D__i386__", "-D__SIZEOF_LONG__=4", "-D__CHAR_BIT__=8"],
    "aarch64": ["-D__aarch64__"] + LP64,
    "riscv64": ["-D__riscv", "-D__riscv_xlen=64"] + LP64,
}

# No calls: the count, the start of an architecture's own block, and the names for two widths at once.
NO_CALL = re.compile(r"^(syscalls|arch_specific_syscall|Linux.*|3264_\w+|SYSCALL_\w+)$")

# i386 names whose prototype is not the one that other architectures have under that name: the name of the entry point.
ENTRY_POINT = {"i386": {name: name + "16" for name in """
    chown lchown fchown getuid geteuid getgid getegid setuid setgid setreuid setregid setresuid setresgid getresuid
    getresgid setfsuid setfsgid getgroups setgroups""".split()} | {"mmap": "old_mmap", "select": "old_select"}}


def preprocess(arch, includes, text, *options):
    command = ["cpp", "-nostdinc", "-undef", "-P", *PREDEFINED[arch], *options]
    for directory in includes:
        command += ["-I", directory]
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, check=True, text=True).stdout


def numbers(arch, includes):
    """Pairs (number, name), sorted."""
    header = "#include <asm/unistd.h>\n"
    macros = re.findall(r"^#define __NR_(\w+) ", preprocess(arch, includes, header, "-dM"), re.M)
    names = [name for name in macros if not NO_CALL.match(name)]
    # The names stay out of reach of macros by a mark in front: `select` or `unix` could be one.
    text = header + "".join(f"@{name} = __NR_{name}\n" for name in names)
    found = []
    for line in preprocess(arch, includes, text).splitlines():
        if line.startswith("@"):
            name, value = line[1:].split(" = ")
            if not re.fullmatch(r"[0-9()+ ]+", value):
                sys.exit(f"numbers.py: __NR_{name} is {value!r}, no number")
            found.append((eval(value), ENTRY_POINT.get(arch, {}).get(name, name)))
    return sorted(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arch", choices=PREDEFINED)
    parser.add_argument("-I", dest="includes", action="append", required=True, metavar="INCLUDE")
    options = parser.parse_args()
    found = numbers(options.arch, options.includes)
    if not found:
        sys.exit("numbers.py: no __NR_ macro found")
    print(f"/* numbers.def - NR(number, name) of {options.arch}, made by syscalls/numbers.py from <asm/unistd.h>. */")
    after = 0
    for number, name in found:
        if number > after:
            print(f"GAP({after}, {number - 1})")
        print(f"NR({number}, {name})")
        after = number + 1


main()
