/*
 * main.c - runs the unit tests: every tests/unit/test_NAME.c has a suite_NAME().
 *
 * suites.def is made by the makefile from the file names, so that a new file is run without being listed anywhere.
 *
 *   unit             all suites; exit status 0 when every check passed
 *   unit NAME...     these suites only
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUITE(name) Suite *suite_##name(void);
#include "suites.def"
#undef SUITE

static const struct {
	const char *name;
	Suite *(*make)(void);
} suites[] = {
#define SUITE(name) { #name, suite_##name },
#include "suites.def"
#undef SUITE
};

enum { SUITES = sizeof suites / sizeof suites[0] };

static void add_named(SRunner *runner, const char *name)
{
	for (size_t i = 0; i < SUITES; i++) {
		if (!strcmp(suites[i].name, name)) {
			srunner_add_suite(runner, suites[i].make());
			return;
		}
	}
	fprintf(stderr, "unit: there is no suite %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	SRunner *runner = srunner_create(NULL);

	for (int i = 1; i < argc; i++)
		add_named(runner, argv[i]);
	for (size_t i = 0; argc == 1 && i < SUITES; i++)
		srunner_add_suite(runner, suites[i].make());

	srunner_run_all(runner, CK_ENV);
	int run = srunner_ntests_run(runner), failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	/* No check at all is a fault of the build, not a success. */
	printf("unit: %d passed, %d failed\n", run - failed, failed);
	return run == 0 || failed != 0;
}
