/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Terminals. What is written to one is neutral, and what it is for belongs to the session that has it: nobody below one of
 * its processes types for it, by an ioctl or by a pty's master, nor takes its console or the screen away.
 */
#ifndef TIDEGATE_LOMAC_TERMINAL_H
#define TIDEGATE_LOMAC_TERMINAL_H

#include "core/subject.h"

/* Is somebody of the terminal's session above the level? One without a session is its master's. */
static __noinline bool session_is_higher(u64 terminal, u8 level, bool without)
{
	u64 session = address(CAST(struct tty_struct, terminal)->ctrl.session);

	if (!session)
		return without;
	return ANY_TASK(t, address(UNTRUSTED(t)->signal->pids[PIDTYPE_SID]) == session &&
				   subject_label(t).observes > level);
}

/* Of the terminal that is open. */
static __always_inline bool terminal_is_higher(struct file *file, u8 level, bool without)
{
	struct tty_file_private *opened =
		CAST(struct tty_file_private, address(file->private_data));

	return session_is_higher(address(opened->tty), level, without);
}

/*
 * Of the console that is shown now, on the screen that the open one shares with it: its session has the keyboard as well, and whoever has
 * another one shown asks the person who sits there for the password. One that shows graphics without a session is of somebody unknown.
 */
static __noinline bool shown_is_higher(struct file *file, u8 level)
{
	struct tty_file_private *opened;
	struct vc_data *console, *shown;
	u64 at = 0, terminal;

	if (!bpf_core_type_exists(struct vc_data))
		return false;
	opened = CAST(struct tty_file_private, address(file->private_data));
	console = CAST(struct vc_data,
		       address(CAST(struct tty_struct, address(opened->tty))->driver_data));
	bpf_probe_read_kernel(&at, sizeof(at), console->vc_display_fg);
	shown = CAST(struct vc_data, at);
	terminal = address(shown->port.tty);
	return terminal && session_is_higher(terminal, level, shown->vc_mode == KD_GRAPHICS);
}

/* Does the file, a pty's master, type into a session that has somebody above the level? `without`: if no session is there. */
static __always_inline bool master_types_up(struct file *file, u8 level, bool without)
{
	struct tty_file_private *opened =
		CAST(struct tty_file_private, address(file->private_data));
	struct tty_struct *master = CAST(struct tty_struct, address(opened->tty));

	return level < policy.top && session_is_higher(address(master->link), level, without);
}

static __always_inline bool master_is_higher(struct file *file, u8 level)
{
	return master_types_up(file, level, false);
}

#endif
