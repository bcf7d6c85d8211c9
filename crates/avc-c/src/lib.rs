//! `libtidegate-avc`: the cache of [`tidegate_avc`] for C. `include/tidegate/avc.h` says what each function does; what
//! crosses the boundary is checked here, and no panic does.
//!
//! What C hands over is taken at its word in one thing only: a pointer that is not NULL points to what the header says.
// each is documented in the header, and as safe as that is kept to
#![allow(missing_docs, clippy::missing_safety_doc)]

mod outcome;

use std::ffi::{CString, c_char, c_int};
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::Mutex;
use std::time::Duration;

use tidegate_avc::{Avc, Class, Sid};
use tidegate_boundary::{Fault, last_error, put, text, there};

use crate::outcome::{CHANGING, Failed, done, guarded};

/// `struct tg_avc`.
pub struct Handle {
    avc: Avc,
    /// What C has pointers to.
    #[expect(clippy::vec_box, reason = "a list that grows would move them")]
    classes: Mutex<Vec<Box<Class>>>,
}

/// `struct tg_av_decision`.
#[repr(C)]
pub struct AvDecision {
    allowed: u32,
    auditallow: u32,
    auditdeny: u32,
    permissive: u32,
}

/// `struct tg_status`.
#[repr(C)]
pub struct Status {
    sequence: u32,
    enforcing: u32,
    policyload: u32,
    deny_unknown: u32,
    enabled: u32,
}

/// A text for C to free.
unsafe fn put_text(at: *mut *mut c_char, value: &str) -> Result<(), Failed> {
    let text = CString::new(value).map_err(|_| Fault::invalid("a context with a NUL in it"))?;
    if at.is_null() {
        return Err(Fault::NULL.into());
    }
    // SAFETY: as `put`.
    unsafe { put(at, text.into_raw()) }
}

fn sid(handle: &Handle, number: u32) -> Result<Sid, Fault> {
    let known = handle.avc.sid_of_number(number);
    known.ok_or_else(|| Fault::invalid(&format!("{number} is not a SID of this cache")))
}

#[unsafe(no_mangle)]
pub extern "C" fn tg_avc_open() -> *mut Handle {
    guarded(ptr::null_mut(), || {
        let avc = Avc::open()?;
        let classes = Mutex::default();
        Ok(Box::into_raw(Box::new(Handle { avc, classes })))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_avc_close(avc: *mut Handle) {
    guarded((), || {
        if !avc.is_null() {
            // SAFETY: from `tg_avc_open`, and used by nobody any more.
            drop(unsafe { Box::from_raw(avc) });
        }
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn tg_avc_error() -> *const c_char {
    last_error()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_avc_context_to_sid(
    avc: *const Handle,
    context: *const c_char,
    to: *mut u32,
) -> c_int {
    // SAFETY: as the header has it.
    done(|| unsafe { put(to, there(avc)?.avc.sid(text(context)?)?.number()) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_avc_sid_to_context(
    avc: *const Handle,
    number: u32,
    to: *mut *mut c_char,
) -> c_int {
    // SAFETY: as the header has it.
    done(|| unsafe {
        let handle = there(avc)?;
        let context = handle.avc.context(sid(handle, number)?);
        put_text(to, &context.unwrap_or_default())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_avc_get_initial_sid(
    avc: *const Handle,
    name: *const c_char,
    to: *mut u32,
) -> c_int {
    // SAFETY: as the header has it.
    done(|| unsafe { put(to, there(avc)?.avc.initial_sid(text(name)?)?.number()) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_string_to_security_class(
    avc: *const Handle,
    name: *const c_char,
    permissions: *const *const c_char,
) -> *const Class {
    guarded(ptr::null(), || {
        // SAFETY: as the header has it.
        let handle = unsafe { there(avc)? };
        // SAFETY: as above.
        let name = unsafe { text(name)? };
        let mut names = Vec::new();
        if permissions.is_null() {
            return Err(Fault::NULL.into());
        }
        loop {
            // SAFETY: the list goes on until NULL.
            let one = unsafe { *permissions.add(names.len()) };
            if one.is_null() {
                break;
            }
            // SAFETY: as the header has it.
            names.push(unsafe { text(one)? });
        }
        let class = handle.avc.class(name, &names)?;
        let mut classes = handle.classes.lock().unwrap_or_else(|e| e.into_inner());
        let known = classes.iter().find(|known| known.is_same(&class));
        if let Some(known) = known {
            return Ok(ptr::from_ref(&**known));
        }
        classes.push(Box::new(class));
        Ok(classes
            .last()
            .map_or(ptr::null(), |class| ptr::from_ref(&**class)))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_string_to_av_perm(
    class: *const Class,
    permission: *const c_char,
) -> u32 {
    guarded(0, || {
        // SAFETY: as the header has it.
        let (class, name) = unsafe { (there(class)?, text(permission)?) };
        let unknown = || Fault::invalid(&format!("{} has no `{name}`", class.name()));
        Ok(class.permission(name).ok_or_else(unknown)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_avc_has_perm(
    avc: *const Handle,
    source: u32,
    target: u32,
    class: *const Class,
    requested: u32,
    about: *const c_char,
) -> c_int {
    done(|| {
        // SAFETY: as the header has it.
        let (handle, class) = unsafe { (there(avc)?, there(class)?) };
        let about = match about.is_null() {
            true => "",
            // SAFETY: as the header has it.
            false => unsafe { text(about)? },
        };
        let (source, target) = (sid(handle, source)?, sid(handle, target)?);
        Ok(handle
            .avc
            .has_perm(source, target, class, requested, &about)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_avc_has_perm_noaudit(
    avc: *const Handle,
    source: u32,
    target: u32,
    class: *const Class,
    requested: u32,
    decision: *mut AvDecision,
) -> c_int {
    done(|| {
        // SAFETY: as the header has it.
        let (handle, class) = unsafe { (there(avc)?, there(class)?) };
        let (source, target) = (sid(handle, source)?, sid(handle, target)?);
        if !decision.is_null() {
            let known = handle.avc.decision(source, target, class)?;
            let known = AvDecision {
                allowed: known.allowed,
                auditallow: known.auditallow,
                auditdeny: known.auditdeny,
                permissive: known.permissive.into(),
            };
            // SAFETY: as the header has it.
            unsafe { put::<_, Fault>(decision, known)? };
        }
        Ok(handle
            .avc
            .has_perm_noaudit(source, target, class, requested)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_check_access(
    avc: *const Handle,
    source: *const c_char,
    target: *const c_char,
    class: *const c_char,
    permission: *const c_char,
    about: *const c_char,
) -> c_int {
    done(|| {
        // SAFETY: as the header has it.
        let (handle, source, target) = unsafe { (there(avc)?, text(source)?, text(target)?) };
        // SAFETY: as above.
        let (class, permission) = unsafe { (text(class)?, text(permission)?) };
        let about = match about.is_null() {
            true => "",
            // SAFETY: as above.
            false => unsafe { text(about)? },
        };
        let avc = &handle.avc;
        let class = avc.class(class, &[permission])?;
        Ok(avc.has_perm(
            avc.sid(source)?,
            avc.sid(target)?,
            &class,
            class.all(),
            &about,
        )?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_avc_compute_create(
    avc: *const Handle,
    source: u32,
    target: u32,
    class: *const Class,
    name: *const c_char,
    made: *mut u32,
) -> c_int {
    done(|| {
        // SAFETY: as the header has it.
        let (handle, class) = unsafe { (there(avc)?, there(class)?) };
        let name = match name.is_null() {
            true => None,
            // SAFETY: as the header has it.
            false => Some(unsafe { text(name)? }),
        };
        let (source, target) = (sid(handle, source)?, sid(handle, target)?);
        let sid = handle.avc.compute_create(source, target, class, name)?;
        // SAFETY: as the header has it.
        unsafe { put(made, sid.number()) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_avc_compute_member(
    avc: *const Handle,
    source: u32,
    target: u32,
    class: *const Class,
    member: *mut u32,
) -> c_int {
    done(|| {
        // SAFETY: as the header has it.
        let (handle, class) = unsafe { (there(avc)?, there(class)?) };
        let (source, target) = (sid(handle, source)?, sid(handle, target)?);
        let sid = handle.avc.compute_member(source, target, class)?;
        // SAFETY: as the header has it.
        unsafe { put(member, sid.number()) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_avc_compute_relabel(
    avc: *const Handle,
    source: u32,
    target: u32,
    class: *const Class,
    relabelled: *mut u32,
) -> c_int {
    done(|| {
        // SAFETY: as the header has it.
        let (handle, class) = unsafe { (there(avc)?, there(class)?) };
        let (source, target) = (sid(handle, source)?, sid(handle, target)?);
        let sid = handle.avc.compute_relabel(source, target, class)?;
        // SAFETY: as the header has it.
        unsafe { put(relabelled, sid.number()) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_security_canonicalize_context(
    avc: *const Handle,
    context: *const c_char,
    canonical: *mut *mut c_char,
) -> c_int {
    // SAFETY: as the header has it.
    done(|| unsafe { put_text(canonical, &there(avc)?.avc.check_context(text(context)?)?) })
}

/// A descriptor of C's.
fn descriptor<'a>(fd: c_int) -> Result<BorrowedFd<'a>, Fault> {
    if fd < 0 {
        return Err(Fault::invalid("a negative number is not a descriptor"));
    }
    // SAFETY: C keeps it open during the call; one that is not is told by the kernel.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_getpeercon(
    avc: *const Handle,
    fd: c_int,
    context: *mut *mut c_char,
) -> c_int {
    // SAFETY: as the header has it.
    done(|| unsafe { put_text(context, &there(avc)?.avc.peer(&descriptor(fd)?)?.context) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_getpidfdcon(
    avc: *const Handle,
    pidfd: c_int,
    context: *mut *mut c_char,
) -> c_int {
    // SAFETY: as the header has it.
    done(|| unsafe {
        put_text(
            context,
            &there(avc)?.avc.process(descriptor(pidfd)?)?.context,
        )
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_getcon(avc: *const Handle, context: *mut *mut c_char) -> c_int {
    // SAFETY: as the header has it.
    done(|| unsafe { put_text(context, &there(avc)?.avc.own()?.context) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_freecon(context: *mut c_char) {
    guarded((), || {
        if !context.is_null() {
            // SAFETY: from `put_text`, and freed once.
            drop(unsafe { CString::from_raw(context) });
        }
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_avc_status(avc: *const Handle, to: *mut Status) -> c_int {
    done(|| {
        // SAFETY: as the header has it.
        let status = unsafe { there(avc)? }.avc.status().ok_or(CHANGING)?;
        let status = Status {
            sequence: status.sequence,
            enforcing: status.enforcing.into(),
            policyload: status.policyload,
            deny_unknown: status.deny_unknown.into(),
            enabled: status.enabled.into(),
        };
        // SAFETY: as the header has it.
        unsafe { put(to, status) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_avc_sequence(avc: *const Handle) -> u32 {
    // SAFETY: as the header has it.
    guarded(1, || Ok(unsafe { there(avc)? }.avc.sequence()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_avc_wait(
    avc: *const Handle,
    sequence: u32,
    milliseconds: u32,
) -> c_int {
    guarded(-1, || {
        let at_most = Duration::from_millis(milliseconds.into());
        // SAFETY: as the header has it.
        Ok(unsafe { there(avc)? }.avc.wait(sequence, at_most).into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_null_is_looked_at() {
        let (null, mut sid, mut context) = (ptr::null(), 0, ptr::null_mut());
        // SAFETY: NULL is what is tested.
        unsafe {
            assert_eq!(tg_avc_context_to_sid(null, c"x".as_ptr(), &raw mut sid), -1);
            assert_eq!(tg_avc_has_perm(null, 1, 1, ptr::null(), 1, ptr::null()), -1);
            assert!(tg_string_to_security_class(null, c"x".as_ptr(), ptr::null()).is_null());
            assert_eq!(tg_string_to_av_perm(ptr::null(), c"x".as_ptr()), 0);
            assert_eq!(tg_getcon(null, &raw mut context), -1);
            assert_eq!(tg_avc_status(null, ptr::null_mut()), -1);
            // what would never be used
            assert_eq!(tg_avc_sequence(null) % 2, 1);
            assert_eq!(tg_avc_wait(null, 0, 0), -1);
            tg_freecon(ptr::null_mut());
            tg_avc_close(ptr::null_mut());
        }
    }
}
