// SPDX-License-Identifier: GPL-2.0-or-later
// What libselinux says of paths: selabel_lookup_raw(3), with the file contexts of a file.
//   lookup FILE
// Standard input has, again and again, a mode in octal, a blank, a path, and a byte 0. For each, a line is written:
// the context, or `-` if there is none or it is `<<none>>`, which the library does not tell apart.
#include <errno.h>
#include <selinux/label.h>
#include <selinux/selinux.h>
#include <stdio.h>
#include <stdlib.h>

// what it says of a pattern that it cannot compile, which it finds out when it asks it
static int broken;

static int note(int type, const char *format, ...)
{
	(void)format;
	if (type == SELINUX_ERROR)
		broken = 1;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: lookup FILE\n");
		return 2;
	}
	selinux_set_callback(SELINUX_CB_LOG, (union selinux_callback){ .func_log = note });
	const struct selinux_opt option = { SELABEL_OPT_PATH, argv[1] };
	struct selabel_handle *handle = selabel_open(SELABEL_CTX_FILE, &option, 1);
	if (!handle) {
		perror("selabel_open");
		return 3;
	}
	char *line = NULL;
	size_t size = 0;
	while (getdelim(&line, &size, 0, stdin) > 0) {
		char *path;
		int mode = (int)strtol(line, &path, 8);
		char *context;
		if (selabel_lookup_raw(handle, &context, path + 1, mode) == 0) {
			puts(context);
			freecon(context);
		} else if (errno == ENOENT) {
			puts("-");
		} else {
			perror("selabel_lookup_raw");
			return 4;
		}
	}
	selabel_close(handle);
	return broken ? 5 : 0;
}
