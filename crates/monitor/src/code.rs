//! What a process executes: whether it is the program that it says it is.
//!
//! `/proc/PID/exe` is the process's own word. One that has a user namespace may exchange it for any
//! program (PR_SET_MM), of memory that it shares with a process outside of that namespace, too. To
//! go on it has to execute code of its own, though, which is mapped.

use rustix::io::Errno;
use tidegate_bundle::Attrs;

use crate::error::Result;
use crate::label::{Label, Origin};
use crate::load::Monitor;
use crate::mappings::BLOCKED;
use crate::skel::types::tg_code;
use crate::sys::Over;

/// The mappings of a process that may be executed.
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// One of them is its program's, which was executed, in the first user namespace.
    own: bool,
    /// Their labels.
    labels: Vec<Label>,
    /// They could not be looked at.
    blocked: bool,
}

/// What the code says of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Says {
    /// It is the program.
    Yes,
    /// It need not be.
    No,
    /// That cannot be told now.
    Later,
    /// It could not be looked at.
    Unseen,
}

impl Code {
    /// Whether it is a program of this level: the program's file is among it, and nothing is that somebody lower could have
    /// made. What has no name of its own, or lies where lower ones make files, is anybody's.
    pub fn is_of(&self, level: u8) -> Says {
        let is_safe = |label: &Label| {
            matches!(label.origin, Origin::Rule | Origin::Given)
                && label.level >= level
                && !label.attrs.intersects(Attrs::NEUTRAL | Attrs::CREATOR)
        };
        let is_later = |label: &Label| label.origin == Origin::Later;
        if self.blocked {
            return Says::Unseen;
        }
        if !self.own || !self.labels.iter().all(|it| is_safe(it) || is_later(it)) {
            return Says::No;
        }
        match self.labels.iter().any(is_later) {
            true => Says::Later,
            false => Says::Yes,
        }
    }
}

impl FromIterator<tg_code> for Code {
    fn from_iter<T: IntoIterator<Item = tg_code>>(lines: T) -> Code {
        let mut code = Code::default();
        for line in lines {
            code.blocked |= line.fd == BLOCKED;
            code.own |= line.own != 0;
            code.labels.push(Label::from_word(line.label));
        }
        code
    }
}

impl Monitor {
    /// What a process executes; nothing, if it has ended.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if the kernel's iterator cannot be run.
    pub(crate) fn code(&self, pid: u32) -> Result<Code> {
        match self.look::<tg_code>(&self.ps_code, Over::Thread(pid)) {
            Err(e) if e.errno() == Some(Errno::SRCH.raw_os_error()) => Ok(Code::default()),
            lines => Ok(lines?.into_iter().collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: u64 = 1 << 24;
    const KIND: u64 = 3 << 24;
    const UNKNOWN: u64 = 1 << 28;
    const LATER: u64 = UNKNOWN | 1 << 29;

    fn attrs(attrs: Attrs) -> u64 {
        u64::from(attrs.bits()) << 8
    }

    fn code(own: bool, labels: &[u64]) -> Code {
        let first = tg_code {
            label: RULE | 2,
            own: own.into(),
            ..Default::default()
        };
        let others = labels.iter().map(|&label| tg_code {
            label,
            ..Default::default()
        });
        std::iter::once(first).chain(others).collect()
    }

    #[test]
    fn a_program_with_its_libraries_is_what_it_says() {
        let nodemote = RULE | attrs(Attrs::NODEMOTE) | 2;
        assert_eq!(code(true, &[RULE | 2, nodemote]).is_of(2), Says::Yes);
        assert_eq!(code(true, &[RULE | 1]).is_of(1), Says::Yes);
    }

    #[test]
    fn code_that_is_not_the_programs_is_not_believed() {
        assert_eq!(code(false, &[]).is_of(2), Says::No);
        assert_eq!(Code::default().is_of(2), Says::No);
        for other in [
            UNKNOWN,
            RULE | 1,
            // memory, or a filesystem that nobody else sees
            KIND | 2,
            // where anybody makes files
            RULE | attrs(Attrs::CREATOR) | 2,
            RULE | attrs(Attrs::NEUTRAL) | 2,
        ] {
            assert_eq!(
                code(true, &[RULE | 2, other]).is_of(2),
                Says::No,
                "{other:x}"
            );
            assert_eq!(code(true, &[other, LATER]).is_of(2), Says::No, "{other:x}");
        }
    }

    #[test]
    fn who_cannot_be_looked_at_is_not_believed() {
        let blocked = tg_code {
            label: UNKNOWN,
            fd: BLOCKED,
            ..Default::default()
        };
        let code: Code = std::iter::once(blocked).collect();
        assert_eq!(code.is_of(0), Says::Unseen);
    }

    #[test]
    fn what_cannot_be_looked_for_now_is_not_believed_yet() {
        assert_eq!(code(true, &[LATER]).is_of(2), Says::Later);
        assert_eq!(code(false, &[LATER]).is_of(2), Says::No);
    }
}
