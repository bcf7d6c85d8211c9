//! The profiles that a policy has beside its map, where the command line names some.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use clap::Args;
use miette::Report;
use tidegate_audit::printable;
use tidegate_bundle::profile::{LeftOut, ProfileSet, Unmediated};
use tidegate_policy::profile::{
    self, FEATURES, Parsed, Parser, ParserError, Source, Statement, source,
};
use tidegate_remedy::apparmor::{Bench, BenchError};

use crate::exit::{Code, Failure, Message, Outcome};
use crate::options;
use crate::output::{tell, waiting};

/// So many warnings are shown, and the rest is counted.
const SHOWN: usize = 20;

/// Where profiles include from, unless the command line says otherwise.
const BASE: &str = "/etc/apparmor.d";

/// AppArmor's own compiler of profiles, unless the command line names another.
const PARSER: &str = "apparmor_parser";

/// The heading of these options.
const HEADING: &str = "AppArmor profiles";

/// The profiles to use.
#[derive(Debug, Clone, Default, Args)]
pub struct Profiles {
    /// AppArmor profiles: a file, or all files of a directory; may be given several times
    #[arg(long, help_heading = HEADING, value_name = "FILE|DIR")]
    pub profile: Vec<PathBuf>,
    /// Where profiles include from
    #[arg(
        long,
        help_heading = HEADING,
        value_name = "DIR",
        default_value = BASE,
        requires = "profile"
    )]
    pub profile_base: PathBuf,
    /// AppArmor's own compiler of profiles
    #[arg(
        long,
        help_heading = HEADING,
        value_name = "PROGRAM",
        default_value = PARSER,
        requires = "profile"
    )]
    pub apparmor_parser: PathBuf,
    /// Take none of the profiles if one of them cannot be used; without it that one is named and left out
    #[arg(long, help_heading = HEADING, requires = "profile")]
    pub strict: bool,
}

impl Profiles {
    /// Compiles and links them. What cannot be used is left out, if there is anything else.
    pub fn load(&self) -> Outcome<ProfileSet> {
        let (parsed, left_out) = waiting("compiling profiles", || self.compile())?;
        self.tell_forced(&parsed);
        let rules = self.statements(&parsed)?;
        let linked = match self.strict {
            true => profile::link_beside(&parsed, &rules, left_out),
            false => profile::link_usable(parsed, &rules, left_out),
        };
        let set = linked.map_err(|e| Failure::policy(Report::new(e)))?;
        match set.left_out.first() {
            Some(fault) if set.profiles.is_empty() => Err(Failure::new(
                Code::Policy,
                format!("no profile can be used: {}", printable(&fault.to_string())),
            )),
            _ => Ok(set),
        }
    }

    /// The options that name the same from any directory.
    ///
    /// # Errors
    /// As [`options::of_path`].
    pub fn options(&self) -> Outcome<Vec<String>> {
        if self.profile.is_empty() {
            return Ok(Vec::new());
        }
        let profiles = self.profile.iter();
        let mut words = profiles
            .map(|path| options::of_path("profile", path))
            .collect::<Outcome<Vec<String>>>()?;
        if self.profile_base != Path::new(BASE) {
            words.push(options::of_path("profile-base", &self.profile_base)?);
        }
        if self.apparmor_parser != Path::new(PARSER) {
            words.push(options::of_program(
                "apparmor-parser",
                &self.apparmor_parser,
            )?);
        }
        if self.strict {
            words.push("--strict".into());
        }
        Ok(words)
    }

    /// The same, by paths that begin at the root.
    pub fn absolute(&self) -> Profiles {
        let absolute = |path: &PathBuf| fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        Profiles {
            profile: self.profile.iter().map(absolute).collect(),
            profile_base: absolute(&self.profile_base),
            apparmor_parser: self.apparmor_parser.clone(),
            strict: self.strict,
        }
    }

    /// Compiles them to try rules on, and tells of those that do not compile.
    pub fn bench(&self) -> Outcome<Bench> {
        let profiles = self.absolute();
        let (parsed, left_out) = waiting("compiling profiles", || profiles.compile())?;
        tell_left_out(&left_out);
        profiles.tell_forced(&parsed);
        let parser = profiles.parser(&profiles.profile_base);
        Bench::new(parser, parsed).map_err(|e| match e {
            BenchError::Unreadable { file, source } => {
                Failure::io(format!("read {}", file.display()), source)
            }
            BenchError::Link(e) => Failure::policy(Report::new(e)),
        })
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

    /// Compiles each file; with them, what to tell of those that do not compile.
    ///
    /// # Errors
    /// The first that does not compile, or is in complain mode for what is beside it, if all are to be used as they say; the first that
    /// does not compile if none does.
    pub fn compile(&self) -> Outcome<(Vec<Parsed>, Vec<LeftOut>)> {
        let parser = self.parser(&self.profile_base);
        let (mut parsed, mut faults) = (Vec::new(), Vec::new());
        for path in &self.profile {
            for one in parser.parse_each(path).map_err(failure)? {
                match one {
                    Ok(file) => parsed.push(file),
                    Err(fault) if self.strict && !fault.is_disabled() => {
                        return Err(failure(fault));
                    }
                    Err(fault) => faults.push(fault),
                }
            }
        }
        let first_forced = || parsed.iter().find_map(|file| forced(&parser, file));
        if let Some(said) = self.strict.then(first_forced).flatten() {
            return Err(Failure::new(Code::Policy, said));
        }
        let left_out = faults.iter().map(|fault| parser.left_out(fault)).collect();
        match faults.into_iter().next() {
            Some(first) if parsed.is_empty() => Err(failure(first)),
            _ => Ok((parsed, left_out)),
        }
    }

    /// Tells of files whose profiles refuse nothing, as something beside them says so.
    fn tell_forced(&self, parsed: &[Parsed]) {
        let parser = self.parser(&self.profile_base);
        for said in parsed.iter().filter_map(|file| forced(&parser, file)) {
            tell!("warning: {said}");
        }
    }

    /// The rules and the profiles' heads as they were written, which say where what nothing mediates stands.
    fn statements(&self, parsed: &[Parsed]) -> Outcome<Vec<Statement>> {
        let mut found = Vec::new();
        for Parsed { file, .. } in parsed {
            let source = self.source(file);
            let source = source.map_err(|e| Failure::io(format!("read {}", file.display()), e))?;
            found.extend(source.heads);
            found.extend(source.statements);
        }
        Ok(found)
    }
}

/// What to tell of a file whose profiles' mode is not the one that they say.
fn forced(parser: &Parser, parsed: &Parsed) -> Option<String> {
    let by = parser.forced(parsed)?;
    let (file, by) = (parsed.file.to_string_lossy(), by.to_string_lossy());
    Some(format!(
        "{}: its profiles are in complain mode and refuse nothing, as there is {}",
        printable(&file),
        printable(&by)
    ))
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

/// Whether a policy has all the profiles that were wanted: what ends a command that has done the rest.
pub fn whole(profiles: &ProfileSet) -> Outcome {
    let faulty = profiles.left_out.iter().filter(|one| !one.disabled);
    match faulty.count() {
        0 => Ok(()),
        places => Err(Failure::new(
            Code::Partly,
            format!(
                "done without the profiles that cannot be used ({places} left out, each named above); \
                 with --strict none is taken then"
            ),
        )),
    }
}

/// Tells what was left out of the profiles.
pub fn tell_left_out(left_out: &[LeftOut]) {
    for one in left_out {
        tell!("warning: {}", printable(&one.to_string()));
    }
}

/// Tells what a policy's profiles say that is not so, and which of them it has not.
pub fn warn(profiles: &ProfileSet) {
    tell_left_out(&profiles.left_out);
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

    /// Files of profiles in a directory.
    fn of(files: &[(&str, &str)]) -> (tempfile::TempDir, Profiles) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let profiles = Profiles {
            profile: vec![dir.path().to_owned()],
            profile_base: dir.path().to_owned(),
            apparmor_parser: "apparmor_parser".into(),
            strict: false,
        };
        (dir, profiles)
    }

    #[test]
    fn one_bad_file_is_left_out_and_named_and_the_others_are_taken() {
        let bad = "profile bad /b {\n  /b r,\n  /c nothing,\n}\n";
        let good: Vec<_> = (0..20)
            .map(|at| {
                (
                    format!("g{at}"),
                    format!("profile g{at} /g{at} {{ /g r, }}\n"),
                )
            })
            .collect();
        let mut files: Vec<_> = good.iter().map(|(name, text)| (&**name, &**text)).collect();
        files.push(("bad", bad));
        let (dir, mut profiles) = of(&files);
        let set = profiles.load().unwrap();
        assert_eq!(set.profiles.len(), 20);
        let [left_out] = &set.left_out[..] else {
            panic!("{:?}", set.left_out);
        };
        assert_eq!(left_out.profiles, ["bad"]);
        assert_eq!(left_out.file, dir.path().join("bad").to_string_lossy());
        assert_eq!(left_out.line, 3);
        assert_eq!(whole(&set).unwrap_err().code, Code::Partly);
        profiles.strict = true;
        assert_eq!(profiles.load().unwrap_err().code, Code::Policy);
        fs::remove_file(dir.path().join("bad")).unwrap();
        assert!(whole(&profiles.load().unwrap()).is_ok());
    }

    #[test]
    fn what_the_parser_skips_or_forces_is_told_and_refused_where_all_are_to_be_used() {
        let (dir, mut profiles) = of(&[
            ("a", "profile a /a { /a r, }\n"),
            ("b", "profile b /b { /b r, }\n"),
            ("c", "profile c /c flags=(complain) { /c r, }\n"),
            ("d", "# no profile\n"),
        ]);
        assert!(whole(&profiles.load().unwrap()).is_ok());
        let beside = |dir_name: &str, name: &str| {
            let path = dir.path().join(dir_name);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join(name), "").unwrap();
            path.join(name)
        };
        let disables = beside("disable", "a");
        let set = profiles.load().unwrap();
        assert_eq!(set.profiles.len(), 2);
        let [left_out] = &set.left_out[..] else {
            panic!("{:?}", set.left_out);
        };
        assert_eq!(left_out.profiles, ["a"]);
        assert!(left_out.why.contains(&*disables.to_string_lossy()));
        assert!(left_out.disabled && whole(&set).is_ok());
        profiles.strict = true;
        assert_eq!(profiles.load().unwrap().left_out, set.left_out);
        fs::remove_file(disables).unwrap();
        assert!(profiles.load().is_ok());
        // it changes nothing of what says so itself
        beside("force-complain", "c");
        assert!(profiles.load().is_ok());
        let forces = beside("force-complain", "b");
        assert_eq!(profiles.load().unwrap_err().code, Code::Policy);
        profiles.strict = false;
        let (parsed, left_out) = profiles.compile().unwrap();
        assert!(left_out.is_empty());
        let parser = profiles.parser(&profiles.profile_base);
        let told: Vec<_> = parsed.iter().filter_map(|it| forced(&parser, it)).collect();
        assert!(told.len() == 1 && told[0].contains(&*forces.to_string_lossy()));
    }

    #[test]
    fn two_profiles_of_one_name_are_the_first_and_a_child_of_the_other_is_not_its_child() {
        let first = "profile a /a {\n  /bin/x cx -> x,\n  profile x { /x r, }\n}\n";
        let second = "\nprofile a /other {\n  profile y { /y r, }\n}\n";
        let (dir, profiles) = of(&[("1", first), ("2", second)]);
        let set = profiles.load().unwrap();
        let names: Vec<_> = set.profiles.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["a", "a//x"]);
        let [left_out] = &set.left_out[..] else {
            panic!("{:?}", set.left_out);
        };
        assert_eq!(left_out.profiles, ["a", "a//y"]);
        let place = dir.path().join("2").display().to_string();
        assert_eq!((&left_out.file, left_out.line), (&place, 2));
    }

    #[test]
    fn where_no_profile_can_be_used_nothing_is_done() {
        let (_dir, profiles) = of(&[("a", "profile a {\n  nothing\n}\n")]);
        assert_eq!(profiles.load().unwrap_err().code, Code::Policy);
        let (_dir, profiles) = of(&[("a", "profile :ns:a { }\n")]);
        assert_eq!(profiles.load().unwrap_err().code, Code::Policy);
    }

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
