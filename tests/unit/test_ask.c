/* What socket calls run with: a copy in the window, and for socketcall the call of its own. No view of files is needed for it. */
#include <check.h>
#include <errno.h>
#include <linux/net.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "syscalls/handlers/ask.h"
#include "syscalls/handlers/paths_ask.h"
#include "syscalls/ids.h"
#include "tests/unit/fake_guest.h"

enum { BASE = 0x1000, WINDOW = 0x10000 };

static unsigned char memory[1024];

static struct guest guest_new(void)
{
	memset(memory, 0, sizeof(memory));
	return (struct guest){ .base = BASE, .bytes = memory, .len = sizeof(memory), .window_base = WINDOW, .window_len = 4096 };
}

static void put_words(size_t at, const uint32_t *words, size_t count)
{
	memcpy(memory + at, words, count * sizeof(*words));
}

static struct verdict socketcall(struct guest *guest, uint32_t number, uint64_t addr)
{
	const uint64_t args[6] = { number, addr };
	struct call call = fake_call(guest, arch_all[ARCH_I386], CALL_socketcall, args);

	return sys_socketcall(NULL, &call);
}

START_TEST(socketcall_runs_as_its_own_call)
{
	struct guest guest = guest_new();
	struct verdict verdict;

	put_words(0, (uint32_t[]){ 5, 128, 77 }, 3);
	verdict = socketcall(&guest, SYS_LISTEN, BASE);
	ck_assert_int_eq(verdict.kind, VERDICT_REWRITE);
	ck_assert_int_eq(verdict.id, CALL_listen);
	ck_assert_uint_eq(verdict.args[0], 5);
	ck_assert_uint_eq(verdict.args[1], 128);
	ck_assert_uint_eq(verdict.args[2], 0);
	verdict = socketcall(&guest, SYS_ACCEPT, BASE); /* i386 has no accept of its own: accept4 with no flags */
	ck_assert_int_eq(verdict.id, CALL_accept4);
	ck_assert_uint_eq(verdict.args[3], 0);
	verdict = socketcall(&guest, SYS_SEND, BASE); /* sendto without an address */
	ck_assert_int_eq(verdict.id, CALL_sendto);
	ck_assert_uint_eq(verdict.args[4], 0);
}
END_TEST

START_TEST(socketcall_has_each_call_on_i386)
{
	struct guest guest = guest_new();

	for (uint32_t number = SYS_SOCKET; number <= SYS_SENDMMSG; number++) {
		struct verdict verdict;

		if (number == SYS_BIND || number == SYS_CONNECT || number == SYS_GETSOCKNAME || number == SYS_GETPEERNAME ||
		    number == SYS_SENDMSG)
			continue; /* these need more than zeros */
		verdict = socketcall(&guest, number, BASE);
		ck_assert_int_eq(verdict.kind, VERDICT_REWRITE);
		ck_assert_int_ge(arch_nr_of(arch_all[ARCH_I386], verdict.id), 0);
	}
}
END_TEST

START_TEST(socketcall_errors)
{
	struct guest guest = guest_new();
	struct verdict verdict = socketcall(&guest, 0, BASE);

	ck_assert_int_eq(verdict.value, -EINVAL);
	verdict = socketcall(&guest, SYS_SENDMMSG + 1, BASE);
	ck_assert_int_eq(verdict.value, -EINVAL);
	verdict = socketcall(&guest, SYS_LISTEN, 8);
	ck_assert_int_eq(verdict.value, -EFAULT);
}
END_TEST

/* What was read is what runs, for every family. */
START_TEST(connect_runs_a_copy)
{
	struct guest guest = guest_new();
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(80), .sin_addr = { htonl(INADDR_LOOPBACK) } };
	const uint64_t args[6] = { 3, BASE, sizeof(address) };
	struct call call = fake_call(&guest, arch_all[ARCH_X86_64], CALL_connect, args);
	struct verdict verdict;

	memcpy(memory, &address, sizeof(address));
	verdict = sys_connect(NULL, &call);
	ck_assert_int_eq(verdict.kind, VERDICT_REWRITE);
	ck_assert_int_eq(verdict.id, CALL_connect);
	ck_assert_uint_eq(verdict.args[0], 3);
	ck_assert_uint_eq(verdict.args[1], WINDOW);
	ck_assert_uint_eq(verdict.args[2], sizeof(address));
	ck_assert_mem_eq(guest.slot, &address, sizeof(address));
	ck_assert_uint_eq(guest.reads, 1);
}
END_TEST

/* The kernel reads no address of these: registers say so. */
START_TEST(no_address_is_read)
{
	static const struct { uint64_t addr, len; } cases[] = { { 0, 16 }, { BASE, 0 }, { BASE, 129 }, { BASE, 0xffffffff } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct guest guest = guest_new();
		const uint64_t args[6] = { 3, BASE, 4, 0, cases[i].addr, cases[i].len };
		struct call call = fake_call(&guest, arch_all[ARCH_X86_64], CALL_sendto, args);
		struct verdict verdict = sys_sendto(NULL, &call);

		ck_assert_int_eq(verdict.kind, VERDICT_FORWARD);
		ck_assert_uint_eq(guest.reads, 0);
	}
}
END_TEST

START_TEST(sendmsg_runs_a_copy_of_its_header)
{
	struct guest guest = guest_new();
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(53) };
	const uint64_t args[6] = { 3, BASE, 0 };
	struct call call = fake_call(&guest, arch_all[ARCH_I386], CALL_sendmsg, args);
	struct verdict verdict;
	uint32_t header[7];

	put_words(0, (uint32_t[]){ BASE + 64, sizeof(address), 0x7000, 1, 0x7100, 20, 0 }, 7);
	memcpy(memory + 64, &address, sizeof(address));
	verdict = sys_sendmsg(NULL, &call);
	ck_assert_int_eq(verdict.kind, VERDICT_REWRITE);
	memcpy(header, guest.slot + (verdict.args[1] - WINDOW), sizeof(header));
	ck_assert_uint_ge(header[0], WINDOW);
	ck_assert_mem_eq(guest.slot + (header[0] - WINDOW), &address, sizeof(address));
	ck_assert_uint_eq(header[1], sizeof(address));
	ck_assert_uint_eq(header[2], 0x7000);
	ck_assert_uint_eq(header[5], 20);
}
END_TEST

START_TEST(structs_of_newer_kernels)
{
	struct guest guest = guest_new();
	const uint64_t args[6] = { 0 };
	struct call call = fake_call(&guest, arch_all[ARCH_X86_64], CALL_setxattrat, args);
	uint64_t known[2];

	put_words(0, (uint32_t[]){ 1, 2, 3, 4 }, 4);
	ck_assert_int_eq(ask_struct(&call, BASE, 15, 16, known, 16), -EINVAL);
	ck_assert_int_eq(ask_struct(&call, BASE, 4097, 16, known, 16), -E2BIG);
	ck_assert_int_eq(ask_struct(&call, BASE, 24, 16, known, 16), 0);
	ck_assert_uint_eq(known[1], 4ull << 32 | 3);
	memory[23] = 1;
	ck_assert_int_eq(ask_struct(&call, BASE, 24, 16, known, 16), -E2BIG);
	ck_assert_int_eq(ask_struct(&call, 8, 16, 16, known, 16), -EFAULT);
}
END_TEST

Suite *suite_ask(void);

Suite *suite_ask(void)
{
	Suite *suite = suite_create("ask");
	TCase *tests = tcase_create("sockets");

	tcase_add_test(tests, socketcall_runs_as_its_own_call);
	tcase_add_test(tests, socketcall_has_each_call_on_i386);
	tcase_add_test(tests, socketcall_errors);
	tcase_add_test(tests, connect_runs_a_copy);
	tcase_add_test(tests, no_address_is_read);
	tcase_add_test(tests, sendmsg_runs_a_copy_of_its_header);
	tcase_add_test(tests, structs_of_newer_kernels);
	suite_add_tcase(suite, tests);
	return suite;
}
