/* ids.h - one id for each row of rows.def, in its order. */
#ifndef INTERPOSE_SYSCALLS_IDS_H
#define INTERPOSE_SYSCALLS_IDS_H

enum call_id {
#define ROW(name, ...) CALL_##name,
#include "syscalls/rows.def"
#undef ROW
	CALL_COUNT
};

#endif
