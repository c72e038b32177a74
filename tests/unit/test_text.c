/* Lines that grow to a bound, numbers without printf, quoting that lets no control character through; the nearest word. */
#include <check.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "syscalls/decode_impl.h"
#include "syscalls/nearest.h"

static struct text text;

static void teardown(void)
{
	text_free(&text);
}

static const char *quoted(const void *bytes, size_t len, size_t max)
{
	text_clear(&text);
	text_quote(&text, bytes, len, max);
	return text.data;
}

START_TEST(quoting)
{
	ck_assert_str_eq(quoted("plain", 5, 32), "\"plain\"");
	ck_assert_str_eq(quoted("", 0, 32), "\"\"");
	ck_assert_str_eq(quoted("a\"b\\c", 5, 32), "\"a\\\"b\\\\c\"");
	ck_assert_str_eq(quoted("\t\n\v\f\r", 5, 32), "\"\\t\\n\\v\\f\\r\"");
	ck_assert_str_eq(quoted("\0\001\033[31m\177\377", 9, 32), "\"\\0\\1\\33[31m\\177\\377\"");
	ck_assert_str_eq(quoted("\0001\0019\33x", 6, 32), "\"\\0001\\0019\\33x\"");
	ck_assert_str_eq(quoted("abcdef", 6, 3), "\"abc\"...");
	ck_assert_str_eq(quoted("abc", 3, 3), "\"abc\"");
	ck_assert_str_eq(quoted("abc", 3, 0), "\"\"...");
}
END_TEST

START_TEST(quoting_all_bytes)
{
	unsigned char bytes[256];

	for (unsigned i = 0; i < 256; i++)
		bytes[i] = (unsigned char)i;
	quoted(bytes, sizeof(bytes), sizeof(bytes));
	ck_assert_uint_gt(text.len, 256 + 2);
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] < 0x20 || text.data[i] >= 0x7f)
			ck_abort_msg("byte %zu is %#x", i, text.data[i]);
}
END_TEST

START_TEST(quoting_hex)
{
	text_clear(&text);
	text_quote_hex(&text, "\0\x7f" "A\xff", 4, 3);
	ck_assert_str_eq(text.data, "\"\\x00\\x7f\\x41\"...");
}
END_TEST

START_TEST(numbers)
{
	text_dec(&text, 0);
	text_char(&text, ' ');
	text_dec(&text, INT64_MIN);
	text_char(&text, ' ');
	text_dec(&text, INT64_MAX);
	text_char(&text, ' ');
	text_udec(&text, UINT64_MAX);
	text_char(&text, ' ');
	text_hex(&text, 0);
	text_char(&text, ' ');
	text_hex(&text, UINT64_MAX);
	text_char(&text, ' ');
	text_octal(&text, 0, 3);
	text_char(&text, ' ');
	text_octal(&text, 0644, 3);
	text_char(&text, ' ');
	text_octal(&text, UINT64_MAX, 3);
	ck_assert_str_eq(text.data, "0 -9223372036854775808 9223372036854775807 18446744073709551615 0 0xffffffffffffffff 000 0644 "
				    "01777777777777777777777");
}
END_TEST

START_TEST(format)
{
	char *wide = malloc(TEXT_MAX + 100);

	ck_assert_ptr_nonnull(wide);
	memset(wide, 'x', TEXT_MAX + 99);
	wide[TEXT_MAX + 99] = '\0';
	text_format(&text, "%s=%d", "key", 7);
	ck_assert_str_eq(text.data, "key=7");
	text_clear(&text);
	text_format(&text, "%.300s|", wide);
	ck_assert_uint_eq(text.len, 301);
	ck_assert_int_eq(text.data[300], '|');
	text_clear(&text);
	text_format(&text, "%s", wide);
	ck_assert_uint_eq(text.len, TEXT_MAX);
	ck_assert_str_eq(text.data + TEXT_MAX - 4, "x...");
	free(wide);
}
END_TEST

START_TEST(bound)
{
	char *data;

	for (int i = 0; i < TEXT_MAX - 1; i++)
		text_char(&text, 'a');
	ck_assert_uint_eq(text.len, TEXT_MAX - 1);
	text_add(&text, "bc");
	ck_assert_uint_eq(text.len, TEXT_MAX);
	ck_assert_str_eq(text.data + TEXT_MAX - 4, "a...");
	text_add(&text, "more");
	text_quote(&text, "more", 4, 4);
	text_dec(&text, 12345);
	ck_assert_uint_eq(text.len, TEXT_MAX);
	ck_assert_uint_eq(strlen(text.data), TEXT_MAX);
	data = text.data;
	text_clear(&text);
	ck_assert_str_eq(text.data, "");
	text_add(&text, "again");
	ck_assert_ptr_eq(text.data, data); /* warm: nothing is allocated */
	ck_assert_str_eq(text.data, "again");
}
END_TEST

START_TEST(bound_exact)
{
	for (int i = 0; i < TEXT_MAX; i++)
		text_char(&text, 'a');
	ck_assert_uint_eq(text.len, TEXT_MAX);
	ck_assert_int_eq(text.data[TEXT_MAX - 1], 'a');
}
END_TEST

static const char *nearest(const char *word)
{
	static const char *const words[] = { "openat", NULL, "open", "connect", "getpid", "gettid",
					     "a-word-of-more-than-sixty-three-letters-is-far-from-everything-that-there-is" };

	return nearest_word(word, words, sizeof(words) / sizeof(words[0]));
}

START_TEST(nearest_words)
{
	ck_assert_str_eq(nearest("opnat"), "openat");
	ck_assert_str_eq(nearest("opan"), "open");
	ck_assert_str_eq(nearest("conect"), "connect");
	ck_assert_str_eq(nearest("getpod"), "getpid");
	ck_assert_str_eq(nearest("gettid"), "gettid");
	ck_assert_ptr_null(nearest("x"));
	ck_assert_ptr_null(nearest(""));
	ck_assert_ptr_null(nearest("entirely-else"));
	ck_assert_ptr_null(nearest("a-word-of-more-than-sixty-three-letters-is-far-from-everything-that-there-ix"));
}
END_TEST

START_TEST(distances)
{
	ck_assert_uint_eq(nearest_distance("kitten", "sitting", 9), 3);
	ck_assert_uint_eq(nearest_distance("kitten", "sitting", 2), 3);
	ck_assert_uint_eq(nearest_distance("", "abc", 9), 3);
	ck_assert_uint_eq(nearest_distance("same", "same", 0), 0);
	ck_assert_uint_eq(nearest_distance("same", "sane", 0), 1);
}
END_TEST

Suite *suite_text(void);
Suite *suite_text(void)
{
	Suite *suite = suite_create("text");
	TCase *tcase = tcase_create("text");

	tcase_add_checked_fixture(tcase, NULL, teardown);
	tcase_add_test(tcase, quoting);
	tcase_add_test(tcase, quoting_all_bytes);
	tcase_add_test(tcase, quoting_hex);
	tcase_add_test(tcase, numbers);
	tcase_add_test(tcase, format);
	tcase_add_test(tcase, bound);
	tcase_add_test(tcase, bound_exact);
	tcase_add_test(tcase, nearest_words);
	tcase_add_test(tcase, distances);
	suite_add_tcase(suite, tcase);
	return suite;
}
