// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Answers what libsepol decides by a binary policy: tests/te holds Tidegate's decisions against it.
 *
 *   oracle POLICY
 *
 * Each line of standard input is a question, and has a line of answer:
 *   b NAME 0|1     sets a boolean                          -> ok
 *   c CONTEXT      makes a context known, by the next number from 0 on   -> ok, or bad if it may not be
 *   k CLASS        what class is it?                       -> its name and its permissions, the first bit first
 *   i SID          what context has this initial SID?      -> it, or -
 *   a S T CLASS    what may S do with T?                   -> allowed, auditallow, auditdeny (hex), permissive
 *   t S T CLASS    what does S make in T?                  -> a context, or - if it may not be
 *   m, h           the same of a member, and of a change
 *   v O N T CLASS  may T change O to N?                    -> 1 or 0
 *   n S T CLASS NAME   the type of what S makes in T by this name   -> a type, or - without a rule
 * A line with a dot has the answers written so far sent off.
 *
 * Where libsepol differs from the kernel (security/selinux/ss/services.c), the kernel is followed:
 * a new socket is its maker's, as a new process is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sepol/debug.h>
#include <sepol/policydb/conditional.h>
#include <sepol/policydb/policydb.h>
#include <sepol/policydb/services.h>
#include <sepol/policydb/sidtab.h>

static policydb_t policy;
static sidtab_t sids;
static sepol_security_id_t *known;
static size_t known_count;

static void fail(const char *what)
{
	fprintf(stderr, "oracle: %s\n", what);
	exit(1);
}

static void load(const char *path)
{
	struct policy_file file;
	FILE *stream = fopen(path, "r");

	if (!stream)
		fail("cannot open the policy");
	policy_file_init(&file);
	file.type = PF_USE_STDIO;
	file.fp = stream;
	if (policydb_init(&policy) || policydb_read(&policy, &file, 0))
		fail("cannot read the policy");
	fclose(stream);
	if (policydb_load_isids(&policy, &sids))
		fail("cannot load the initial SIDs");
	sepol_set_policydb(&policy);
	sepol_set_sidtab(&sids);
}

static void set_boolean(char *rest)
{
	char *name = strtok(rest, " "), *value = strtok(NULL, " ");
	cond_bool_datum_t *boolean = name ? hashtab_search(policy.p_bools.table, name) : NULL;

	if (!boolean || !value)
		fail("no such boolean");
	boolean->state = atoi(value);
	if (evaluate_conds(&policy))
		fail("cannot evaluate conditionals");
	puts("ok");
}

static void know(const char *context)
{
	known = realloc(known, (known_count + 1) * sizeof(*known));
	if (!known)
		fail("no memory");
	known[known_count] = 0;
	puts(sepol_context_to_sid(context, strlen(context) + 1, &known[known_count]) ? "bad" :
										       "ok");
	known_count++;
}

static sepol_security_id_t sid_of(unsigned int number)
{
	if (number >= known_count)
		fail("no such context");
	return known[number];
}

static int is_socket(sepol_security_class_t class)
{
	const char *name = policy.p_class_val_to_name[class - 1];
	size_t length = strlen(name);

	return length >= 6 && !strcmp(name + length - 6, "socket");
}

static void tell_class(sepol_security_class_t class)
{
	class_datum_t *datum = policy.class_val_to_struct[class - 1];
	unsigned int bit;

	printf("%s", policy.p_class_val_to_name[class - 1]);
	for (bit = 0; bit < datum->permissions.nprim; bit++)
		printf(" %s", sepol_av_perm_to_string(class, 1u << bit));
	puts("");
}

static void tell_context(int failed, sepol_security_id_t sid)
{
	sepol_security_context_t text;
	size_t length;

	if (failed || sepol_sid_to_context(sid, &text, &length)) {
		puts("-");
		return;
	}
	puts(text);
	free(text);
}

static void access(sepol_security_id_t source, sepol_security_id_t target,
		   sepol_security_class_t class)
{
	struct sepol_av_decision decision;
	unsigned int reason;
	context_struct_t *context = sepol_sidtab_search(&sids, source);

	if (!context || sepol_compute_av_reason(source, target, class, 0, &decision, &reason))
		fail("cannot decide");
	printf("%x %x %x %d\n", decision.allowed, decision.auditallow, decision.auditdeny,
	       ebitmap_get_bit(&policy.permissive_map, context->type));
}

static void label(char kind, sepol_security_id_t source, sepol_security_id_t target,
		  sepol_security_class_t class)
{
	uint32_t process = policy.process_class;
	sepol_security_id_t sid = 0;
	int failed;

	if (is_socket(class))
		policy.process_class = class;
	if (kind == 't')
		failed = sepol_transition_sid(source, target, class, &sid);
	else if (kind == 'm')
		failed = sepol_member_sid(source, target, class, &sid);
	else
		failed = sepol_change_sid(source, target, class, &sid);
	policy.process_class = process;
	tell_context(failed, sid);
}

static void named(sepol_security_id_t source, sepol_security_id_t target,
		  sepol_security_class_t class, char *name)
{
	context_struct_t *one = sepol_sidtab_search(&sids, source),
			 *other = sepol_sidtab_search(&sids, target);
	filename_trans_key_t key = { .ttype = other->type, .tclass = class, .name = name };
	filename_trans_datum_t *datum = hashtab_search(policy.filename_trans, (hashtab_key_t)&key);

	for (; datum; datum = datum->next) {
		if (ebitmap_get_bit(&datum->stypes, one->type - 1)) {
			puts(policy.p_type_val_to_name[datum->otype - 1]);
			return;
		}
	}
	puts("-");
}

static void validate(const unsigned int *numbers)
{
	char *reason = NULL;
	int failed = sepol_validate_transition_reason_buffer(
		sid_of(numbers[0]), sid_of(numbers[1]), sid_of(numbers[2]), numbers[3], &reason, 0);

	free(reason);
	puts(failed ? "0" : "1");
}

static void check_class(unsigned int class)
{
	if (!class || class > policy.p_classes.nprim)
		fail("no such class");
}

static void answer(char kind, char *rest)
{
	unsigned int n[4];
	int name = 0;

	switch (kind) {
	case 'b':
		set_boolean(rest);
		return;
	case 'c':
		know(rest);
		return;
	case 'k':
		check_class(atoi(rest));
		tell_class(atoi(rest));
		return;
	case 'i':
		tell_context(0, atoi(rest));
		return;
	case 'v':
		if (sscanf(rest, "%u %u %u %u", &n[0], &n[1], &n[2], &n[3]) != 4)
			fail("a question is incomplete");
		check_class(n[3]);
		validate(n);
		return;
	}
	if (sscanf(rest, "%u %u %u %n", &n[0], &n[1], &n[2], &name) != 3)
		fail("a question is incomplete");
	check_class(n[2]);
	if (kind == 'a')
		access(sid_of(n[0]), sid_of(n[1]), n[2]);
	else if (kind == 'n')
		named(sid_of(n[0]), sid_of(n[1]), n[2], rest + name);
	else
		label(kind, sid_of(n[0]), sid_of(n[1]), n[2]);
}

int main(int count, char **arguments)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t length;

	if (count != 2)
		fail("which policy?");
	// contexts that may not be are an answer here
	sepol_debug(0);
	load(arguments[1]);
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	while ((length = getline(&line, &room, stdin)) > 0) {
		if (line[length - 1] == '\n')
			line[--length] = 0;
		if (line[0] == '.')
			fflush(stdout);
		else if (length > 2)
			answer(line[0], line + 2);
		else
			fail("a question is incomplete");
	}
	return 0;
}
