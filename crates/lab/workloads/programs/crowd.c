/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * crowd DIR N: so many mounts, all on one directory. Their counters are the smallest
 * things in per-CPU memory, and fill the gaps in it.
 */
#include "count.h"

#include <sys/mount.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	must(!mkdir(argv[1], 0755), argv[1]);
	for (int n = atoi(argv[2]); n > 0; n--)
		must(!mount("/run", argv[1], NULL, MS_BIND, NULL), "mount");
	return 0;
}
