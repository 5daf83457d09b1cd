// SPDX-License-Identifier: GPL-2.0
/*
 * First process of a guest: loads what reaches the disks, mounts the root, the module set and the
 * shared folders, places the case's files, and hands over to systemd.
 *
 * The control module comes before anything of Debian's, so that faults work from the first load on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROOT "/sysroot"
#define OVERLAY "/overlay"
#define MODULES "/modules/"
#define DISK_TRIES 200

static char command_line[4096];

static void fail(const char *what)
{
	printf("vm-init: %s: %s\n", what, strerror(errno));
	sync();
	_exit(1);
}

static int try_mount(const char *source, const char *target, const char *type, unsigned long flags,
		     const char *options)
{
	mkdir(target, 0755);
	return mount(source, target, type, flags, options);
}

static void need_mount(const char *source, const char *target, const char *type, unsigned long flags,
		       const char *options)
{
	if (try_mount(source, target, type, flags, options))
		fail(target);
}

static void read_command_line(void)
{
	int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t length = read(fd, command_line, sizeof(command_line) - 1);

	close(fd);
	command_line[length > 0 ? length : 0] = '\0';
}

/* Collect NAME.key=value words as "key=value key=value", as modprobe would. */
static int parameters_of(const char *name, char *out, size_t size)
{
	char copy[sizeof(command_line)];
	char *rest = copy, *word;
	size_t length = strlen(name), used = 0;
	int found = 0;

	strcpy(copy, command_line);
	out[0] = '\0';
	while ((word = strsep(&rest, " \n")) != NULL) {
		if (strncmp(word, name, length) || word[length] != '.')
			continue;
		used += snprintf(out + used, size - used, "%s ", word + length + 1);
		found = 1;
	}
	return found;
}

static void load(const char *file, const char *parameters)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), MODULES "%s", file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || (syscall(SYS_finit_module, fd, parameters, 0) && errno != EEXIST))
		printf("vm-init: %s: %s\n", file, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void load_boot_modules(void)
{
	char name[200];
	FILE *order = fopen(MODULES "order", "re");

	if (!order)
		fail(MODULES "order");
	while (fscanf(order, "%199s", name) == 1)
		load(name, "");
	fclose(order);
}

static void load_test_modules(void)
{
	char parameters[sizeof(command_line)];

	parameters_of("peermem_test", parameters, sizeof(parameters));
	load("peermem_test.ko", parameters);
	if (parameters_of("fakepci", parameters, sizeof(parameters)))
		load("fakepci.ko", parameters);
}

/* Virtio disks are found a moment after their driver is loaded. */
static void mount_disk(const char *device, const char *target)
{
	int tries;

	for (tries = 0; tries < DISK_TRIES; tries++) {
		if (!try_mount(device, target, "ext4", MS_NOATIME, NULL))
			return;
		usleep(20000);
	}
	fail(device);
}

static void copy_file(const char *from, const char *to, mode_t mode)
{
	char buffer[65536];
	ssize_t length;
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	if (in < 0 || out < 0)
		fail(to);
	while ((length = read(in, buffer, sizeof(buffer))) > 0)
		if (write(out, buffer, length) != length)
			fail(to);
	close(in);
	close(out);
}

static int place(const char *path, const struct stat *status, int type, struct FTW *where)
{
	char target[4096];

	(void)where;
	snprintf(target, sizeof(target), ROOT "%s", path + strlen(OVERLAY));
	if (type == FTW_D)
		mkdir(target, 0755);
	else
		copy_file(path, target, status->st_mode & 0777);
	return 0;
}

static void mount_everything(void)
{
	mount_disk("/dev/vda", ROOT);
	mount_disk("/dev/vdb", ROOT "/usr/lib/modules");
	need_mount("tests", ROOT "/mnt/tests", "9p", MS_RDONLY, "trans=virtio,version=9p2000.L,msize=131072");
	need_mount("results", ROOT "/mnt/results", "9p", 0, "trans=virtio,version=9p2000.L,msize=131072");
}

static void hand_over(void)
{
	if (mount("/dev", ROOT "/dev", NULL, MS_MOVE, NULL) || umount("/proc") || chdir(ROOT) ||
	    mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/"))
		fail("switching to the root file system");
	execl("/sbin/init", "/sbin/init", (char *)NULL);
	fail("/sbin/init");
}

int main(void)
{
	need_mount("proc", "/proc", "proc", 0, NULL);
	if (try_mount("devtmpfs", "/dev", "devtmpfs", 0, NULL) && errno != EBUSY)
		fail("/dev");
	read_command_line();
	load_boot_modules();
	load_test_modules();
	mount_everything();
	nftw(OVERLAY, place, 16, FTW_PHYS);
	hand_over();
}
