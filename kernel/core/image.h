/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where in the arena the images of a policy lie. */
#ifndef TIDEGATE_CORE_IMAGE_H
#define TIDEGATE_CORE_IMAGE_H

#include "abi/profile_image.h"
#include "lib/arena.h"

/* The image of a policy by its number; half an arena's first page is nobody's, so that 0 is none. */
static __always_inline struct tg_image __arena *image_of(u32 number)
{
	USES_ARENA();
	return ARENA_PTR(struct tg_image, 4096 + (number & 1) * TG_ARENA_HALF);
}

#endif
