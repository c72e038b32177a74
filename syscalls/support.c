/* support.c - the program that writes docs/SYSCALLS.md to standard output. */
#include "syscalls/support.h"

int main(void)
{
	return support_write(stdout) || fflush(stdout) ? 1 : 0;
}
