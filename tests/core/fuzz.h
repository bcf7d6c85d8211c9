/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a fuzzer's target gives: clang's libFuzzer drives it, or random.c. */
#ifndef CORE_FUZZ_H
#define CORE_FUZZ_H

/* Judges one input; ends the program if a claim is broken. */
int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* What has to happen in a run, or it has shown nothing; ends with NULL. */
extern const char *const fuzz_events[];

/* How often each did. */
extern unsigned long fuzz_seen[];

#endif
