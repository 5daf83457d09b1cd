// SPDX-License-Identifier: GPL-2.0
/* Stands in for nv_peer_mem, the client of old: registers the same name with its own version. */
#include <linux/module.h>
#include "nvidia_p2p.h"
#include "peer_mem.h"
#include "test_hook.h"

#define LEGACY_VERSION "1.3-0"

#define peer_err(format, ...) printk(KERN_ERR "nv_mem %s:%d " format, __func__, __LINE__, ##__VA_ARGS__)

static int enable_dbg;
module_param(enable_dbg, int, 0000);
MODULE_PARM_DESC(enable_dbg, "enable debug tracing");

static void *handle;

static int nv_mem_acquire(unsigned long addr, size_t size, void *private_data, char *name, void **context)
{
	if (nvidia_p2p_get_pages(addr, size))
		return 0;
	__module_get(THIS_MODULE);
	return 1;
}

static void nv_mem_release(void *context)
{
	nvidia_p2p_put_pages(0);
	module_put(THIS_MODULE);
}

static const struct peer_memory_client client = {
	.name = "nv_mem",
	.version = LEGACY_VERSION,
	.acquire = nv_mem_acquire,
	.release = nv_mem_release,
};

static int __init nv_mem_client_init(void)
{
	int err = test_hook_enter();

	if (err)
		return err;
	handle = ib_register_peer_memory_client(&client, NULL);
	if (handle)
		return 0;
	peer_err("nv_mem_client_init -- error while registering client\n");
	return -EINVAL;
}

static void __exit nv_mem_client_cleanup(void)
{
	test_hook_leave();
	ib_unregister_peer_memory_client(handle);
}

module_init(nv_mem_client_init);
module_exit(nv_mem_client_cleanup);
MODULE_DESCRIPTION("peermemd tests: stands in for the legacy peer memory plug-in");
MODULE_VERSION(LEGACY_VERSION);
MODULE_LICENSE("Dual BSD/GPL");
