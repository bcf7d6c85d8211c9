//! What the kernel itself had to say: a run whose kernel complained has failed,
//! whatever its command returned.

/// Openings of the kernel's own complaints (Documentation/admin-guide/bug-hunting.rst).
const COMPLAINTS: [&str; 7] = [
    "BUG:",
    "Oops:",
    "WARNING:",
    "Kernel panic",
    "kernel BUG at",
    "general protection fault",
    "Unable to handle kernel",
];

/// Bits of /proc/sys/kernel/tainted that stand for a complaint
/// (Documentation/admin-guide/tainted-kernels.rst).
const TAINTS: [(u64, &str); 4] = [
    (1 << 5, "a bad page (taint B)"),
    (1 << 7, "an oops or BUG (taint D)"),
    (1 << 9, "a warning (taint W)"),
    (1 << 14, "a soft lockup (taint L)"),
];

/// The complaining lines of a console log.
pub(super) fn complaints(log: &str) -> Vec<String> {
    log.lines()
        .filter(|line| COMPLAINTS.iter().any(|sign| message(line).contains(sign)))
        .map(|line| line.trim().to_owned())
        .collect()
}

/// What the taint bits say that the log may have lost.
pub(super) fn taint_complaints(taint: u64) -> Vec<String> {
    TAINTS
        .iter()
        .filter(|(bit, _)| taint & bit != 0)
        .map(|(_, meaning)| format!("the kernel is tainted by {meaning}"))
        .collect()
}

/// The last `count` lines, without the control characters that a guest could
/// use to disturb the reader's terminal.
pub(super) fn tail(log: &str, count: usize) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let last = lines[lines.len().saturating_sub(count)..].join("\n");
    last.chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

/// Only lines with the kernel's time stamp count: a program may write what it
/// likes to the console.
fn message(line: &str) -> &str {
    let line = line.trim_start();
    line.strip_prefix('[')
        .and_then(|rest| rest.split_once("] "))
        .filter(|(stamp, _)| {
            stamp
                .trim()
                .bytes()
                .all(|b| b.is_ascii_digit() || b == b'.')
        })
        .map_or("", |(_, message)| message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_found() {
        let log = "[    1.0] Linux version 6.12\n\
                   [    2.5] BUG: kernel NULL pointer dereference, address: 0\n\
                   [    2.6] Oops: 0000 [#1] PREEMPT SMP\n\
                   [   12.000001] WARNING: CPU: 0 PID: 1 at kernel/x.c:1\n\
                   [   13.1] reboot: Power down\n";
        assert_eq!(complaints(log).len(), 3);
    }

    #[test]
    fn a_program_on_the_console_is_no_kernel() {
        assert!(complaints("WARNING: from a program\n[x] BUG: nor this\n").is_empty());
    }

    #[test]
    fn taints_are_named() {
        assert!(taint_complaints(0).is_empty());
        assert_eq!(taint_complaints((1 << 9) | (1 << 12)).len(), 1);
    }

    #[test]
    fn tail_is_short_when_the_log_is() {
        assert_eq!(tail("a\nb\nc", 2), "b\nc");
        assert_eq!(tail("a", 9), "a");
    }

    #[test]
    fn tail_leaves_the_terminal_alone() {
        assert_eq!(tail("\x1b[2Jx\r\ty", 1), "[2Jx\ty");
    }
}
