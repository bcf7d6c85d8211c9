//! What a machine needs to enforce, and whether it has it.

use std::fs;
use std::io::Read;

use rustix::process::geteuid;
use rustix::system::uname;
use serde::Serialize;
use tidegate_census::{Offer, Table};
use tidegate_monitor::offer;
use tidegate_monitor::probe::KernelTypes;

/// The oldest kernel.
const OLDEST: (u32, u32) = (6, 12);

/// How many rows of the census are named, where nobody has decided on more.
const NAMED: usize = 6;

/// One thing looked at.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// What.
    pub what: &'static str,
    /// Whether it is as it should be; `None`: it cannot be told.
    pub ok: Option<bool>,
    /// What was found.
    pub found: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Check {
    fn new(what: &'static str, ok: impl Into<Option<bool>>, found: impl Into<String>) -> Check {
        Check {
            what,
            ok: ok.into(),
            found: found.into(),
            fix: None,
        }
    }

    fn fix(mut self, how: impl Into<String>) -> Check {
        if self.ok != Some(true) {
            self.fix = Some(how.into());
        }
        self
    }
}

/// What keeps this machine from enforcing: the first thing found. Root also tries.
pub fn obstacle() -> Option<Check> {
    let looked = [
        kernel(),
        built_in(),
        in_lsm_list(),
        btf(),
        lockdown(),
        ftrace(),
        addresses(),
    ];
    looked
        .into_iter()
        .chain(geteuid().is_root().then(attempt))
        .find(|c| c.ok == Some(false))
}

/// Everything there is to look at, the attempt last.
pub fn examine() -> Vec<Check> {
    vec![
        kernel(),
        built_in(),
        in_lsm_list(),
        btf(),
        lockdown(),
        ftrace(),
        addresses(),
        bpffs(),
        privileges(),
        namespace(),
        census(),
        attempt(),
    ]
}

/// What a start says of a kernel that offers what nobody has decided on, as far as the kernel's types tell.
pub fn undecided() -> Option<String> {
    let told = offer::by_types().map_err(|e| e.to_string());
    match told.and_then(|offer| open(&offer)) {
        Ok(None) => None,
        Ok(Some(open)) => Some(format!("the census of this kernel has {open}; {UNDECIDED}")),
        Err(e) => Some(format!("the census of this kernel cannot be told: {e}")),
    }
}

fn kernel() -> Check {
    let release = uname().release().to_string_lossy().into_owned();
    let ok = version(&release).map(|v| v >= OLDEST);
    let (major, minor) = OLDEST;
    Check::new("kernel", ok, release).fix(format!("boot Linux {major}.{minor} or later"))
}

/// `6.12.107+deb13-cloud-amd64` is (6, 12).
fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn built_in() -> Check {
    let what = "BPF LSM built";
    let fix = "boot a kernel built with CONFIG_BPF_LSM=y, as Debian's, Ubuntu's and Fedora's are";
    match config("CONFIG_BPF_LSM") {
        Some(value) => Check::new(what, value == "y", format!("CONFIG_BPF_LSM={value}")).fix(fix),
        None => match KernelTypes::read() {
            Ok(kernel) => Check::new(
                what,
                kernel.has_bpf_lsm(),
                "by the hooks in the kernel's BTF",
            )
            .fix(fix),
            Err(_) => Check::new(what, None, "no kernel configuration to read").fix(fix),
        },
    }
}

/// An option of the running kernel's configuration; `n` if it is not set.
fn config(option: &str) -> Option<String> {
    let release = uname().release().to_string_lossy().into_owned();
    let text = fs::read_to_string(format!("/boot/config-{release}"))
        .ok()
        .or_else(|| {
            let mut text = String::new();
            let file = fs::File::open("/proc/config.gz").ok()?;
            flate2::read::GzDecoder::new(file)
                .read_to_string(&mut text)
                .ok()?;
            Some(text)
        })?;
    Some(option_of(&text, option))
}

fn option_of(config: &str, option: &str) -> String {
    let value = config
        .lines()
        .find_map(|l| l.strip_prefix(option)?.strip_prefix('='));
    value.unwrap_or("n").into()
}

fn in_lsm_list() -> Check {
    let what = "BPF LSM enabled";
    match fs::read_to_string("/sys/kernel/security/lsm") {
        Ok(list) => {
            let list = list.trim();
            let ok = list.split(',').any(|l| l == "bpf");
            Check::new(what, ok, format!("lsm={list}")).fix(boot_parameter(list))
        }
        Err(e) => Check::new(what, None, format!("/sys/kernel/security/lsm: {e}"))
            .fix("mount -t securityfs securityfs /sys/kernel/security"),
    }
}

/// How to have the kernel start with BPF LSM.
fn boot_parameter(list: &str) -> String {
    // the kernel adds `capability` by itself
    let others: Vec<_> = list
        .split(',')
        .filter(|l| !l.is_empty() && *l != "capability")
        .collect();
    let list = [others.as_slice(), &["bpf"]].concat().join(",");
    format!(
        "add the boot parameter lsm={list} (Debian, Ubuntu: append it to \
         GRUB_CMDLINE_LINUX in /etc/default/grub, run update-grub, restart)"
    )
}

fn btf() -> Check {
    let path = "/sys/kernel/btf/vmlinux";
    let ok = fs::metadata(path).is_ok();
    let found = if ok {
        path
    } else {
        "no /sys/kernel/btf/vmlinux"
    };
    Check::new("BTF", ok, found).fix("boot a kernel built with CONFIG_DEBUG_INFO_BTF=y")
}

fn lockdown() -> Check {
    let what = "lockdown";
    let Ok(text) = fs::read_to_string("/sys/kernel/security/lockdown") else {
        return Check::new(what, true, "not built in");
    };
    let state = lockdown_state(&text);
    Check::new(what, state != "confidentiality", state)
        .fix("boot with lockdown=integrity: confidentiality forbids BPF to read the kernel")
}

/// `none [integrity] confidentiality` is integrity.
fn lockdown_state(text: &str) -> &str {
    text.split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or("none", |(s, _)| s)
}

fn ftrace() -> Check {
    let what = "ftrace";
    match fs::read_to_string("/proc/sys/kernel/ftrace_enabled") {
        Ok(value) => {
            let value = value.trim();
            Check::new(what, value == "1", format!("kernel.ftrace_enabled={value}"))
                .fix("sysctl kernel.ftrace_enabled=1: without it BPF LSM programs never run")
        }
        Err(_) => Check::new(what, false, "no kernel.ftrace_enabled")
            .fix("boot a kernel built with CONFIG_DYNAMIC_FTRACE=y"),
    }
}

/// Whether the kernel tells anybody where its variables are: paths are walked beside `rename_lock` and `mount_lock`.
fn addresses() -> Check {
    let what = "addresses";
    let Ok(value) = fs::read_to_string("/proc/sys/kernel/kptr_restrict") else {
        return Check::new(what, None, "no kernel.kptr_restrict");
    };
    let value = value.trim();
    Check::new(what, value != "2", format!("kernel.kptr_restrict={value}"))
        .fix("sysctl kernel.kptr_restrict=1: a start needs to know where the kernel has rename_lock; 2 may be set again after it")
}

fn bpffs() -> Check {
    const BPF_FS_MAGIC: i64 = 0xcafe_4a11;
    let what = "bpffs";
    match rustix::fs::statfs("/sys/fs/bpf") {
        Ok(stat) if stat.f_type == BPF_FS_MAGIC => Check::new(what, true, "/sys/fs/bpf"),
        Ok(_) => Check::new(what, true, "not mounted; `start` mounts it"),
        Err(e) => Check::new(what, false, format!("/sys/fs/bpf: {e}"))
            .fix("mount -t sysfs sysfs /sys; it needs CONFIG_BPF_SYSCALL=y"),
    }
}

fn privileges() -> Check {
    const CAP_SYS_ADMIN: u32 = 21;
    let what = "privileges";
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    let effective = effective
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0);
    let ok = geteuid().is_root() && effective & 1 << CAP_SYS_ADMIN != 0;
    let found = if ok {
        "root"
    } else {
        "not root, or without CAP_SYS_ADMIN"
    };
    Check::new(what, ok, found).fix("run as root, outside a container")
}

fn namespace() -> Check {
    const INITIAL: &str = "pid:[4026531836]";
    let what = "pid namespace";
    let here = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let ok = here.as_os_str() == INITIAL;
    let found = if ok {
        "the initial one"
    } else {
        "a container's"
    };
    Check::new(what, ok, found).fix("run it on the machine itself, not in a container")
}

const UNDECIDED: &str = "operations that take a capability, and objects without a label, are refused below the top all the same; \
                         `tidegate census --undecided` lists all (docs/dev/census.md)";

fn census() -> Check {
    let what = "census";
    let told = offer::whole().map_err(|e| e.to_string());
    match told.and_then(|offer| open(&offer)) {
        Ok(None) => Check::new(what, true, "all that this kernel offers is decided on"),
        Ok(Some(open)) => Check::new(what, None, open).fix(UNDECIDED),
        Err(e) => Check::new(what, None, format!("cannot be told: {e}")),
    }
}

/// What of an offer nobody has decided on, in words.
fn open(offer: &Offer) -> Result<Option<String>, String> {
    let table = Table::read()?;
    let open = table.undecided(offer);
    if open.is_empty() {
        return Ok(None);
    }
    let names: Vec<String> = open.iter().take(NAMED).map(|row| row.to_string()).collect();
    let names = names.join(", ");
    Ok(Some(match open.len().saturating_sub(NAMED) {
        0 => format!("rows without a decision: {names}"),
        more => format!("rows without a decision: {names} and {more} more"),
    }))
}

fn attempt() -> Check {
    match KernelTypes::read().and_then(|kernel| kernel.try_lsm_program()) {
        Ok(()) => Check::new("LSM program", true, "was loaded and attached"),
        Err(e) => Check::new("LSM program", false, format!("is refused: {e}"))
            .fix("see the lines above; if all are ok, the kernel refused it for another reason: see dmesg"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        assert_eq!(version("6.12.107+deb13-cloud-amd64"), Some((6, 12)));
        assert!(version("7.2.13-1").unwrap() >= OLDEST);
        assert!(version("6.6.1").unwrap() < OLDEST);
        assert_eq!(version("strange"), None);
    }

    #[test]
    fn the_boot_parameter_keeps_what_is_there() {
        let fix = boot_parameter("capability,landlock,yama,apparmor");
        assert!(fix.contains("lsm=landlock,yama,apparmor,bpf "), "{fix}");
    }

    #[test]
    fn what_a_newer_kernel_adds_is_named() {
        let mut offer = Offer::default();
        offer.add_function("__x64_sys_read");
        assert_eq!(open(&offer), Ok(None));
        for n in 0..=NAMED {
            offer.add_function(&format!("bpf_lsm_not_there_yet_{n}"));
        }
        let told = open(&offer).unwrap().unwrap();
        assert!(told.contains("hook not_there_yet_0, hook"), "{told}");
        assert!(told.ends_with("and 1 more"), "{told}");
    }

    #[test]
    fn configurations_are_read() {
        let text = "# CONFIG_X is not set\nCONFIG_BPF_LSM=y\nCONFIG_BPF_LSM_MORE=m\n";
        assert_eq!(option_of(text, "CONFIG_BPF_LSM"), "y");
        assert_eq!(option_of(text, "CONFIG_X"), "n");
    }

    #[test]
    fn the_lockdown_state_is_the_marked_one() {
        assert_eq!(
            lockdown_state("none [integrity] confidentiality\n"),
            "integrity"
        );
        assert_eq!(lockdown_state("[none] integrity confidentiality\n"), "none");
    }
}
