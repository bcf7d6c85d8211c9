//! Which policy a command is about: a preset, a map or a bundle, and the profiles and the SELinux policy beside it.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use miette::Report;
use tidegate_bundle::Policy;
use tidegate_policy::{PRESETS, map};
use tidegated::paths;

use crate::bundle::read_bundle;
use crate::exit::{Code, Failure, Outcome};
use crate::options;
use crate::output::tell;
use crate::profiles::{self, Profiles};
use crate::te::{self, SelinuxPolicy};

/// The policy to use.
#[derive(Debug, Clone, Default, Args)]
pub struct Source {
    /// A policy that comes with Tidegate: classic, server or workstation
    #[arg(long, value_name = "NAME", conflicts_with_all = ["policy", "bundle"])]
    pub preset: Option<String>,
    /// A map file
    #[arg(long, value_name = "FILE.plm", conflicts_with = "bundle")]
    pub policy: Option<PathBuf>,
    /// A bundle that `tidegate compile` made
    #[arg(long, value_name = "FILE", conflicts_with_all = ["profile", "te"])]
    pub bundle: Option<PathBuf>,
    /// The profiles beside a preset or a map
    #[command(flatten)]
    pub profiles: Profiles,
    /// The SELinux policy beside a preset or a map
    #[command(flatten)]
    pub te: SelinuxPolicy,
}

impl Source {
    /// One named in a single word: a preset, a map's file (`.plm`) or a bundle's.
    pub fn of_word(word: &str) -> Source {
        let path = || Some(PathBuf::from(word));
        let (preset, policy, bundle) = match word {
            _ if PRESETS.iter().any(|p| p.name == word) => (Some(word.into()), None, None),
            _ if word.ends_with(".plm") => (None, path(), None),
            _ => (None, None, path()),
        };
        Source {
            preset,
            policy,
            bundle,
            profiles: Profiles::default(),
            te: SelinuxPolicy::default(),
        }
    }

    /// Whether the command line names one.
    pub fn is_given(&self) -> bool {
        self.names_map() || !self.profiles.profile.is_empty() || !self.te.te.is_empty()
    }

    /// Whether the command line names a preset, a map or a bundle, so that the machine's own map does not count.
    pub fn names_map(&self) -> bool {
        self.preset.is_some() || self.policy.is_some() || self.bundle.is_some()
    }

    /// The options that name the same from any directory, and the mode: a policy keeps them for a reload that names none.
    ///
    /// # Errors
    /// As [`options::of_path`].
    pub fn options(&self, permissive: bool) -> Outcome<Vec<String>> {
        let mut words: Vec<String> = Vec::new();
        words.extend(self.preset.iter().map(|name| format!("--preset={name}")));
        for (name, path) in [("policy", &self.policy), ("bundle", &self.bundle)] {
            if let Some(path) = path {
                words.push(options::of_path(name, path)?);
            }
        }
        words.extend(self.profiles.options()?);
        words.extend(self.te.options()?);
        if permissive {
            words.push("--permissive".into());
        }
        Ok(words)
    }

    /// The policy; warnings go to standard error. Without a name: the
    /// machine's own map, `/etc/tidegate/policy.plm`.
    pub fn load(&self) -> Outcome<Policy> {
        let mut policy = self.map()?;
        if !self.profiles.profile.is_empty() {
            policy.profiles = self.profiles.load()?;
        }
        profiles::warn(&policy.profiles);
        if !self.te.te.is_empty() {
            policy.te = Some(self.te.load()?);
        }
        policy.te.iter().for_each(te::warn);
        Ok(policy)
    }

    fn map(&self) -> Outcome<Policy> {
        if let Some(path) = &self.bundle {
            return read_bundle(path);
        }
        if let Some(name) = &self.preset {
            if !PRESETS.iter().any(|p| p.name == name) {
                let known: Vec<_> = PRESETS.iter().map(|p| p.name).collect();
                let known = known.join(", ");
                return Err(Failure::new(
                    Code::Usage,
                    format!("there is no preset `{name}`: take one of {known}"),
                ));
            }
            return compiled(map::compile_preset(name));
        }
        match &self.policy {
            Some(path) => read_map(path),
            None if Path::new(paths::POLICY).exists() => read_map(Path::new(paths::POLICY)),
            None => Err(Failure::new(
                Code::Usage,
                format!(
                    "no policy is named and there is no {}: use --preset, --policy or --bundle",
                    paths::POLICY
                ),
            )),
        }
    }
}

/// Shows a compiler's warnings; its errors are the command's.
pub fn compiled(result: Result<map::Compiled, map::MapErrors>) -> Outcome<Policy> {
    match result {
        Ok(compiled) => {
            for warning in compiled.warnings {
                tell!("{:?}", Report::new(warning));
            }
            Ok(compiled.policy)
        }
        Err(errors) => Err(Failure::policy(Report::new(errors))),
    }
}

/// Reads a map file.
fn read_map(path: &Path) -> Outcome<Policy> {
    // a map that is not there is no error in a map
    fs::metadata(path).map_err(|e| {
        let preset = PRESETS.iter().find(|p| path.as_os_str() == p.name);
        match preset {
            Some(preset) => Failure::new(
                Code::Usage,
                format!(
                    "there is no file {0}; the preset is `--preset {0}`",
                    preset.name
                ),
            ),
            None => Failure::io(format!("read {}", path.display()), e),
        }
    })?;
    compiled(map::compile_file(path))
}
