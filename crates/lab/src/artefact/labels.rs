//! SELinux's labels of an image's files.
//!
//! They cannot be set while the tree is made: without root nobody may, and on a machine
//! that runs SELinux they would have to fit its policy. So the tree brings a list of
//! them, and debugfs writes them into the image.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::{Tools, ext4};

/// Where the tree has its list: a line a file, path and context, by a tab.
const LIST: &str = "./usr/lib/labels";

/// Changed when [`write`] comes to write something else.
pub(super) const RECIPE: &str = "labels 1";

/// Writes into `image` the labels that the list in `tar`, its source, gives.
pub(super) fn write(tools: &Tools, tar: &Path, image: &Path) -> Result<()> {
    let list = read(tar, &["-xO", LIST])?;
    let members = read(tar, &["-t", "--quoting-style=literal"])?;
    ensure!(!list.is_empty(), "{LIST} is empty");
    let dir = tempfile::tempdir()?;
    let (values, commands) = commands(&list, &members)?;
    for (value, file) in values {
        // The kernel's own values, and setfiles', end in a NUL.
        fs::write(dir.path().join(file), format!("{value}\0"))?;
    }
    fs::write(dir.path().join("commands"), commands)?;
    let output = tools
        .command("usr/sbin/debugfs", "debugfs")
        .current_dir(dir.path())
        .args(["-w", "-f", "commands"])
        .arg(image)
        .env("E2FSPROGS_FAKE_TIME", ext4::FAKE_TIME)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .context("debugfs")?;
    // It goes on after an error and ends with success, but says nothing on standard
    // error besides its version if all is well.
    let errors = String::from_utf8_lossy(&output.stderr);
    let wrong: Vec<&str> = errors
        .lines()
        .filter(|line| !line.starts_with("debugfs "))
        .take(5)
        .collect();
    ensure!(
        output.status.success() && wrong.is_empty(),
        "debugfs could not label {}: {}",
        image.display(),
        wrong.join("; ")
    );
    Ok(())
}

/// What tar prints for a file.
fn read(tar: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("tar")
        .arg("-f")
        .arg(tar)
        .args(arguments)
        .output()
        .context("tar")?;
    ensure!(
        output.status.success(),
        "tar {} of {}: {}",
        arguments.join(" "),
        tar.display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    String::from_utf8(output.stdout).context("a name that is not UTF-8")
}

/// The contexts with the file that each is to be read from, and debugfs's commands for
/// the files of the list that are among the tar file's members: mmdebstrap has the last
/// word and takes some away.
fn commands<'a>(list: &'a str, members: &str) -> Result<(BTreeMap<&'a str, String>, String)> {
    let members: HashSet<&str> = members
        .lines()
        .map(|member| {
            member
                .strip_prefix('.')
                .unwrap_or(member)
                .trim_end_matches('/')
        })
        .collect();
    let mut values = BTreeMap::new();
    let mut commands = String::new();
    for line in list.lines() {
        let (path, context) = line
            .split_once('\t')
            .filter(|(path, context)| path.starts_with('/') && !context.contains('\t'))
            .with_context(|| format!("no path and context: {line:?}"))?;
        if !members.contains(path.trim_end_matches('/')) {
            continue;
        }
        let next = format!("v{}", values.len());
        let value: &String = values.entry(context).or_insert(next);
        // In its words a quotation mark is doubled.
        let path = path.replace('"', "\"\"");
        commands.push_str(&format!("ea_set -f {value} \"{path}\" security.selinux\n"));
    }
    Ok((values, commands))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_one_file_and_any_path_one_word() {
        let (values, commands) = commands(
            "/\tx\n/a b\tx\n/c\"d\ty\n/gone\tz\n/.e\tx\n",
            "./\n./a b/\n./c\"d\n./.e\n",
        )
        .unwrap();
        assert_eq!(values.len(), 2);
        assert_eq!(
            commands,
            "ea_set -f v0 \"/\" security.selinux\n\
             ea_set -f v0 \"/a b\" security.selinux\n\
             ea_set -f v1 \"/c\"\"d\" security.selinux\n\
             ea_set -f v0 \"/.e\" security.selinux\n"
        );
    }

    #[test]
    fn a_path_with_a_tab_is_refused() {
        assert!(commands("/a\tb\tx\n", "").is_err());
        assert!(commands("x\n", "").is_err());
    }
}
