// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A machine that the root's own init runs: this program is put into the root as a
 * service, which runs the command at every boot, after a kexec into another kernel too.
 */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define UNIT "/etc/systemd/system/tidegate-lab.service"
#define WANTS "/etc/systemd/system/multi-user.target.wants"

static const char unit[] = "[Unit]\n"
			   "Description=The lab's command\n"
			   "WantsMountsFor=/payload\n"
			   "[Service]\n"
			   "ExecStart=" LAB_DIR "/run " AS_SERVICE "\n"
			   /* what the command starts is its own to end */
			   "KillMode=process\n"
			   "OOMScoreAdjust=-1000\n";

/* The payload comes back at a boot that this program has no part in. */
static const char fstab[] = "LABEL=payload /payload ext4 nofail,x-systemd.device-timeout=60 0 0\n";

static void write_all(const char *path, int flags, const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len || close(fd))
		die(path);
}

static void copy(const char *from, const char *to, mode_t mode)
{
	struct stat st;
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	if (in < 0 || out < 0 || fstat(in, &st) ||
	    sendfile(out, in, NULL, st.st_size) != st.st_size)
		die(to);
	close(in);
	close(out);
}

void install_service(void)
{
	struct stat st;

	copy("/init", NEWROOT LAB_DIR "/run", 0755);
	copy("/lab/command", NEWROOT LAB_DIR "/command", 0644);
	if (stat(NEWROOT UNIT, &st) == 0)
		return; /* a boot of a machine that has been here before */
	write_all(NEWROOT UNIT, O_TRUNC, unit, strlen(unit));
	mkdir(NEWROOT WANTS, 0755);
	if (symlink(UNIT, NEWROOT WANTS "/tidegate-lab.service") && errno != EEXIST)
		die(WANTS);
	write_all(NEWROOT "/etc/fstab", O_APPEND, fstab, strlen(fstab));
}

void start_systemd(void)
{
	struct utsname name;
	char from[192], to[192];

	/* the root may have modules of its own kernels beside these */
	uname(&name);
	snprintf(from, sizeof(from), LAB_DIR "/modules/%s", name.release);
	snprintf(to, sizeof(to), "/usr/lib/modules/%s", name.release);
	mkdir("/usr/lib/modules", 0755);
	mkdir(to, 0755);
	if (mount(from, to, NULL, MS_BIND, NULL))
		die(to);
	execl("/sbin/init", "/sbin/init", (char *)NULL);
	die("/sbin/init");
}
