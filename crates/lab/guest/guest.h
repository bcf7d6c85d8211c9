/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the two halves of the guest's init share: the report channel to the
 * host, and the way to give up.
 *
 * A frame on the channel (second serial port) is one type byte, a 32-bit
 * little-endian length and that many bytes; src/vm/protocol.rs is the reader.
 */
#ifndef GUEST_H
#define GUEST_H

#include <stddef.h>

/* Where the root is mounted until it is entered. */
#define NEWROOT "/newroot"

/* Where a machine that systemd runs keeps the lab's service, and the modules' disk. */
#define LAB_DIR "/usr/lib/tidegate-lab-guest"

/* This program's argument when it is that service. */
#define AS_SERVICE "--service"

enum frame {
	FRAME_READY = 'R', /* the command is about to start; payload: uname -r */
	FRAME_STDOUT = 'O',
	FRAME_STDERR = 'E',
	FRAME_EXIT = 'X',   /* "STATUS TAINT" in decimal */
	FRAME_FAILED = 'F', /* the guest could not run the command; payload: why */
};

/* Opens the report channel. Needs /dev. */
void report_open(void);

/* Sends one frame; blocks until the kernel has taken it. */
void report(enum frame type, const void *data, size_t len);

/* Waits for the last byte to leave, then switches the machine off. */
_Noreturn void power_off(void);

/* Reports "what: strerror(errno)" as FRAME_FAILED and powers off. */
_Noreturn void die(const char *what);

/* Puts this program, as a service, into the root that is mounted on NEWROOT. */
void install_service(void);

/* Becomes the root's own init; the root is entered. */
_Noreturn void start_systemd(void);

/* Runs argv as root, streaming its output; returns its wait status. */
int run_command(char **argv);

#endif
