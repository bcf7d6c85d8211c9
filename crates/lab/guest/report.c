// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <termios.h>
#include <unistd.h>

static int channel = -1;

void report_open(void)
{
	struct termios t;

	/*
	 * A legacy serial port and not virtio-serial: QEMU completes each byte
	 * inside the virtual CPU's own step, so that counted instructions do
	 * not depend on the host's scheduling.
	 */
	channel = open("/dev/ttyS1", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (channel < 0)
		die("/dev/ttyS1");
	if (tcgetattr(channel, &t) == 0) {
		cfmakeraw(&t);
		cfsetspeed(&t, B115200);
		tcsetattr(channel, TCSANOW, &t);
	}
}

static void send_all(const char *p, size_t len)
{
	while (len) {
		ssize_t n = write(channel, p, len);

		if (n < 0 && errno != EINTR)
			return;
		if (n > 0) {
			p += n;
			len -= n;
		}
	}
}

void report(enum frame type, const void *data, size_t len)
{
	uint32_t n = len;
	char head[5] = { type, n, n >> 8, n >> 16, n >> 24 };

	send_all(head, sizeof(head));
	send_all(data, len);
}

void power_off(void)
{
	tcdrain(channel);
	/* No sync: the disks are private mappings that vanish with QEMU. */
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

void die(const char *what)
{
	char text[256];
	int n = snprintf(text, sizeof(text), "%s: %s", what, strerror(errno));

	dprintf(STDERR_FILENO, "lab init: %s\n", text);
	if (channel >= 0)
		report(FRAME_FAILED, text, n);
	power_off();
}
