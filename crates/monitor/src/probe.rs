//! What this kernel has: hooks, functions, and whether it takes an LSM program at all.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;

use crate::sys;

/// A hook that is hardly ever called, to try on.
const HOOK: &str = "quotactl";

/// The kernel's BTF, which takes a moment to read.
#[derive(Debug)]
pub struct KernelTypes(NonNull<libbpf_sys::btf>);

impl KernelTypes {
    /// Reads it.
    ///
    /// # Errors
    /// The kernel was built without BTF.
    pub fn read() -> io::Result<Self> {
        // SAFETY: no arguments.
        let btf = unsafe { libbpf_sys::btf__load_vmlinux_btf() };
        NonNull::new(btf)
            .map(Self)
            .ok_or_else(io::Error::last_os_error)
    }

    /// Whether the kernel was built with BPF LSM: its BTF has the hooks' functions.
    #[must_use]
    pub fn has_bpf_lsm(&self) -> bool {
        self.has_hook(HOOK)
    }

    /// Whether the kernel has the LSM hook of this name.
    #[must_use]
    pub fn has_hook(&self, name: &str) -> bool {
        self.hook(name).is_some()
    }

    /// Loads an LSM program that allows everything, attaches it and lets it go.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn try_lsm_program(&self) -> io::Result<()> {
        self.attach_empty(HOOK, false).map(drop)
    }

    /// Attaches a program that allows everything to a hook, for as long as the link is open.
    pub(crate) fn attach_empty(&self, hook: &str, sleepable: bool) -> io::Result<OwnedFd> {
        let id = self
            .hook(hook)
            .ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
        let flags = if sleepable {
            libbpf_sys::BPF_F_SLEEPABLE
        } else {
            0
        };
        let kind = (libbpf_sys::BPF_PROG_TYPE_LSM, libbpf_sys::BPF_LSM_MAC);
        let program = load_empty(kind, id, flags)?;
        sys::attach(program.as_fd())
    }

    /// Whether a program can be put before this function of the kernel, which the compiler may have taken into
    /// others, or given another name.
    pub(crate) fn try_function(&self, name: &str) -> bool {
        let kind = (
            libbpf_sys::BPF_PROG_TYPE_TRACING,
            libbpf_sys::BPF_TRACE_FENTRY,
        );
        self.function(name)
            .is_some_and(|id| load_empty(kind, id, 0).is_ok())
    }

    /// Whether the kernel's BTF has a function.
    pub(crate) fn has_function(&self, name: &str) -> bool {
        self.function(name).is_some()
    }

    fn hook(&self, name: &str) -> Option<u32> {
        self.function(&format!("bpf_lsm_{name}"))
    }

    /// A function's number in the kernel's BTF; `None`: it has no such function.
    fn function(&self, name: &str) -> Option<u32> {
        let name = CString::new(name).ok()?;
        // SAFETY: a BTF that this value alone has, and a NUL-terminated name.
        let id = unsafe {
            libbpf_sys::btf__find_by_name_kind(
                self.0.as_ptr(),
                name.as_ptr(),
                libbpf_sys::BTF_KIND_FUNC,
            )
        };
        u32::try_from(id).ok().filter(|&id| id > 0)
    }
}

impl Drop for KernelTypes {
    fn drop(&mut self) {
        // SAFETY: read by this value, used no more.
        unsafe { libbpf_sys::btf__free(self.0.as_ptr()) };
    }
}

/// Loads a program that does nothing, for a function by its number in the kernel's BTF.
fn load_empty(
    (kind, attach): (libbpf_sys::bpf_prog_type, libbpf_sys::bpf_attach_type),
    function: u32,
    flags: u32,
) -> io::Result<OwnedFd> {
    // r0 = 0; exit
    let code = [
        libbpf_sys::bpf_insn {
            code: 0xb7,
            ..Default::default()
        },
        libbpf_sys::bpf_insn {
            code: 0x95,
            ..Default::default()
        },
    ];
    let mut opts = libbpf_sys::bpf_prog_load_opts {
        sz: size_of::<libbpf_sys::bpf_prog_load_opts>() as u64,
        expected_attach_type: attach,
        attach_btf_id: function,
        prog_flags: flags,
        ..Default::default()
    };
    // SAFETY: NUL-terminated strings; code and options outlive the call.
    let fd = unsafe {
        libbpf_sys::bpf_prog_load(
            kind,
            c"tg_empty".as_ptr(),
            c"GPL".as_ptr(),
            code.as_ptr(),
            code.len() as u64,
            &raw mut opts,
        )
    };
    sys::owned(fd)
}
