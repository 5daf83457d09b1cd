// SPDX-License-Identifier: GPL-2.0
/*
 * Control module of the tests: decides how the next inits of the stand-ins end, and keeps a log of
 * who was loaded and removed when.
 *
 * faults: MODULE:ERRNO:COUNT:DELAY_MS, several separated by commas; COUNT -1 is for ever, ERRNO 0
 * only delays. Writing an entry replaces that module's; "clear" drops all and ends running delays.
 */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>

#define NAME_MAX_LEN 56
#define POLL_MS 50

struct fault {
	char module[NAME_MAX_LEN];
	int error;
	int count;
	unsigned int delay_ms;
};

struct event {
	s64 ms;
	char module[NAME_MAX_LEN];
	const char *what;
	int result;
};

static DEFINE_MUTEX(lock);
static struct fault faults[16];
static struct event events[64];
static unsigned int event_count;
static unsigned int clear_count;

static void note(const char *module, const char *what, int result)
{
	struct event *event;

	mutex_lock(&lock);
	event = &events[event_count++ % ARRAY_SIZE(events)];
	event->ms = ktime_to_ms(ktime_get());
	strscpy(event->module, module, sizeof(event->module));
	event->what = what;
	event->result = result;
	mutex_unlock(&lock);
}

static struct fault *find_fault(const char *module)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(faults); i++)
		if (!strcmp(faults[i].module, module))
			return &faults[i];
	return NULL;
}

/* Use up one turn of the module's fault, if it has one left. */
static struct fault take_fault(const char *module, unsigned int *clears)
{
	struct fault taken = {};
	struct fault *fault;

	mutex_lock(&lock);
	*clears = clear_count;
	fault = find_fault(module);
	if (fault && fault->count) {
		taken = *fault;
		if (fault->count > 0)
			fault->count--;
	}
	mutex_unlock(&lock);
	return taken;
}

/* As deaf to signals as a driver that waits for its hardware; only "clear" ends it early. */
static void hang(unsigned int delay_ms, unsigned int clears)
{
	unsigned int waited;

	for (waited = 0; waited < delay_ms && READ_ONCE(clear_count) == clears; waited += POLL_MS)
		msleep(POLL_MS);
}

int peermem_test_enter(const char *module)
{
	unsigned int clears;
	struct fault fault = take_fault(module, &clears);

	note(module, "init", 0);
	hang(fault.delay_ms, clears);
	note(module, fault.error ? "failed" : "passed", fault.error);
	return -fault.error;
}
EXPORT_SYMBOL_GPL(peermem_test_enter);

void peermem_test_leave(const char *module)
{
	note(module, "exit", 0);
}
EXPORT_SYMBOL_GPL(peermem_test_leave);

static int store_fault(const struct fault *wanted)
{
	struct fault *fault;

	fault = find_fault(wanted->module) ?: find_fault("");
	if (!fault)
		return -ENOSPC;
	*fault = *wanted;
	return 0;
}

static int parse_fault(const char *text)
{
	struct fault wanted = {};

	if (sscanf(text, "%55[^:]:%d:%d:%u", wanted.module, &wanted.error, &wanted.count,
		   &wanted.delay_ms) != 4)
		return -EINVAL;
	return store_fault(&wanted);
}

static void clear_faults(void)
{
	memset(faults, 0, sizeof(faults));
	WRITE_ONCE(clear_count, clear_count + 1);
}

static int faults_set(const char *val, const struct kernel_param *kp)
{
	char *copy = kstrdup(val, GFP_KERNEL);
	char *rest = copy ? strim(copy) : NULL;
	char *word;
	int err = copy ? 0 : -ENOMEM;

	mutex_lock(&lock);
	while (!err && (word = strsep(&rest, ",")) != NULL) {
		if (!strcmp(word, "clear"))
			clear_faults();
		else
			err = parse_fault(word);
	}
	mutex_unlock(&lock);
	kfree(copy);
	return err;
}

static int faults_get(char *buf, const struct kernel_param *kp)
{
	int i, len = 0;

	mutex_lock(&lock);
	for (i = 0; i < ARRAY_SIZE(faults); i++)
		if (faults[i].module[0])
			len += scnprintf(buf + len, PAGE_SIZE - len, "%s:%d:%d:%u\n", faults[i].module,
					 faults[i].error, faults[i].count, faults[i].delay_ms);
	mutex_unlock(&lock);
	return len;
}

static const struct kernel_param_ops faults_ops = {
	.set = faults_set,
	.get = faults_get,
};
module_param_cb(faults, &faults_ops, NULL, 0644);
MODULE_PARM_DESC(faults, "MODULE:ERRNO:COUNT:DELAY_MS[,…] or clear");

static int log_get(char *buf, const struct kernel_param *kp)
{
	unsigned int i, first;
	int len = 0;

	mutex_lock(&lock);
	first = event_count > ARRAY_SIZE(events) ? event_count - ARRAY_SIZE(events) : 0;
	for (i = first; i < event_count; i++) {
		const struct event *event = &events[i % ARRAY_SIZE(events)];

		len += scnprintf(buf + len, PAGE_SIZE - len, "%lld %s %s %d\n", event->ms, event->module,
				 event->what, event->result);
	}
	mutex_unlock(&lock);
	return len;
}

static const struct kernel_param_ops log_ops = {
	.get = log_get,
};
module_param_cb(log, &log_ops, NULL, 0444);
MODULE_PARM_DESC(log, "MS_SINCE_BOOT MODULE init|passed|failed|exit ERRNO, oldest first");

static int __init peermem_test_init(void)
{
	return 0;
}

static void __exit peermem_test_exit(void)
{
}

module_init(peermem_test_init);
module_exit(peermem_test_exit);
MODULE_DESCRIPTION("peermemd tests: faults, hangs and a log for the stand-in modules");
MODULE_LICENSE("GPL");
