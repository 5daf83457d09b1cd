/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The peer-memory client interface, cut down to what the tests need: registration, and pinning a
 * region so that the client holds a reference to its own module.
 */
#ifndef PEERMEMD_TESTS_PEER_MEM_H
#define PEERMEMD_TESTS_PEER_MEM_H

#include <linux/types.h>

#define IB_PEER_MEMORY_NAME_MAX 64
#define IB_PEER_MEMORY_VER_MAX 16

typedef int (*invalidate_peer_memory)(void *reg_handle, u64 core_context);

struct peer_memory_client {
	char name[IB_PEER_MEMORY_NAME_MAX];
	char version[IB_PEER_MEMORY_VER_MAX];
	/* 1: the region is this client's and is now held; anything else: it is not */
	int (*acquire)(unsigned long addr, size_t size, void *peer_mem_private_data,
		       char *peer_mem_name, void **client_context);
	void (*release)(void *client_context);
};

/* An opaque handle, or NULL; never an errno. */
void *ib_register_peer_memory_client(const struct peer_memory_client *peer_client,
				     invalidate_peer_memory *invalidate_callback);
void ib_unregister_peer_memory_client(void *reg_handle);

#endif
