// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The guest's init: loads the modules that the root needs, mounts the disks
 * and the usual kernel filesystems, runs one command and reports its status.
 *
 * From the initramfs it reads /lab/modules (a path a line, in order),
 * /lab/disks (a line a disk: label, directory, ro or rw) and /lab/command
 * (NUL-terminated words, argv of the command). With no command it powers off at
 * once: the accelerator probe. Where there is a file /lab/systemd it gives the machine
 * over to the root's own init, and the command is a service there: systemd.c.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/module.h>
#include <linux/random.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_WORDS 512
#define MAX_DISKS 8

static void mount_or_die(const char *src, const char *dir, const char *type, unsigned long flags,
			 const char *data)
{
	if (mount(src, dir, type, flags, data) == 0)
		return;

	char what[256];

	snprintf(what, sizeof(what), "mount %s on %s", type, dir);
	die(what);
}

static void load_modules(void)
{
	char line[256];
	FILE *list = fopen("/lab/modules", "r");

	if (!list)
		die("/lab/modules");
	while (fgets(line, sizeof(line), list)) {
		int fd;

		line[strcspn(line, "\n")] = '\0';
		fd = open(line, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || (syscall(SYS_finit_module, fd, "", MODULE_INIT_COMPRESSED_FILE) &&
			       errno != EEXIST))
			die(line);
		close(fd);
	}
	fclose(list);
}

/* The pmem device with this ext4 label; false while there is none. */
static int find_disk(const char *label, char *dev, size_t len)
{
	/* s_volume_name of the superblock, which begins at byte 1024. */
	const off_t label_at = 1024 + 0x78;
	char found[17] = "";

	for (int i = 0; i < MAX_DISKS; i++) {
		int fd;

		snprintf(dev, len, "/dev/pmem%d", i);
		fd = open(dev, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		ssize_t n = pread(fd, found, 16, label_at);
		close(fd);
		if (n == 16 && strcmp(found, label) == 0)
			return 1;
	}
	return 0;
}

/*
 * The disks are found by label: the kernel numbers NVDIMMs in an order of its
 * own, and one may come late.
 */
static void mount_disks(void)
{
	char label[17], dir[128], mode[3], dev[32], path[160];
	FILE *list = fopen("/lab/disks", "r");

	if (!list)
		die("/lab/disks");
	mkdir(NEWROOT, 0755);
	while (fscanf(list, "%16s %127s %2s", label, dir, mode) == 3) {
		for (int i = 0; !find_disk(label, dev, sizeof(dev)); i++) {
			if (i == 500)
				die(label);
			usleep(10 * 1000);
		}
		snprintf(path, sizeof(path), NEWROOT "%s", dir);
		/* where the root image has none; else they are there */
		if (strncmp(dir, LAB_DIR, strlen(LAB_DIR)) == 0)
			mkdir(NEWROOT LAB_DIR, 0755);
		mkdir(path, 0755);
		mount_or_die(dev, path, "ext4", strcmp(mode, "ro") ? 0 : MS_RDONLY, NULL);
	}
	fclose(list);
	/* mke2fs puts one into every image; a payload shall be just what was given. */
	rmdir(NEWROOT "/payload/lost+found");
}

/* As switch_root(8): the initramfs stays underneath, empty enough to forget. */
static void enter_root(void)
{
	mount_or_die("/dev", NEWROOT "/dev", NULL, MS_MOVE, NULL);
	if (chdir(NEWROOT) || mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/"))
		die("switch root");
}

static void mount_kernel_filesystems(void)
{
	const unsigned long quiet = MS_NOSUID | MS_NODEV | MS_NOEXEC;

	mount_or_die("proc", "/proc", "proc", quiet, NULL);
	mount_or_die("sysfs", "/sys", "sysfs", quiet, NULL);
	mkdir("/dev/pts", 0755);
	mkdir("/dev/shm", 01777);
	mkdir("/dev/mqueue", 01777);
	mount_or_die("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		     "gid=5,mode=620,ptmxmode=666");
	mount_or_die("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
	mount_or_die("mqueue", "/dev/mqueue", "mqueue", quiet, NULL);
	mount_or_die("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755");
	mount_or_die("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
	mount_or_die("bpf", "/sys/fs/bpf", "bpf", quiet, "mode=700");
	mount_or_die("securityfs", "/sys/kernel/security", "securityfs", quiet, NULL);
	mount_or_die("cgroup2", "/sys/fs/cgroup", "cgroup2", quiet, NULL);
	mount_or_die("tracefs", "/sys/kernel/tracing", "tracefs", quiet, "mode=700");
	mkdir("/run/lock", 01777);
	symlink("/proc/self/fd", "/dev/fd");
	symlink("/proc/self/fd/0", "/dev/stdin");
	symlink("/proc/self/fd/1", "/dev/stdout");
	symlink("/proc/self/fd/2", "/dev/stderr");
}

static void name_and_loopback(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (sethostname("tidegate", 8) || s < 0 || ioctl(s, SIOCSIFFLAGS, &lo))
		die("loopback");
	close(s);
}

/*
 * As systemd-random-seed(8) does, but always the same: until the kernel trusts its random
 * numbers each of them costs more, and when it comes to do so is a matter of chance.
 */
static void seed_random(void)
{
	struct {
		struct rand_pool_info info;
		unsigned char seed[64];
	} pool = { .info = { .entropy_count = 512, .buf_size = 64 } };
	int fd = open("/dev/urandom", O_WRONLY | O_CLOEXEC);

	memset(pool.info.buf, 0x5a, sizeof(pool.seed));
	if (fd < 0 || ioctl(fd, RNDADDENTROPY, &pool))
		die("/dev/urandom");
	close(fd);
}

/* The kernel's taint bits: an oops or a warning shows here even if its text was lost. */
static unsigned long taint(void)
{
	unsigned long value = 0;
	FILE *f = fopen("/proc/sys/kernel/tainted", "r");

	if (f && fscanf(f, "%lu", &value) != 1)
		value = 0;
	if (f)
		fclose(f);
	return value;
}

/* Splits the command's file in place; the words live as long as the machine. */
static char **read_command(const char *path)
{
	static char *words[MAX_WORDS + 1];
	struct stat st;
	char *text;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int n = 0;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) || !(text = malloc(st.st_size)) ||
	    read(fd, text, st.st_size) != st.st_size)
		die(path);
	close(fd);
	for (char *p = text; p < text + st.st_size && n < MAX_WORDS; p += strlen(p) + 1)
		words[n++] = p;
	return n ? words : NULL;
}

/* Runs the command, says how it ended, and switches the machine off. */
static _Noreturn void serve(char **argv)
{
	struct utsname name;
	char text[64];
	int status;

	uname(&name);
	if (chdir("/payload"))
		die("/payload");
	report(FRAME_READY, name.release, strlen(name.release));
	status = run_command(argv);
	status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	report(FRAME_EXIT, text, snprintf(text, sizeof(text), "%d %lu", status, taint()));
	power_off();
}

int main(int argc, char **argv)
{
	struct utsname name;
	char **command;

	if (argc == 2 && strcmp(argv[1], AS_SERVICE) == 0) {
		report_open();
		command = read_command(LAB_DIR "/command");
		if (!command)
			die(LAB_DIR "/command");
		serve(command);
	}
	mount("devtmpfs", "/dev", "devtmpfs", MS_NOSUID, NULL);
	report_open();
	command = read_command("/lab/command");
	if (!command) {
		uname(&name);
		report(FRAME_READY, name.release, strlen(name.release));
		power_off();
	}
	seed_random();
	load_modules();
	mount_disks();
	if (access("/lab/systemd", F_OK) == 0) {
		install_service();
		enter_root();
		start_systemd();
	}
	enter_root();
	mount_kernel_filesystems();
	name_and_loopback();
	serve(command);
}
