/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Types a command into the terminal it runs on, as if the user did: tiocsti TEXT. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>

int main(int argc, char **argv)
{
	int terminal = open("/dev/tty", O_RDWR);

	for (const char *c = argc > 1 ? argv[1] : ""; *c; c++) {
		if (ioctl(terminal, TIOCSTI, c)) {
			perror("TIOCSTI");
			return 1;
		}
	}
	return ioctl(terminal, TIOCSTI, "\n") != 0;
}
