//! What operations are done in, and to.

use std::fs;
use std::io;

use crate::sys::c;
use crate::te_ops::exec::PROGRAMS;
use crate::te_ops::policy::PLACES;
use crate::te_ops::sys::{set_xattr, sys};

/// Modules that operations are about, where there are such.
const MODULES: &[&str] = &[
    "xfrm_user",
    "inet_diag",
    "tcp_diag",
    "sctp",
    "vsock",
    "af_alg",
    "crypto_user",
    "nfnetlink",
    "tun",
];

fn tmpfs(on: &str, flags: u64) -> io::Result<()> {
    fs::create_dir_all(on)?;
    let on = c(on);
    let (source, data) = (c"none".as_ptr(), c"".as_ptr());
    sys!(libc::mount(
        source,
        on.as_ptr(),
        c"tmpfs".as_ptr(),
        flags,
        data.cast()
    ))
    .map(drop)
}

/// Makes it; by SELinux, with labels.
pub fn make(selinux: bool) -> io::Result<()> {
    // SAFETY: no memory is touched.
    unsafe { libc::umask(0) };
    tmpfs("/srv/ops", 0)?;
    tmpfs("/srv/ops/mounted", 0)?;
    tmpfs("/srv/ops/nosuid", libc::MS_NOSUID)?;
    for (place, label) in PLACES {
        let path = format!("/srv/ops/{place}");
        fs::create_dir_all(&path)?;
        let within = match *place {
            "mounted" => {
                fs::create_dir(format!("{path}/old"))?;
                Some(format!("{path}/old"))
            }
            place if PROGRAMS.contains(&place) => {
                fs::copy("/proc/self/exe", format!("{path}/program"))?;
                Some(format!("{path}/program"))
            }
            "obj" => None,
            _ => {
                fs::write(format!("{path}/f"), "content\n")?;
                Some(format!("{path}/f"))
            }
        };
        if selinux {
            for path in within.iter().chain([&path]) {
                set_xattr(path, "security.selinux", label)?;
            }
        }
    }
    // what is there is there from the beginning
    std::process::Command::new("modprobe")
        .args(["-a", "-q"])
        .args(MODULES)
        .status()?;
    // what root may do is to be decided by what governs it alone
    for (name, value) in [
        ("net/ipv4/ping_group_range", "0 2147483647"),
        ("kernel/perf_event_paranoid", "2"),
        // it is asked whether a module may be looked for, and then none is: that takes long
        ("kernel/modprobe", "/srv/ops/nothing"),
    ] {
        fs::write(format!("/proc/sys/{name}"), value)?;
    }
    Ok(())
}

/// Loads a policy into the kernel's SELinux, and has it enforced.
pub fn load(policy: &str) -> io::Result<()> {
    let on = c"/sys/fs/selinux";
    let kind = c"selinuxfs".as_ptr();
    sys!(libc::mount(kind, on.as_ptr(), kind, 0, std::ptr::null()))?;
    // in one piece
    crate::te_ops::sys::open("/sys/fs/selinux/load", libc::O_RDWR)
        .and_then(|load| io::Write::write_all(&mut &load, &fs::read(policy)?))?;
    enforce("1")
}

/// Whether SELinux refuses what it does not allow. As it begins to, it forgets what it has decided.
pub fn enforce(whether: &str) -> io::Result<()> {
    fs::write("/sys/fs/selinux/enforce", whether)
}
