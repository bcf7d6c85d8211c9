//! The kernel's decisions over an image, in user space: `kernel/te/rules.h`, compiled for this machine.

use crate::image::Image;
use crate::sid::Sid;

/// An access decision: permissions by the bits of the class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Decision {
    pub allow: u32,
    pub auditallow: u32,
    pub auditdeny: u32,
}

/// Which labelling decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Labelling {
    /// Of what is made (`type_transition`).
    Transition = 1,
    /// Of a member of a polyinstantiated object (`type_member`).
    Member = 2,
    /// Of what is relabelled (`type_change`).
    Change = 3,
}

/// One of what a permission is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Single {
    /// An ioctl, by its two lower bytes.
    Ioctl(u16),
    /// A netlink message, by its type.
    Message(u16),
}

/// What rules on single ioctls and messages say of one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Says {
    /// Whether there are any for this source, target and class: without, the permission decides alone.
    pub speaks: bool,
    /// Whether it is allowed.
    pub allows: bool,
    /// Whether its use is recorded.
    pub audits: bool,
    /// Whether its refusal is not.
    pub keeps_silent: bool,
}

unsafe extern "C" {
    fn tidegate_te_image(at: *const u8, end: u32);
    fn tidegate_te_parse(p: u32, text: *const u8, len: u32) -> u64;
    fn tidegate_te_decide(p: u32, source: u64, target: u64, class: u32, d: *mut Decision);
    fn tidegate_te_label(
        p: u32,
        kind: u32,
        source: u64,
        target: u64,
        class: u32,
        name: *const u8,
        len: u32,
    ) -> u64;
    fn tidegate_te_extended(
        p: u32,
        source: u64,
        target: u64,
        class: u32,
        number: u32,
        message: u32,
    ) -> u32;
    fn tidegate_te_is_permissive(p: u32, sid: u64) -> bool;
    fn tidegate_te_is_valid(p: u32, sid: u64) -> bool;
    fn tidegate_te_validates(p: u32, old: u64, new: u64, task: u64, class: u32) -> bool;
    fn tidegate_te_file(p: u32, path: *const u8, len: u32, kind: u32) -> u64;
}

/// Asks an image what the kernel would say.
#[derive(Debug, Clone, Copy)]
pub struct Server<'i> {
    image: &'i Image,
}

impl<'i> Server<'i> {
    /// Of this image.
    pub fn of(image: &'i Image) -> Server<'i> {
        Server { image }
    }

    /// Has this thread's questions answered by the image.
    fn ask<T>(self, question: impl FnOnce(u32) -> T) -> T {
        let (bytes, base) = (&self.image.bytes, self.image.base);
        let zero = bytes.as_ptr().wrapping_sub(base as usize);
        // SAFETY: the image is there while `self` is; of other places than its own nothing is read (decide.c).
        unsafe { tidegate_te_image(zero, base + bytes.len() as u32) };
        question(base)
    }

    /// The SID of a context's text; `None`: the policy has none such.
    pub fn context(self, text: &str) -> Option<Sid> {
        // SAFETY: `text` has its length.
        let sid = self.ask(|p| unsafe { tidegate_te_parse(p, text.as_ptr(), text.len() as u32) });
        (sid != 0).then_some(Sid(sid))
    }

    /// What a source may do to a target of a class, by its number here. Both contexts are valid.
    pub fn access(self, source: Sid, target: Sid, class: u32) -> Decision {
        let mut decision = Decision::default();
        self.ask(|p| {
            // SAFETY: `decision` is as C has it.
            unsafe { tidegate_te_decide(p, source.0, target.0, class, &raw mut decision) }
        });
        decision
    }

    /// The SID of what a source makes by a target, of a class and perhaps with a name.
    pub fn label(
        self,
        kind: Labelling,
        source: Sid,
        target: Sid,
        class: u32,
        name: Option<&[u8]>,
    ) -> Sid {
        let (text, len) = name.map_or((std::ptr::null(), 0), |n| (n.as_ptr(), n.len() as u32));
        // SAFETY: `text` has `len` bytes, or is none.
        let ask =
            |p| unsafe { tidegate_te_label(p, kind as u32, source.0, target.0, class, text, len) };
        Sid(self.ask(ask))
    }

    /// What rules on single ioctls, or netlink messages, say of one by its number.
    pub fn single(self, source: Sid, target: Sid, class: u32, of: Single) -> Says {
        let (number, message) = match of {
            Single::Ioctl(number) => (number, 0),
            Single::Message(number) => (number, 1),
        };
        let ask = |p| {
            // SAFETY: numbers only.
            unsafe { tidegate_te_extended(p, source.0, target.0, class, number.into(), message) }
        };
        let says = self.ask(ask);
        Says {
            speaks: says & 1 != 0,
            allows: says & 2 != 0,
            audits: says & 4 != 0,
            keeps_silent: says & 8 != 0,
        }
    }

    /// Whether the type of a context is permissive.
    pub fn is_permissive(self, sid: Sid) -> bool {
        // SAFETY: numbers only.
        self.ask(|p| unsafe { tidegate_te_is_permissive(p, sid.0) })
    }

    /// Whether the policy lets the parts of a context go together.
    pub fn is_valid(self, sid: Sid) -> bool {
        // SAFETY: numbers only.
        self.ask(|p| unsafe { tidegate_te_is_valid(p, sid.0) })
    }

    /// Whether `validatetrans` lets a task change an object's context.
    pub fn validates(self, old: Sid, new: Sid, task: Sid, class: u32) -> bool {
        // SAFETY: numbers only.
        self.ask(|p| unsafe { tidegate_te_validates(p, old.0, new.0, task.0, class) })
    }

    /// What file contexts say of a path and a kind of file, by its place in [`FILE_KINDS`](crate::FILE_KINDS):
    /// `None`: nothing, or `<<none>>`.
    pub fn file(self, path: &[u8], kind: u32) -> Option<Sid> {
        // SAFETY: `path` has its length.
        let word =
            self.ask(|p| unsafe { tidegate_te_file(p, path.as_ptr(), path.len() as u32, kind) });
        (word != 0 && word != u64::MAX).then_some(Sid(word))
    }
}
