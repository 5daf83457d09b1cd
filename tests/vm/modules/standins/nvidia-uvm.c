// SPDX-License-Identifier: GPL-2.0
/* Stands in for nvidia-uvm: whoever has /dev/nvidia-uvm open counts as a CUDA process. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include "nvidia_p2p.h"
#include "test_hook.h"

static int uvm_open(struct inode *inode, struct file *file)
{
	return nvUvmInterfaceRegisterGpu();
}

static const struct file_operations uvm_fops = {
	.owner = THIS_MODULE,
	.open = uvm_open,
};

static struct miscdevice uvm_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "nvidia-uvm",
	.fops = &uvm_fops,
};

static int __init uvm_init(void)
{
	int err = test_hook_enter();

	return err ? err : misc_register(&uvm_device);
}

static void __exit uvm_exit(void)
{
	test_hook_leave();
	misc_deregister(&uvm_device);
}

module_init(uvm_init);
module_exit(uvm_exit);
MODULE_DESCRIPTION("peermemd tests: stands in for the NVIDIA UVM driver");
MODULE_VERSION(NVIDIA_VERSION);
MODULE_LICENSE("Dual MIT/GPL");
