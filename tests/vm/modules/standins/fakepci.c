// SPDX-License-Identifier: GPL-2.0
/*
 * A PCI host bridge whose devices exist in memory only: GPUs and NICs that udev, lspci and drivers
 * see as real. They have no BARs, so that a driver that wants registers fails its probe harmlessly.
 *
 * GPUs are slots 0 and up, NICs slots 16 and up of bus 0 in PCI domain 1. Writing a new number to
 * `gpus` or `nics` hot-plugs or removes devices.
 */
#include <linux/module.h>
#include <linux/numa.h>
#include <linux/pci.h>
#include <asm/unaligned.h>

#define FAKE_DOMAIN 1
#define KIND_SLOTS 16
#define CONFIG_BYTES 256

struct kind {
	u16 vendor;
	u16 device;
	u16 class;
	unsigned int first_slot;
	unsigned int count;
};

static struct kind gpu_kind = { PCI_VENDOR_ID_NVIDIA, 0x2330, PCI_CLASS_DISPLAY_3D, 0, 0 };
static struct kind nic_kind = { PCI_VENDOR_ID_MELLANOX, 0x1017, 0x0207, KIND_SLOTS, 0 };

static u8 config_space[2 * KIND_SLOTS][CONFIG_BYTES];
static struct pci_sysdata sysdata = { .domain = FAKE_DOMAIN, .node = NUMA_NO_NODE };
static struct pci_bus *bus;

static bool slot_present(unsigned int slot)
{
	return slot < KIND_SLOTS ? slot < gpu_kind.count : slot - KIND_SLOTS < nic_kind.count;
}

static int fake_read(struct pci_bus *parent, unsigned int devfn, int where, int size, u32 *value)
{
	u8 *config = config_space[PCI_SLOT(devfn)];
	int i;

	if (PCI_FUNC(devfn) || parent->number || !slot_present(PCI_SLOT(devfn)) ||
	    where + size > CONFIG_BYTES) {
		*value = ~0;
		return PCIBIOS_DEVICE_NOT_FOUND;
	}
	*value = 0;
	for (i = 0; i < size; i++)
		*value |= (u32)config[where + i] << (8 * i);
	return PCIBIOS_SUCCESSFUL;
}

/* Only the command register remembers: everything else is read-only, BAR sizing finds no BAR. */
static int fake_write(struct pci_bus *parent, unsigned int devfn, int where, int size, u32 value)
{
	if (where == PCI_COMMAND && size == 2)
		put_unaligned_le16(value, &config_space[PCI_SLOT(devfn)][PCI_COMMAND]);
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops fake_ops = {
	.read = fake_read,
	.write = fake_write,
};

static void fill_config(const struct kind *kind)
{
	unsigned int i;

	for (i = 0; i < KIND_SLOTS; i++) {
		u8 *config = config_space[kind->first_slot + i];

		put_unaligned_le16(kind->vendor, config + PCI_VENDOR_ID);
		put_unaligned_le16(kind->device, config + PCI_DEVICE_ID);
		put_unaligned_le16(kind->class, config + PCI_CLASS_DEVICE);
		put_unaligned_le16(kind->vendor, config + PCI_SUBSYSTEM_VENDOR_ID);
		put_unaligned_le16(i + 1, config + PCI_SUBSYSTEM_ID);
	}
}

static void remove_slots(unsigned int first, unsigned int end)
{
	struct pci_dev *dev;

	for (; first < end; first++) {
		dev = pci_get_slot(bus, PCI_DEVFN(first, 0));
		if (!dev)
			continue;
		pci_stop_and_remove_bus_device(dev);
		pci_dev_put(dev);
	}
}

static int count_set(const char *val, const struct kernel_param *kp)
{
	struct kind *kind = kp->arg;
	unsigned int wanted, before = kind->count;
	int err = kstrtouint(val, 0, &wanted);

	if (err || wanted > KIND_SLOTS)
		return err ? err : -ERANGE;
	if (!bus) {
		kind->count = wanted;
		return 0;
	}
	pci_lock_rescan_remove();
	if (wanted < before)
		remove_slots(kind->first_slot + wanted, kind->first_slot + before);
	kind->count = wanted;
	pci_rescan_bus(bus);
	pci_unlock_rescan_remove();
	return 0;
}

static int count_get(char *buf, const struct kernel_param *kp)
{
	const struct kind *kind = kp->arg;

	return sysfs_emit(buf, "%u\n", kind->count);
}

static const struct kernel_param_ops count_ops = {
	.set = count_set,
	.get = count_get,
};
module_param_cb(gpus, &count_ops, &gpu_kind, 0644);
MODULE_PARM_DESC(gpus, "number of NVIDIA 3D controllers (10de:2330)");
module_param_cb(nics, &count_ops, &nic_kind, 0644);
MODULE_PARM_DESC(nics, "number of ConnectX-5 InfiniBand controllers (15b3:1017)");

static struct resource bus_range = {
	.name = "peermemd test bus",
	.start = 0,
	.end = 0,
	.flags = IORESOURCE_BUS,
};

static int __init fakepci_init(void)
{
	LIST_HEAD(resources);

	fill_config(&gpu_kind);
	fill_config(&nic_kind);
	pci_add_resource(&resources, &bus_range);
	pci_lock_rescan_remove();
	bus = pci_scan_root_bus(NULL, 0, &fake_ops, &sysdata, &resources);
	if (bus)
		pci_bus_add_devices(bus);
	pci_unlock_rescan_remove();
	return bus ? 0 : -ENODEV;
}

static void __exit fakepci_exit(void)
{
	pci_lock_rescan_remove();
	pci_stop_root_bus(bus);
	pci_remove_root_bus(bus);
	pci_unlock_rescan_remove();
}

module_init(fakepci_init);
module_exit(fakepci_exit);
MODULE_DESCRIPTION("peermemd tests: PCI devices in memory");
MODULE_LICENSE("GPL");
