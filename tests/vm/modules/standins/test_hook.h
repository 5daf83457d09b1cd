/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How the stand-ins reach the control module. symbol_get() takes a reference for the moment of the
 * call only, so that peermem_test shows up in nobody's dependencies or holders.
 */
#ifndef PEERMEMD_TESTS_TEST_HOOK_H
#define PEERMEMD_TESTS_TEST_HOOK_H

#include <linux/module.h>

int peermem_test_enter(const char *module);
void peermem_test_leave(const char *module);

/* First thing in an init function: 0, or the errno that the test asked for, after its delay. */
static inline int test_hook_enter(void)
{
	typeof(&peermem_test_enter) enter = symbol_get(peermem_test_enter);
	int err;

	if (!enter)
		return 0;
	err = enter(KBUILD_MODNAME);
	symbol_put(peermem_test_enter);
	return err;
}

static inline void test_hook_leave(void)
{
	typeof(&peermem_test_leave) leave = symbol_get(peermem_test_leave);

	if (!leave)
		return;
	leave(KBUILD_MODNAME);
	symbol_put(peermem_test_leave);
}

#endif
