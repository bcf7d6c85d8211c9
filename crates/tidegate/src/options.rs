//! Options as words, which a policy keeps of the command line that named it.

use std::path::{self, Path};

use tidegate_audit::printable;

use crate::exit::{Code, Failure, Outcome};

/// Returns an option with a file or a directory, by a path that begins at the root.
///
/// # Errors
/// [`Code::Usage`] for a path whose option would name another file, or none: it is not UTF-8, or begins in a directory that has
/// been removed.
pub fn of_path(name: &str, path: &Path) -> Outcome<String> {
    let absolute = path::absolute(path).map_err(|e| {
        let shown = printable(&path.to_string_lossy());
        let message = format!("cannot keep `--{name} {shown}` for a reload: {e}");
        Failure::new(Code::Usage, message)
    })?;
    of_text(name, &absolute)
}

/// Returns an option with a program. One that is named without a directory is searched for each time.
///
/// # Errors
/// As [`of_path`].
pub fn of_program(name: &str, program: &Path) -> Outcome<String> {
    match program.parent() {
        Some(dir) if dir != Path::new("") => of_path(name, program),
        _ => of_text(name, program),
    }
}

fn of_text(name: &str, path: &Path) -> Outcome<String> {
    let text = path.to_str().ok_or_else(|| {
        let shown = printable(&path.to_string_lossy());
        let message = format!(
            "cannot keep `--{name} {shown}` for a reload, as the name is not UTF-8: give it another name"
        );
        Failure::new(Code::Usage, message)
    })?;
    Ok(format!("--{name}={text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_path_begins_at_the_root_and_a_program_may_be_a_name() {
        let here = std::env::current_dir().unwrap();
        let there = format!("--te={}/a.cil", here.display());
        let path = |path| of_path("te", Path::new(path)).unwrap();
        assert_eq!(path("a.cil"), there);
        assert_eq!(path("/a.cil"), "--te=/a.cil");
        let program = |program| of_program("secilc", Path::new(program)).unwrap();
        assert_eq!(program("secilc"), "--secilc=secilc");
        let there = format!("--secilc={}/secilc", here.display());
        assert_eq!(program("./secilc"), there);
    }

    #[test]
    fn a_name_that_is_not_utf_8_is_refused_and_none_other_kept() {
        for name in [&b"/etc/a\xff.plm"[..], b"a\xff.plm", b"\xff"] {
            let path = Path::new(OsStr::from_bytes(name));
            assert_eq!(of_path("policy", path).unwrap_err().code, Code::Usage);
            assert_eq!(of_program("secilc", path).unwrap_err().code, Code::Usage);
        }
    }
}
