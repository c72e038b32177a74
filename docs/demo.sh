#!/bin/sh
# demo.sh INTERPOSE PYTHON - a real program under interpose, and what its calls look like.
set -eu
interpose=$1
here=$(dirname "$0")
# A wrapper such as pyenv's would be most of what is shown.
python=$("$2" -c 'import sys; print(sys.executable)')

show() {
	printf '\n$ %s\n' "$*"
	"$@" 2>&1
}

show "$interpose" -v -- "$python" "$here/demo.py"
show "$interpose" --trace=%network,exit_group -- "$python" -c 'import socket; socket.socket().connect_ex(("127.0.0.1", 9))'
show "$interpose" -c -- ls "$here"
