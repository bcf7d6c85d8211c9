/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asks whether a source may do something to a target, as selinux-check-access(8) does, or computes a label. With --wait it
 * asks again each time that another policy comes, until the answer is no.
 *
 *   check-access [--wait] SOURCE TARGET CLASS PERMISSION
 *   check-access --create SOURCE TARGET CLASS [NAME]
 *   check-access --context CONTEXT
 *
 * Ends with 0: allowed; 1: refused; 2: anything else, such as no daemon.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <tidegate/avc.h>

/* How long to wait for another policy, in milliseconds. */
#define PATIENCE 30000

static int fail(const char *what)
{
	int refused = errno == EACCES;

	fprintf(stderr, "check-access: %s: %s\n", what, tg_avc_error());
	return refused ? 1 : 2;
}

static int check(struct tg_avc *avc, char **names, int waits)
{
	const char *permissions[] = { names[3], NULL };
	const struct tg_class *tclass = tg_string_to_security_class(avc, names[2], permissions);
	tg_security_id_t source, target;

	if (!tclass || tg_avc_context_to_sid(avc, names[0], &source) ||
	    tg_avc_context_to_sid(avc, names[1], &target))
		return fail("declare");
	for (;;) {
		uint32_t sequence = tg_avc_sequence(avc);

		if (tg_avc_has_perm(avc, source, target, tclass,
				    tg_string_to_av_perm(tclass, names[3]), "check-access"))
			return fail(names[3]);
		printf("allowed\n");
		fflush(stdout);
		if (!waits)
			return 0;
		if (!tg_avc_wait(avc, sequence, PATIENCE)) {
			fprintf(stderr, "check-access: no other policy came\n");
			return 2;
		}
	}
}

static int create(struct tg_avc *avc, char **names, const char *name)
{
	const char *permissions[] = { "create", NULL };
	const struct tg_class *tclass = tg_string_to_security_class(avc, names[2], permissions);
	tg_security_id_t source, target, made;
	char *context;

	if (!tclass || tg_avc_context_to_sid(avc, names[0], &source) ||
	    tg_avc_context_to_sid(avc, names[1], &target) ||
	    tg_avc_compute_create(avc, source, target, tclass, name, &made) ||
	    tg_avc_sid_to_context(avc, made, &context))
		return fail("create");
	printf("%s\n", context);
	tg_freecon(context);
	return 0;
}

static int canonical(struct tg_avc *avc, const char *text)
{
	char *context;

	if (tg_security_canonicalize_context(avc, text, &context))
		return fail(text);
	printf("%s\n", context);
	tg_freecon(context);
	return 0;
}

int main(int argc, char **argv)
{
	struct tg_avc *avc = tg_avc_open();
	int status = 2;

	if (!avc)
		return fail("open");
	if ((argc == 5 || argc == 6) && !strcmp(argv[1], "--create"))
		status = create(avc, argv + 2, argc == 6 ? argv[5] : NULL);
	else if (argc == 6 && !strcmp(argv[1], "--wait"))
		status = check(avc, argv + 2, 1);
	else if (argc == 5)
		status = check(avc, argv + 1, 0);
	else if (argc == 3 && !strcmp(argv[1], "--context"))
		status = canonical(avc, argv[2]);
	else
		fprintf(stderr, "usage: check-access [--wait] SOURCE TARGET CLASS PERMISSION\n"
				"       check-access --create SOURCE TARGET CLASS [NAME]\n"
				"       check-access --context CONTEXT\n");
	tg_avc_close(avc);
	return status;
}
