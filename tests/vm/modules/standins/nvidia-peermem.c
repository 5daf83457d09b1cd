// SPDX-License-Identifier: GPL-2.0
/*
 * Stands in for nvidia-peermem: same client names, parameters, messages and results.
 * With PEERMEM_STUB it is what the driver's build makes of it where no RDMA stack offers the
 * peer-memory symbols: an init that fails without a word.
 */
#include <linux/module.h>
#include "nvidia_p2p.h"
#include "peer_mem.h"
#include "test_hook.h"

#define peer_err(format, ...) \
	printk(KERN_ERR "nvidia-peermem %s:%d ERROR " format, __func__, __LINE__, ##__VA_ARGS__)

static int peerdirect_support;
module_param(peerdirect_support, int, 0444);
MODULE_PARM_DESC(peerdirect_support, "Set level of support for Peer-direct, 0 [default] or 1 [legacy, for example MLNX_OFED 4.9 LTS]");

static int persistent_api_support = 1;
module_param(persistent_api_support, int, 0444);
MODULE_PARM_DESC(persistent_api_support, "Set level of support for persistent APIs, 0 [legacy] or 1 [default]");

#ifdef PEERMEM_STUB
static int __init nv_mem_client_init(void)
{
	return -EINVAL;
}

static void __exit nv_mem_client_cleanup(void)
{
}
#else
static void *handle;
static void *handle_nc;

static int nv_mem_acquire(unsigned long addr, size_t size, void *private_data, char *name, void **context)
{
	if (nvidia_p2p_get_pages_persistent(addr, size))
		return 0;
	__module_get(THIS_MODULE);
	return 1;
}

static void nv_mem_release(void *context)
{
	nvidia_p2p_put_pages_persistent(0);
	module_put(THIS_MODULE);
}

static const struct peer_memory_client client = {
	.name = "nv_mem",
	.version = NVIDIA_VERSION,
	.acquire = nv_mem_acquire,
	.release = nv_mem_release,
};

static const struct peer_memory_client client_nc = {
	.name = "nv_mem_nc",
	.version = NVIDIA_VERSION,
	.acquire = nv_mem_acquire,
	.release = nv_mem_release,
};

static int check_parameters(void)
{
	if (peerdirect_support != 0 && peerdirect_support != 1) {
		peer_err("invalid peerdirect_support param value %d\n", peerdirect_support);
		return -EINVAL;
	}
	if (persistent_api_support != 0 && persistent_api_support != 1) {
		peer_err("invalid persistent_api_support param value %d\n", persistent_api_support);
		return -EINVAL;
	}
	return 0;
}

static int nv_mem_legacy_client_init(void)
{
	handle = ib_register_peer_memory_client(&client, NULL);
	if (handle)
		return 0;
	peer_err("nv_mem_client_init -- error while registering traditional client\n");
	return -EINVAL;
}

static int nv_mem_nc_client_init(const struct peer_memory_client *wanted, void **reg)
{
	*reg = ib_register_peer_memory_client(wanted, NULL);
	if (*reg)
		return 0;
	peer_err("nv_mem_client_init -- error while registering nc client\n");
	return -EINVAL;
}

static int register_both(void)
{
	int err = nv_mem_legacy_client_init();

	if (err)
		return err;
	err = nv_mem_nc_client_init(&client_nc, &handle_nc);
	if (err)
		ib_unregister_peer_memory_client(handle);
	return err;
}

static int __init nv_mem_client_init(void)
{
	int err = test_hook_enter();

	if (!err)
		err = check_parameters();
	if (err)
		return err;
	return persistent_api_support ? nv_mem_nc_client_init(&client, &handle) : register_both();
}

static void __exit nv_mem_client_cleanup(void)
{
	test_hook_leave();
	if (handle_nc)
		ib_unregister_peer_memory_client(handle_nc);
	ib_unregister_peer_memory_client(handle);
}
#endif

module_init(nv_mem_client_init);
module_exit(nv_mem_client_cleanup);
MODULE_DESCRIPTION("peermemd tests: stands in for the NVIDIA GPU memory plug-in");
MODULE_VERSION(NVIDIA_VERSION);
MODULE_LICENSE("Dual BSD/GPL");
