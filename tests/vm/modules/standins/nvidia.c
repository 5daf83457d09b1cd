// SPDX-License-Identifier: GPL-2.0
/*
 * Stands in for nvidia.ko: binds NVIDIA display devices, has the version file of either flavour,
 * exports the symbols that the peer-memory clients need, and fails to load as the real one does.
 */
#include <linux/atomic.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include "nvidia_p2p.h"
#include "test_hook.h"

static char *flavour = "open";
module_param(flavour, charp, 0444);
MODULE_PARM_DESC(flavour, "open or proprietary: the text of /proc/driver/nvidia/version");

static bool need_gpu;
module_param(need_gpu, bool, 0444);
MODULE_PARM_DESC(need_gpu, "refuse to load (ENODEV) without a GPU, as the real driver does");

static atomic_t gpus = ATOMIC_INIT(0);
static struct proc_dir_entry *proc;

int nvidia_p2p_get_pages(u64 address, u64 length)
{
	return 0;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_get_pages);

int nvidia_p2p_put_pages(u64 address)
{
	return 0;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_put_pages);

int nvidia_p2p_get_pages_persistent(u64 address, u64 length)
{
	return 0;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_get_pages_persistent);

int nvidia_p2p_put_pages_persistent(u64 address)
{
	return 0;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_put_pages_persistent);

int nvUvmInterfaceRegisterGpu(void)
{
	return 0;
}
EXPORT_SYMBOL_GPL(nvUvmInterfaceRegisterGpu);

static int version_show(struct seq_file *out, void *unused)
{
	if (!strcmp(flavour, "open"))
		seq_puts(out, "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  " NVIDIA_VERSION
			      "  Release Build  (tests@peermemd)  Thu Feb 27 10:00:00 UTC 2025\n");
	else
		seq_puts(out, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " NVIDIA_VERSION
			      "  Thu Feb 27 10:00:00 UTC 2025\n");
	seq_puts(out, "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14+deb12u1) \n");
	return 0;
}

static int nvidia_probe(struct pci_dev *dev, const struct pci_device_id *id)
{
	atomic_inc(&gpus);
	return 0;
}

static void nvidia_remove(struct pci_dev *dev)
{
	atomic_dec(&gpus);
}

static const struct pci_device_id nvidia_ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_NVIDIA, PCI_ANY_ID), .class = PCI_CLASS_DISPLAY_VGA << 8, .class_mask = ~0 },
	{ PCI_DEVICE(PCI_VENDOR_ID_NVIDIA, PCI_ANY_ID), .class = PCI_CLASS_DISPLAY_3D << 8, .class_mask = ~0 },
	{}
};
MODULE_DEVICE_TABLE(pci, nvidia_ids);

static struct pci_driver nvidia_driver = {
	.name = "nvidia",
	.id_table = nvidia_ids,
	.probe = nvidia_probe,
	.remove = nvidia_remove,
};

static int start_gpus(void)
{
	int err = test_hook_enter();

	if (err == -ENODEV)
		pr_err("NVRM: The NVIDIA probe routine failed for 1 device(s).\n"
		       "NVRM: None of the NVIDIA devices were initialized.\n");
	if (err)
		return err;
	err = pci_register_driver(&nvidia_driver);
	if (err)
		return err;
	if (need_gpu && !atomic_read(&gpus)) {
		pr_err("NVRM: No NVIDIA GPU found.\n");
		pci_unregister_driver(&nvidia_driver);
		return -ENODEV;
	}
	return 0;
}

/* The version file comes before the GPUs do, so that it proves nothing, as with the real driver. */
static int __init nvidia_init(void)
{
	int err;

	proc = proc_mkdir("driver/nvidia", NULL);
	if (!proc)
		return -ENOMEM;
	proc_create_single("version", 0444, proc, version_show);
	err = start_gpus();
	if (err)
		proc_remove(proc);
	return err;
}

static void __exit nvidia_exit(void)
{
	test_hook_leave();
	pci_unregister_driver(&nvidia_driver);
	proc_remove(proc);
}

module_init(nvidia_init);
module_exit(nvidia_exit);
MODULE_DESCRIPTION("peermemd tests: stands in for the NVIDIA GPU driver");
MODULE_VERSION(NVIDIA_VERSION);
MODULE_LICENSE("Dual MIT/GPL");
