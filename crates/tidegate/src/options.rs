//! Options as words, which a policy keeps of the command line that named it.

use std::path::{self, Path};

/// Returns an option with a file or a directory, by a path that begins at the root.
pub fn of_path(name: &str, path: &Path) -> String {
    let path = path::absolute(path).unwrap_or_else(|_| path.to_owned());
    format!("--{name}={}", path.display())
}

/// Returns an option with a program. One that is named without a directory is searched for each time.
pub fn of_program(name: &str, program: &Path) -> String {
    match program.parent() {
        Some(dir) if dir != Path::new("") => of_path(name, program),
        _ => format!("--{name}={}", program.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_begins_at_the_root_and_a_program_may_be_a_name() {
        let here = std::env::current_dir().unwrap();
        let there = format!("--te={}/a.cil", here.display());
        assert_eq!(of_path("te", Path::new("a.cil")), there);
        assert_eq!(of_path("te", Path::new("/a.cil")), "--te=/a.cil");
        let program = |program| of_program("secilc", Path::new(program));
        assert_eq!(program("secilc"), "--secilc=secilc");
        let there = format!("--secilc={}/secilc", here.display());
        assert_eq!(program("./secilc"), there);
    }
}
