//! Which parts of a path are another time something else.

use super::statement::ANY;

/// Whether a name was made up for the occasion: it holds the process's number, or
/// letters and digits as `mktemp` draws them.
pub fn is_random(name: &str, pid: u32) -> bool {
    let parts = name.split(|c: char| !c.is_ascii_alphanumeric());
    parts.filter(|part| !part.is_empty()).any(|part| {
        let digits = part.bytes().all(|b| b.is_ascii_digit());
        if digits {
            return part.len() >= 6 || (pid > 1 && part == pid.to_string());
        }
        part.len() >= 5 && drawn(part)
    })
}

/// Letters and digits, or small letters and capitals, in turns that no word has:
/// `Xa93k`, not `sha256` or `CMakeLists`.
fn drawn(part: &str) -> bool {
    let kinds: Vec<u8> = part
        .bytes()
        .map(|b| match b {
            b'0'..=b'9' => 0,
            b'a'..=b'z' => 1,
            _ => 2,
        })
        .collect();
    let turns = |digits: bool| {
        let pairs = kinds.windows(2);
        pairs
            .filter(|p| p[0] != p[1] && digits == p.contains(&0))
            .count()
    };
    turns(true) >= 2 || turns(false) >= 4
}

/// The directory of a path, and the name in it; of `/` and what is no path none.
pub fn split(path: &str) -> Option<(&str, &str)> {
    let (dir, name) = path.rsplit_once('/')?;
    let dir = if dir.is_empty() { "/" } else { dir };
    (path.starts_with('/') && !name.is_empty()).then_some((dir, name))
}

/// A path with [`ANY`] for each component that is another time something else: a user's
/// number in /run/user, and directories with a random name. The last stays.
pub fn general(path: &str, pid: u32) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    let last = parts.len() - 1;
    let general = parts.iter().enumerate().map(|(at, part)| {
        let user = parts[..at] == ["", "run", "user"] && part.bytes().all(|b| b.is_ascii_digit());
        if at > 0 && at < last && (user || is_random(part, pid)) {
            ANY.to_string()
        } else {
            (*part).to_owned()
        }
    });
    general.collect::<Vec<_>>().join("/")
}

/// A path in a user's home as it is in any.
pub fn any_home(path: &str) -> Option<String> {
    let (_, rest) = path.strip_prefix("/home/")?.split_once('/')?;
    Some(format!("/home/{ANY}/{rest}"))
}

/// How many components a path has.
pub fn depth(path: &str) -> u32 {
    path.split('/').filter(|part| !part.is_empty()).count() as u32
}

/// Whether a directory is somebody's home: its names are what shells and desktops read.
pub fn is_home(dir: &str) -> bool {
    dir == "/root" || split(dir).is_some_and(|(above, _)| above == "/home")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_names() {
        for name in [
            "foo.Xa93k",
            "tmp.aB3dE7gH",
            "sess_1234567",
            "cargo-installx9Q2zK",
            "a.4711",
        ] {
            assert!(is_random(name, 4711), "{name}");
        }
        for name in [
            "sha256",
            "CMakeLists.txt",
            "x86_64-linux-gnu",
            "README.md",
            "libssl.so.3",
            "python3.11",
            "2026-11-22",
            "node_modules",
            "MyDocument",
            "404.html",
            "id_ed25519",
        ] {
            assert!(!is_random(name, 4711), "{name}");
        }
    }

    #[test]
    fn what_is_general() {
        assert_eq!(general("/run/user/1000/bus", 1), "/run/user/\0/bus");
        assert_eq!(general("/tmp/foo.Xa93k/x", 1), "/tmp/\0/x");
        assert_eq!(general("/home/ann/work/x", 1), "/home/ann/work/x");
        assert_eq!(any_home("/home/ann/work/x").unwrap(), "/home/\0/work/x");
        assert_eq!(any_home("/home/ann"), None);
        assert_eq!(split("/x"), Some(("/", "x")));
        assert_eq!(split("/"), None);
        assert!(is_home("/home/ann") && is_home("/root") && !is_home("/home/ann/x"));
    }
}
