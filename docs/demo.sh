#!/bin/sh
# demo.sh INTERPOSE PYTHON - a real program under interpose, and what its calls look like.
set -eu
interpose=$1 python=$2
here=$(dirname "$0")

show() {
	printf '\n$ %s\n' "$*"
	"$@"
}

show "$interpose" -v -- "$python" "$here/demo.py"
show "$interpose" --trace=execve,socket,connect,exit_group -- "$python" -c 'import socket; socket.socket().connect_ex(("127.0.0.1", 9))'
show "$interpose" -c -- ls /
