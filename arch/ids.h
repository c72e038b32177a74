/* ids.h - the call ids, for those who may include the architecture's contract alone. */
#ifndef INTERPOSE_ARCH_IDS_H
#define INTERPOSE_ARCH_IDS_H

#include "syscalls/ids.h"

#endif
