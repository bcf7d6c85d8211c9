//! What looks like an attack: a refusal that the policy is there for, and that nobody
//! fixes without a second look.

use tidegate_bundle::{Attrs, Policy};
use tidegate_monitor::{Op, Reason};

use super::name::{is_home, split};
use super::refusal::Refusal;

/// Why a refusal looks like an attack, if it does: the subject has heard the network, or
/// is as low as what has, and it reached for what people rely on.
pub fn suspicion(refusal: &Refusal, policy: &Policy) -> Option<&'static str> {
    let heard = refusal.level == 0 || refusal.falls.iter().any(|fall| fall.is_by_network());
    if !heard {
        return None;
    }
    if refusal.reason == Reason::TopOnly || refusal.class == "system" {
        return Some("it is for the top level only");
    }
    match refusal.op {
        Op::Signal | Op::Ptrace | Op::Sched | Op::Tty | Op::Key => {
            return Some("it is about another process");
        }
        _ => {}
    }
    let path = refusal.path()?;
    let rule = policy.lookup(path.as_bytes());
    if refusal.reason == Reason::Noopen || rule.attrs.contains(Attrs::LOWNOOPEN) {
        return Some("it is a secret");
    }
    if matches!(refusal.op, Op::Connect | Op::Send) && path.starts_with("/run/user/") {
        return Some("it is a session's socket");
    }
    if is_dotfile(path) {
        return Some("it is a dotfile");
    }
    if path.split('/').any(|part| matches!(part, "bin" | "sbin")) {
        return Some("programs are run from there");
    }
    let own = refusal.made || matches!(refusal.op, Op::Create | Op::Connect | Op::Send);
    let is_system = rule.level == policy.top() && !rule.attrs.contains(Attrs::CREATOR);
    if is_system && !own {
        return Some("the system relies on it");
    }
    None
}

/// Whether a path is, or is below, a name in a home that begins with a dot.
fn is_dotfile(path: &str) -> bool {
    let mut at = path;
    while let Some((dir, name)) = split(at) {
        if is_home(dir) {
            return name.starts_with('.');
        }
        at = dir;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dotfiles() {
        assert!(is_dotfile("/home/ann/.bashrc"));
        assert!(is_dotfile("/home/ann/.config/x/y"));
        assert!(is_dotfile("/root/.profile"));
        assert!(!is_dotfile("/home/ann/work/.git/config"));
        assert!(!is_dotfile("/etc/.x"));
    }
}
