/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a path costs by its number of components, all of them in the cache. */
#define _GNU_SOURCE
#include "count.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST 16

int main(void)
{
	char path[2 * MOST + 8] = "", item[64];
	struct stat st;

	for (int n = 1; n <= MOST; n++) {
		int f;

		/* the directories of the path, and then the file in the last one */
		if (n > 1) {
			strcat(path, n > 2 ? "/d" : "d");
			must(!mkdir(path, 0755), "directory");
		}
		if (n & (n - 1))
			continue;
		const size_t length = strlen(path);

		strcat(path, n > 1 ? "/f" : "f");
		f = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
		must(f >= 0 && !close(f), "file");
		snprintf(item, sizeof(item), "open+close, %d components", n);
		ITEM(item, "pair", 5500, {
			f = open(path, O_RDONLY);
			must(f >= 0 && !close(f), "open");
		});
		snprintf(item, sizeof(item), "stat, %d components", n);
		ITEM(item, "call", 5500, must(!stat(path, &st), "stat"));
		path[length] = '\0';
	}
	return 0;
}
