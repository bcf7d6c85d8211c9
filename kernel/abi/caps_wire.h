/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How requests to services, and their replies, lie in messages over a Unix socket: docs/reference/service-monitor.md. All numbers are
 * little endian, and what has no meaning is zero. User space includes this too.
 *
 * A request is a head, its operands one after the other, and a payload, of which the service alone knows what it is. A reply
 * is a head and a payload.
 */
#ifndef TIDEGATE_ABI_CAPS_WIRE_H
#define TIDEGATE_ABI_CAPS_WIRE_H

#include <linux/types.h>

#define CAPS_WIRE_OPERANDS 8
#define CAPS_WIRE_NAME 255 /* bytes at most, one at least */

struct caps_wire_request {
	__u32 length; /* bytes of the whole message */
	__u32 operation;
	__u32 id;           /* the client's, by which it is answered */
	__u16 operands;     /* so many */
	__u16 operands_len; /* bytes of them all, a multiple of 8 */
};

enum caps_wire_kind {
	CAPS_WIRE_NUMBER = 1,     /* content: a u64 */
	CAPS_WIRE_NAME_OF = 2,    /* bytes, none of them 0 */
	CAPS_WIRE_DESCRIPTOR = 3, /* a u64 */
};

/* Before each operand's content, which is filled up with zeros to 8 bytes. */
struct caps_wire_operand {
	__u8 kind; /* enum caps_wire_kind */
	__u8 zero;
	__u16 len; /* bytes of the content */
	__u32 none;
};

/* Eight names of 255 bytes. */
#define CAPS_WIRE_OPERANDS_LEN (CAPS_WIRE_OPERANDS * (8 + 256))

enum caps_wire_flag {
	/* `descriptor` stands for the object that the request named from now on */
	CAPS_WIRE_BOUND = 1,
	CAPS_WIRE_DROPPED = 2, /* `descriptor` stands for nothing any more */
};

struct caps_wire_reply {
	__u32 length; /* bytes of the whole message */
	__u32 id;     /* the request's */
	__u32 status; /* the service's own */
	__u32 flags;  /* enum caps_wire_flag */
	__u64 descriptor;
};

#endif
