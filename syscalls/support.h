/* support.h - the support table of docs/SYSCALLS.md, made from the rows. */
#ifndef INTERPOSE_SYSCALLS_SUPPORT_H
#define INTERPOSE_SYSCALLS_SUPPORT_H

#include <stdio.h>

/* Writes the whole page, in Markdown. 0, or -EIO. */
int support_write(FILE *out);

#endif
