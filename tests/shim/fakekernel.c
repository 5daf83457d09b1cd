/* Stands in for the kernel's side of module loading.
 *
 * Preloaded into a worker, so that the real libkmod runs against a kernel without modules. For
 * each module the file $FAKE_KERNEL/NAME may hold "ERRNO MILLISECONDS SIGNAL": what inserting or
 * removing it returns, how long that takes, and a signal that the caller gets instead. What is
 * loaded shows in /sys/module, which the test has bound to a directory of its own, and each call
 * is written to $FAKE_KERNEL/log.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void show(const char *name, int loaded)
{
	char path[4096];

	snprintf(path, sizeof(path), "/sys/module/%s", name);
	if (loaded)
		mkdir(path, 0755);
	strcat(path, "/initstate");
	if (loaded) {
		FILE *file = fopen(path, "w");
		if (file) {
			fputs("live\n", file);
			fclose(file);
		}
		return;
	}
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
}

static int act(const char *verb, const char *name, const char *options)
{
	char path[4096];
	int error = 0, delay = 0, number = 0;
	const char *directory = getenv("FAKE_KERNEL");
	FILE *file;

	snprintf(path, sizeof(path), "%s/log", directory);
	if ((file = fopen(path, "a"))) {
		fprintf(file, "%s %s %s\n", verb, name, options);
		fclose(file);
	}
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	if ((file = fopen(path, "r"))) {
		if (fscanf(file, "%d %d %d", &error, &delay, &number) < 1)
			error = ENOEXEC;
		fclose(file);
	}
	struct timespec left = { delay / 1000, delay % 1000 * 1000000L };
	if (nanosleep(&left, NULL) < 0) {
		/* As an init function that waits interruptibly. */
		errno = EINTR;
		return -1;
	}
	if (number) {
		signal(number, SIG_DFL);
		raise(number);
	}
	if (error) {
		errno = error;
		return -1;
	}
	show(name, strcmp(verb, "insert") == 0);
	return 0;
}

int init_module(const void *image, unsigned long size, const char *options)
{
	const char *field = memmem(image, size, "\0name=", 6);

	if (!field) {
		errno = ENOEXEC;
		return -1;
	}
	return act("insert", field + 6, options);
}

int delete_module(const char *name, unsigned flags)
{
	return act("remove", name, flags & O_TRUNC ? "force" : flags & O_NONBLOCK ? "nowait" : "wait");
}

int finit_module(int fd, const char *options, int flags)
{
	struct stat stat;
	void *image;

	(void)flags;
	if (fstat(fd, &stat) < 0)
		return -1;
	image = mmap(NULL, stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	return image == MAP_FAILED ? -1 : init_module(image, stat.st_size, options);
}

long syscall(long number, ...)
{
	static long (*real)(long, ...);
	long a[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_finit_module)
		return finit_module(a[0], (const char *)a[1], a[2]);
	if (!real)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
