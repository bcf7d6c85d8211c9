//! A host of tools: offers them notes, and starts each as the subject of a capability file that its manifest names.
//!
//! ```text
//! tidegate run --caps tools.caps -- agent-host tools.toml
//! ```

mod service;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::{env, fs, thread};

use anyhow::{Context, Result};
use serde::Deserialize;

/// What is run, and as which user.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    /// Where the notes are offered.
    socket: String,
    /// The capability file, by a path relative to the manifest.
    capabilities: PathBuf,
    /// The notes that there are from the start.
    #[serde(default)]
    notes: Vec<(String, String)>,
    #[serde(rename = "tool")]
    tools: Vec<Tool>,
}

/// A tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    /// The subject of the capability file that it is.
    subject: String,
    command: Vec<String>,
}

impl Manifest {
    fn read(path: &Path) -> Result<Manifest> {
        let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        let mut manifest: Manifest =
            toml::from_str(&text).with_context(|| format!("{} is wrong", path.display()))?;
        let directory = path.parent().unwrap_or(Path::new("."));
        manifest.capabilities = directory.join(&manifest.capabilities);
        Ok(manifest)
    }

    /// Starts a tool with what its subject was given. The host's own subject limits it, too.
    fn start(&self, tool: &Tool) -> Result<Child> {
        let mut command = Command::new("/usr/bin/tidegate");
        command.args(["run", "--caps"]).arg(&self.capabilities);
        command.args(["--caps-subject", &tool.subject, "--"]);
        let child = command.args(&tool.command).spawn();
        child.with_context(|| format!("start {}", tool.subject))
    }
}

fn main() -> Result<()> {
    let path = env::args_os()
        .nth(1)
        .context("usage: agent-host TOOLS.toml")?;
    let manifest = Manifest::read(Path::new(&path))?;
    let listener = service::listen_at(&manifest.socket)?;
    let notes = manifest.notes.clone();
    thread::spawn(move || service::serve(listener, &notes));
    let mut children = Vec::new();
    for tool in &manifest.tools {
        children.push((&tool.subject, manifest.start(tool)?));
    }
    for (subject, mut child) in children {
        println!("host: {subject} {}", ended(child.wait()?));
    }
    Ok(())
}

fn ended(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("ended with {code}"),
        None => format!("was ended: {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_that_is_shipped_is_one() {
        let manifest = Manifest::read(Path::new("tools.toml")).unwrap();
        let subjects: Vec<&str> = manifest.tools.iter().map(|it| &*it.subject).collect();
        assert_eq!(subjects, ["summary", "writer", "accomplice", "hostile"]);
        assert_eq!(manifest.capabilities, Path::new("tools.caps"));
    }

    #[test]
    fn its_subjects_are_those_of_the_capability_file() {
        let manifest = Manifest::read(Path::new("tools.toml")).unwrap();
        for tool in &manifest.tools {
            let layer =
                tidegate_restrict::Layer::of_file(&manifest.capabilities, Some(&tool.subject));
            assert!(layer.is_ok(), "{layer:?}");
        }
    }

    #[test]
    fn what_it_does_not_know_is_told() {
        let wrong = toml::from_str::<Manifest>("socket = \"/x\"\nsubject = \"y\"\n");
        assert!(wrong.unwrap_err().to_string().contains("unknown field"));
    }
}
