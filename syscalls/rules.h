/*
 * rules.h - the lists of rules.c: values of an argument register that change what a row does.
 *
 * A list ends with a rule whose disposition is 0. rows.def names them with RULED().
 */
#ifndef INTERPOSE_SYSCALLS_RULES_H
#define INTERPOSE_SYSCALLS_RULES_H

#include "syscalls/row.h"

extern const struct arg_rule rules_clone[];
extern const struct arg_rule rules_unshare[];
extern const struct arg_rule rules_seccomp[];
extern const struct arg_rule rules_prctl[];
extern const struct arg_rule rules_ioctl[];
extern const struct arg_rule rules_fcntl[];
extern const struct arg_rule rules_madvise[];
extern const struct arg_rule rules_sendto[];
extern const struct arg_rule rules_get_robust_list[];

/* All of them, for rows to name by number. */
#define RULE_LISTS(LIST) \
	LIST(rules_clone) LIST(rules_unshare) LIST(rules_seccomp) LIST(rules_prctl) LIST(rules_ioctl) LIST(rules_fcntl) LIST(rules_madvise) \
	LIST(rules_get_robust_list) LIST(rules_sendto)

#endif
