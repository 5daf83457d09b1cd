// SPDX-License-Identifier: GPL-2.0
/*
 * Peer-memory clients for the tests, compiled into Debian's own ib_core or ib_uverbs.
 *
 * It behaves as the vendors' stacks do towards userspace: the same exported names, the same sysfs
 * folder when built with PEER_MEM_SYSFS (none at all otherwise), NULL on any failure. Instead of
 * real memory registration there is a knob, test_pins, that pins and releases regions.
 */
#include <linux/kernel.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include "peer_mem.h"

#define REGION_SIZE 65536UL

struct peer_stats {
	atomic64_t num_alloc_mrs;
	atomic64_t num_dealloc_mrs;
	atomic64_t num_reg_pages;
	atomic64_t num_dereg_pages;
	atomic64_t num_reg_bytes;
	atomic64_t num_dereg_bytes;
	atomic64_t num_free_callbacks;
};

struct peer {
	struct list_head entry;
	struct kobject kobj;
	bool listed;
	const struct peer_memory_client *client;
	struct peer_stats stats;
	unsigned int pinned;
	void *pins[32];
};

static DEFINE_MUTEX(peers_lock);
static LIST_HEAD(peers);

/* Knob: this many of the next registrations succeed without appearing in sysfs; -1: all of them. */
static int test_unlisted;
module_param(test_unlisted, int, 0644);
MODULE_PARM_DESC(test_unlisted, "registrations to keep out of memory_peers (-1: all)");

#ifdef PEER_MEM_SYSFS
static struct kobject *memory_peers;

static ssize_t version_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct peer *peer = container_of(kobj, struct peer, kobj);

	return sysfs_emit(buf, "%s\n", peer->client->version);
}
static struct kobj_attribute version_attr = __ATTR_RO(version);

#define PEER_COUNTER(counter)                                                                     \
	static ssize_t counter##_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf) \
	{                                                                                         \
		struct peer *peer = container_of(kobj, struct peer, kobj);                        \
                                                                                                  \
		return sysfs_emit(buf, "%lld\n", atomic64_read(&peer->stats.counter));            \
	}                                                                                         \
	static struct kobj_attribute counter##_attr = __ATTR_RO(counter)

PEER_COUNTER(num_alloc_mrs);
PEER_COUNTER(num_dealloc_mrs);
PEER_COUNTER(num_reg_pages);
PEER_COUNTER(num_dereg_pages);
PEER_COUNTER(num_reg_bytes);
PEER_COUNTER(num_dereg_bytes);
PEER_COUNTER(num_free_callbacks);

static struct attribute *peer_attrs[] = {
	&version_attr.attr,
	&num_alloc_mrs_attr.attr,
	&num_dealloc_mrs_attr.attr,
	&num_reg_pages_attr.attr,
	&num_dereg_pages_attr.attr,
	&num_reg_bytes_attr.attr,
	&num_dereg_bytes_attr.attr,
	&num_free_callbacks_attr.attr,
	NULL,
};
ATTRIBUTE_GROUPS(peer);

static void peer_free(struct kobject *kobj)
{
	kfree(container_of(kobj, struct peer, kobj));
}

static const struct kobj_type peer_type = {
	.release = peer_free,
	.sysfs_ops = &kobj_sysfs_ops,
	.default_groups = peer_groups,
};

static bool keep_unlisted(void)
{
	if (test_unlisted > 0)
		test_unlisted--;
	else if (test_unlisted == 0)
		return false;
	return true;
}

/* The folder lives from the first registration to the last. */
static void drop_folder_if_empty(void)
{
	struct peer *peer;

	list_for_each_entry(peer, &peers, entry)
		if (peer->listed)
			return;
	kobject_put(memory_peers);
	memory_peers = NULL;
}

static int list_peer(struct peer *peer)
{
	int err;

	kobject_init(&peer->kobj, (struct kobj_type *)&peer_type);
	if (keep_unlisted())
		return 0;
	if (!memory_peers)
		memory_peers = kobject_create_and_add("memory_peers", mm_kobj);
	if (!memory_peers)
		return -ENOMEM;
	err = kobject_add(&peer->kobj, memory_peers, "%s", peer->client->name);
	peer->listed = !err;
	return err;
}

/* Last use of the peer: its memory goes with the kobject. */
static void unlist_peer(struct peer *peer)
{
	kobject_put(&peer->kobj);
	drop_folder_if_empty();
}
#else
static int list_peer(struct peer *peer)
{
	return 0;
}

static void unlist_peer(struct peer *peer)
{
	kfree(peer);
}
#endif

static bool complete_client(const struct peer_memory_client *client)
{
	const char *missing = !client->acquire ? "acquire" : !client->release ? "release" : NULL;

	if (missing)
		pr_err("Peer memory %s is missing mandatory function %s\n", client->name, missing);
	return !missing;
}

void *ib_register_peer_memory_client(const struct peer_memory_client *client,
				     invalidate_peer_memory *invalidate_callback)
{
	struct peer *peer;

	if (!complete_client(client))
		return NULL;
	peer = kzalloc(sizeof(*peer), GFP_KERNEL);
	if (!peer)
		return NULL;
	peer->client = client;
	mutex_lock(&peers_lock);
	if (list_peer(peer)) {
		unlist_peer(peer);
		peer = NULL;
	} else {
		list_add_tail(&peer->entry, &peers);
	}
	mutex_unlock(&peers_lock);
	return peer;
}
EXPORT_SYMBOL(ib_register_peer_memory_client);

void ib_unregister_peer_memory_client(void *reg_handle)
{
	struct peer *peer = reg_handle;

	mutex_lock(&peers_lock);
	list_del(&peer->entry);
	unlist_peer(peer);
	mutex_unlock(&peers_lock);
}
EXPORT_SYMBOL(ib_unregister_peer_memory_client);

static bool pin(struct peer *peer)
{
	if (peer->client->acquire(0, REGION_SIZE, NULL, NULL, &peer->pins[peer->pinned]) != 1)
		return false;
	peer->pinned++;
	atomic64_inc(&peer->stats.num_alloc_mrs);
	atomic64_inc(&peer->stats.num_reg_pages);
	atomic64_add(REGION_SIZE, &peer->stats.num_reg_bytes);
	return true;
}

static void unpin(struct peer *peer)
{
	peer->pinned--;
	peer->client->release(peer->pins[peer->pinned]);
	atomic64_inc(&peer->stats.num_dealloc_mrs);
	atomic64_inc(&peer->stats.num_dereg_pages);
	atomic64_add(REGION_SIZE, &peer->stats.num_dereg_bytes);
}

static int set_pins(struct peer *peer, unsigned int wanted)
{
	if (wanted > ARRAY_SIZE(peer->pins))
		return -ERANGE;
	while (peer->pinned > wanted)
		unpin(peer);
	while (peer->pinned < wanted)
		if (!pin(peer))
			return -EIO;
	return 0;
}

/* Registration order decides among clients of one name, as it does for real regions. */
static struct peer *find_peer(const char *name)
{
	struct peer *peer;

	list_for_each_entry(peer, &peers, entry)
		if (!strcmp(peer->client->name, name))
			return peer;
	return NULL;
}

static int test_pins_set(const char *val, const struct kernel_param *kp)
{
	char name[IB_PEER_MEMORY_NAME_MAX];
	unsigned int wanted;
	struct peer *peer;
	int err = -ENOENT;

	if (sscanf(val, "%63[^:]:%u", name, &wanted) != 2)
		return -EINVAL;
	mutex_lock(&peers_lock);
	peer = find_peer(name);
	if (peer)
		err = set_pins(peer, wanted);
	mutex_unlock(&peers_lock);
	return err;
}

static int test_pins_get(char *buf, const struct kernel_param *kp)
{
	struct peer *peer;
	int len = 0;

	mutex_lock(&peers_lock);
	list_for_each_entry(peer, &peers, entry)
		len += scnprintf(buf + len, PAGE_SIZE - len, "%s:%u\n", peer->client->name,
				 peer->pinned);
	mutex_unlock(&peers_lock);
	return len;
}

static const struct kernel_param_ops test_pins_ops = {
	.set = test_pins_set,
	.get = test_pins_get,
};
module_param_cb(test_pins, &test_pins_ops, NULL, 0644);
MODULE_PARM_DESC(test_pins, "CLIENT:N pins N regions of that client");
