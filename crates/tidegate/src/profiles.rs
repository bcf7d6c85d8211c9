//! The profiles that a policy has beside its map, where the command line names some.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use clap::Args;
use miette::Report;
use tidegate_policy::profile::{
    FEATURES, Parsed, Parser, ParserError, ProfileSet, Source, Statement, Unmediated, source,
};

use crate::exit::{Code, Failure, Message, Outcome};
use crate::output::{printable, tell, waiting};

/// So many warnings are shown, and the rest is counted.
const SHOWN: usize = 20;

/// The profiles to use.
#[derive(Debug, Clone, Default, Args)]
pub struct Profiles {
    /// AppArmor profiles: a file, or all files of a directory; may be given several times
    #[arg(long, value_name = "FILE|DIR")]
    pub profile: Vec<PathBuf>,
    /// Where profiles include from
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/etc/apparmor.d",
        requires = "profile"
    )]
    pub profile_base: PathBuf,
    /// AppArmor's own compiler of profiles
    #[arg(
        long,
        value_name = "PROGRAM",
        default_value = "apparmor_parser",
        requires = "profile"
    )]
    pub apparmor_parser: PathBuf,
}

impl Profiles {
    /// Compiles and links them; what is wrong with where their rules stand goes to standard error.
    pub fn load(&self) -> Outcome<ProfileSet> {
        let parsed = waiting("compiling profiles", || self.compile())?;
        let rules = self.statements(&parsed);
        ProfileSet::link(&parsed, &rules).map_err(|e| Failure::policy(Report::new(e)))
    }

    /// The same, by paths that begin at the root.
    pub fn absolute(&self) -> Profiles {
        let absolute = |path: &PathBuf| fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        Profiles {
            profile: self.profile.iter().map(absolute).collect(),
            profile_base: absolute(&self.profile_base),
            apparmor_parser: self.apparmor_parser.clone(),
        }
    }

    /// What a file of profiles says.
    ///
    /// # Errors
    /// If it, or a file that it includes, cannot be read.
    pub fn source(&self, file: &Path) -> io::Result<Source> {
        source(file, &self.profile_base)
    }

    /// The compiler, where profiles include from this directory.
    pub fn parser(&self, base: &Path) -> Parser {
        Parser {
            program: self.apparmor_parser.clone(),
            base: base.to_owned(),
            features: FEATURES.to_owned(),
        }
    }

    /// Compiles each file.
    ///
    /// # Errors
    /// The first that does not compile.
    pub fn compile(&self) -> Outcome<Vec<Parsed>> {
        let parser = self.parser(&self.profile_base);
        let mut parsed = Vec::new();
        for path in &self.profile {
            parsed.extend(parser.parse(path).map_err(failure)?);
        }
        Ok(parsed)
    }

    /// The rules as they were written. They only tell where what nothing mediates stands, so that
    /// profiles need not be refused for what the compiler could read.
    fn statements(&self, parsed: &[Parsed]) -> Vec<Statement> {
        let mut found = Vec::new();
        for Parsed { file, .. } in parsed {
            match self.source(file) {
                Ok(of_file) => found.extend(of_file.statements),
                Err(e) => tell!(
                    "warning: {}: rules that nothing mediates are not looked for: {e}",
                    printable(&file.to_string_lossy())
                ),
            }
        }
        found
    }
}

fn failure(e: ParserError) -> Failure {
    let code = match &e {
        ParserError::NoParser { source, .. } | ParserError::Unreadable { source, .. } => {
            match source.kind() {
                ErrorKind::PermissionDenied => Code::NotPermitted,
                _ => Code::Usage,
            }
        }
        _ => Code::Policy,
    };
    Failure {
        code,
        message: Message::Diagnosis(Report::new(e)),
    }
}

/// Tells what a policy's profiles say that is not so.
pub fn warn(profiles: &ProfileSet) {
    let rules = &profiles.unmediated;
    for rule in rules.iter().take(SHOWN) {
        tell!("warning: {}", unmediated(rule));
    }
    if rules.len() > SHOWN {
        let rest = rules.len() - SHOWN;
        tell!("warning: and {rest} more rules that nothing mediates");
    }
}

fn unmediated(rule: &Unmediated) -> String {
    let (profile, class) = (printable(&rule.profile), printable(&rule.class));
    let file = printable(&rule.file);
    let place = match rule.line {
        0 => file,
        line => format!("{file}:{line}"),
    };
    format!("{place}: profile `{profile}`: nothing mediates this rule ({class})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_told_with_its_place() {
        let mut rule = Unmediated {
            profile: "a\n".into(),
            class: "dbus".into(),
            file: "/etc/apparmor.d/a".into(),
            line: 7,
        };
        assert_eq!(
            unmediated(&rule),
            "/etc/apparmor.d/a:7: profile `a\\n`: nothing mediates this rule (dbus)"
        );
        rule.line = 0;
        assert!(unmediated(&rule).starts_with("/etc/apparmor.d/a: profile"));
    }
}
