/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks that count their cases, and say `pass: …` or `fail: …` for run.sh to count. */
#ifndef CORE_CHECKS_H
#define CORE_CHECKS_H

/* Cases of the running check that came out wrong. */
static int failures;

struct check {
	const char *name;
	u64 (*run)(void); /* how many cases there were; none is a failure, too */
};

/* Runs those of a model; whether one failed. */
static int run_checks(const char *model, const char *against, const struct check *checks,
		      size_t count)
{
	int failed = 0;

	for (size_t i = 0; i < count; i++) {
		u64 cases;

		failures = 0;
		cases = checks[i].run();
		failed |= failures || !cases;
		printf("%s: %s_%s, %llu cases%s\n", failures || !cases ? "fail" : "pass", model,
		       checks[i].name, (unsigned long long)cases, against);
	}
	return failed;
}

#define RUN_CHECKS(model, against, ...)                                   \
	run_checks(model, against, (const struct check[]){ __VA_ARGS__ }, \
		   sizeof((const struct check[]){ __VA_ARGS__ }) / sizeof(struct check))

#endif
