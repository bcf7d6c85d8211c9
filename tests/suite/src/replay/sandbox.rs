//! Where sequences are played: the programs they execute, and a directory of its
//! own for each.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use tidegate_model::{DIRECTORIES, FILES, Program};

/// Where the programs are.
pub const PROGRAMS: &str = "/srv/replay-bin/";

/// Puts the programs in their places: all are this one.
pub fn install() -> Result<()> {
    fs::create_dir_all(PROGRAMS).context(PROGRAMS)?;
    let me = std::env::current_exe()?;
    for program in Program::ALL {
        let path = program.path();
        let put = match program {
            Program::Script => fs::write(path, format!("#!{}\n", Program::Worker.path())),
            _ => fs::copy(&me, path).map(drop),
        };
        put.context(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).context(path)?;
    }
    Ok(())
}

/// Makes a sandbox as the model's begins.
pub fn make(root: &str) -> Result<()> {
    fs::create_dir_all(root).context("make a sandbox")?;
    for dir in DIRECTORIES {
        fs::create_dir(Path::new(root).join(dir)).context(dir)?;
    }
    for file in FILES {
        fs::write(Path::new(root).join(file), "x").context(file)?;
    }
    Ok(())
}

/// Removes it with all that was made in it.
pub fn remove(root: &str) -> Result<()> {
    fs::remove_dir_all(root).with_context(|| format!("remove {root}"))
}
