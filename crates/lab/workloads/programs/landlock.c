// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * landlock DIRECTORY[:DIRECTORY...] COMMAND [ARGUMENT...]
 *
 * Becomes the command under a Landlock ruleset (Documentation/userspace-api/landlock.rst)
 * that handles every right to files that the kernel knows: reading and executing is
 * allowed everywhere, all else beneath the directories.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "landlock: %s: %s\n", what, strerror(errno));
	exit(126);
}

/*
 * What each version of Landlock added, by number: an older header knows fewer names. 1:
 * thirteen rights; 2: refer; 3: truncate; 5: ioctl of devices.
 */
static uint64_t rights_of(long version)
{
	int bits = version >= 5 ? 16 : version >= 3 ? 15 : version >= 2 ? 14 : 13;

	return (1ULL << bits) - 1;
}

static void allow(int ruleset, const char *directory, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = rights };

	rule.parent_fd = open(directory, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0 ||
	    syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0))
		die(directory);
	close(rule.parent_fd);
}

int main(int argc, char **argv)
{
	const uint64_t read = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
			      LANDLOCK_ACCESS_FS_READ_DIR;
	struct landlock_ruleset_attr attr = { 0 };
	long version, ruleset;

	if (argc < 3) {
		fprintf(stderr, "usage: landlock DIRECTORY[:DIRECTORY...] COMMAND [ARGUMENT...]\n");
		return 126;
	}
	version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (version < 0)
		die("this kernel's Landlock");
	attr.handled_access_fs = rights_of(version);
	/* Rights to files only, whatever else the header knows. */
	ruleset = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr.handled_access_fs), 0);
	if (ruleset < 0)
		die("making a ruleset");
	allow(ruleset, "/", read);
	for (char *directory = strtok(argv[1], ":"); directory; directory = strtok(NULL, ":"))
		allow(ruleset, directory, attr.handled_access_fs);
	/* Root could do without, but no program that restricts itself should. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_landlock_restrict_self, ruleset, 0))
		die("restricting itself");
	execvp(argv[2], argv + 2);
	die(argv[2]);
}
