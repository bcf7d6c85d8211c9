/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opens a file, limits itself by a subject of a capability file, and shows what it may open then: what was open stays.
 *
 *   narrow FILE.caps SUBJECT OPENED PATH…
 *
 * Ends with 0: it is limited; 1: it could not be; 2: anything else.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <tidegate/restrict.h>

int main(int argc, char **argv)
{
	char byte;
	int opened, i;

	if (argc < 4) {
		fprintf(stderr, "usage: narrow FILE.caps SUBJECT OPENED PATH...\n");
		return 2;
	}
	opened = open(argv[3], O_RDONLY | O_CLOEXEC);
	if (opened < 0) {
		fprintf(stderr, "narrow: %s: %s\n", argv[3], strerror(errno));
		return 2;
	}
	if (tg_restrict_self(argv[1], argv[2])) {
		fprintf(stderr, "narrow: %s\n", tg_restrict_error());
		return 1;
	}
	printf("%s, open from before: %s\n", argv[3],
	       read(opened, &byte, 1) < 0 ? strerror(errno) : "read");
	for (i = 4; i < argc; i++) {
		int fd = open(argv[i], O_RDONLY | O_CLOEXEC);

		printf("%s: %s\n", argv[i], fd < 0 ? strerror(errno) : "opened");
		if (fd >= 0)
			close(fd);
	}
	return 0;
}
