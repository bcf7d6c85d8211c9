//! `libtidegate-restrict`: [`tidegate_restrict`] for C. `include/tidegate/restrict.h` says what each function does; what crosses the
//! boundary is checked here and in [`tidegate_boundary`], and no panic does.
// each is documented in the header, and as safe as that is kept to
#![allow(missing_docs, clippy::missing_safety_doc)]

use std::ffi::{c_char, c_int};

use tidegate_boundary::{Fault, errno, last_error, text};
use tidegate_restrict::{Layer, RestrictError};

tidegate_boundary::failures!(Failed);

impl From<RestrictError> for Failed {
    fn from(e: RestrictError) -> Failed {
        let errno = match &e {
            RestrictError::Read { source, .. }
            | RestrictError::Connect(source)
            | RestrictError::Memory(_, source) => source.raw_os_error().unwrap_or(errno::EIO),
            RestrictError::File(_) | RestrictError::Subject { .. } => errno::EINVAL,
            RestrictError::NotRunning => errno::ENOTCONN,
            RestrictError::NotPermitted(_) => errno::EPERM,
            RestrictError::Limits(_) => errno::EBUSY,
            _ => errno::EIO,
        };
        Failed(Fault::made(errno, e))
    }
}

/// A subject's name, or NULL for the first one.
///
/// # Safety
/// As of [`text`].
unsafe fn subject<'a>(name: *const c_char) -> Result<Option<&'a str>, Failed> {
    match name.is_null() {
        true => Ok(None),
        // SAFETY: as the caller has it.
        false => Ok(Some(unsafe { text(name)? })),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_restrict_self(file: *const c_char, name: *const c_char) -> c_int {
    done(|| {
        // SAFETY: as the header has it.
        let (file, name) = unsafe { (text(file)?, subject(name)?) };
        Layer::of_file(file, name)?.restrict_self()?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_restrict_self_text(
    called: *const c_char,
    rules: *const c_char,
    name: *const c_char,
) -> c_int {
    done(|| {
        // SAFETY: as the header has it.
        let (called, rules, name) = unsafe { (text(called)?, text(rules)?, subject(name)?) };
        Layer::of_text(called, rules, name)?.restrict_self()?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn tg_restrict_error() -> *const c_char {
    last_error()
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::io;
    use std::ptr;

    use super::*;

    fn failed() -> (Option<i32>, String) {
        let errno = io::Error::last_os_error().raw_os_error();
        // SAFETY: good until the next call.
        let words = unsafe { CStr::from_ptr(tg_restrict_error()) };
        (errno, words.to_str().unwrap().to_owned())
    }

    #[test]
    fn what_is_wrong_beforehand_has_its_errno_and_words() {
        let (null, rules) = (ptr::null(), c"subject a {\n}\n".as_ptr());
        // SAFETY: strings, and NULL, which is what is tested.
        unsafe {
            assert_eq!(tg_restrict_self(null, null), -1);
            assert_eq!(failed().0, Some(errno::EINVAL));
            assert_eq!(tg_restrict_self(c"/nowhere/x.caps".as_ptr(), null), -1);
            assert_eq!(failed().0, Some(errno::ENOENT));
            let x = c"x.caps".as_ptr();
            assert_eq!(tg_restrict_self_text(x, rules, c"b".as_ptr()), -1);
            let no_subject = "the file has no subject `b`: it has a".to_owned();
            assert_eq!(failed(), (Some(errno::EINVAL), no_subject));
            assert_eq!(tg_restrict_self_text(x, c"subjekt".as_ptr(), null), -1);
            assert!(failed().1.starts_with("x.caps:1:1: "), "{}", failed().1);
        }
    }

    #[test]
    fn refusals_have_their_errno() {
        let of = |e: RestrictError| {
            assert_eq!(done(|| Err(e.into())), -1);
            failed().0
        };
        assert_eq!(of(RestrictError::NotRunning), Some(errno::ENOTCONN));
        let words = String::new;
        assert_eq!(of(RestrictError::NotPermitted(words())), Some(errno::EPERM));
        assert_eq!(of(RestrictError::Limits(words())), Some(errno::EBUSY));
        let refused = io::Error::from_raw_os_error(errno::EACCES);
        assert_eq!(of(RestrictError::Connect(refused)), Some(errno::EACCES));
    }
}
