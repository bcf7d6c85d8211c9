//! `start`: puts a policy in force.

use std::env;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::geteuid;
use tidegate_bundle::Policy;
use tidegate_monitor::{Error, Monitor};
use tidegate_protocol::seal;
use tidegated::{Report, paths};

use super::print_json;
use crate::bundle::read_bundle;
use crate::cli::Start;
use crate::doctor;
use crate::exit::{Code, Failure, Outcome};
use crate::output::{say, tell, waiting};
use crate::profiles::whole;
use crate::source::Source;

/// The daemon's program.
const PROGRAM: &str = "tidegated";

pub fn run(args: &Start, json: bool) -> Outcome {
    if !geteuid().is_root() {
        return Err(Failure::new(Code::NotPermitted, "starting takes root"));
    }
    // where it enforces already it can, though the caller may not even try
    let loaded = Monitor::is_loaded()?;
    if !loaded && let Some(obstacle) = doctor::obstacle() {
        return Err(Failure::cannot_enforce(&obstacle));
    }
    if !loaded && let Some(undecided) = doctor::undecided() {
        tell!("warning: {undecided}");
    }
    // what is in force is taken over as it is, unless a policy is named
    let takes_over = loaded && !Monitor::is_unfinished()? && !args.source.is_given();
    let policy = if takes_over {
        None
    } else {
        let mut policy = policy(&args.source, Path::new(paths::LAST))?;
        policy.options = args.source.options(args.how.permissive)?;
        Some(policy)
    };
    if let Some(policy) = policy.as_ref().filter(|_| args.how.te_system) {
        tidegated::can_govern(policy)?;
    }
    let bundle = policy.as_ref().map(Policy::to_bundle).unwrap_or_default();
    let mut daemon = daemon()?;
    daemon.args(args.how.options().to_words());
    // a service that ends is told by its end, and not by what it began with
    if args.foreground {
        return Err(become_it(daemon, &bundle, json));
    }

    let is_whole = policy
        .as_ref()
        .map_or(Ok(()), |policy| whole(&policy.profiles));
    let mut child = daemon
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .current_dir("/")
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(&bundle).map_err(failed)?;
    }
    let stdout = child.stdout.take().expect("it is piped");
    let report = waiting("the kernel checks the programs", || {
        serde_json::from_reader(stdout)
    });
    let report: Report = report.map_err(|e| {
        Failure::new(
            Code::Internal,
            format!("the daemon ended without a word: {e}"),
        )
    })?;
    let code = report.code;
    announce(&report, json);
    match code {
        None => is_whole,
        Some(n) => Err(Failure::new(Code::from_number(n), report.message)),
    }
}

/// The daemon's program, which lies beside this one: both are of one version.
fn daemon() -> Outcome<Command> {
    let program = env::current_exe().map_err(failed)?.with_file_name(PROGRAM);
    if !program.exists() {
        return Err(Failure::new(
            Code::Internal,
            format!(
                "the daemon's program {} is not installed",
                program.display()
            ),
        ));
    }
    Ok(Command::new(program))
}

/// Becomes the daemon: a service manager goes on watching the process that it started. Returns why that cannot be.
fn become_it(mut daemon: Command, bundle: &[u8], json: bool) -> Failure {
    // only the program that was left with another version's monitor can take that over, and `main` goes on with it
    if let Err(foreign @ Error::Foreign(_)) = Monitor::open() {
        return foreign.into();
    }
    let mut bundle = match seal("bundle", bundle) {
        Ok(memory) => File::from(memory),
        Err(e) => return failed(e),
    };
    if let Err(e) = bundle.rewind() {
        return failed(e);
    }
    if json {
        daemon.arg("--json");
    }
    failed(daemon.arg("--foreground").stdin(bundle).exec())
}

fn failed(e: io::Error) -> Failure {
    Failure::io("start the daemon", e)
}

/// Returns the policy that is named. If no map is named and the machine's own policy cannot be compiled, this is the one that was
/// last in force, whose bundle is `last`: a machine that starts without any is worse off. Profiles and a SELinux policy that are
/// named belong to the machine's own policy, as the bundle has them, too.
fn policy(source: &Source, last: &Path) -> Outcome<Policy> {
    let wrong = match source.load() {
        Err(failure) if !source.names_map() => failure,
        loaded => return loaded,
    };
    match read_bundle(last) {
        Ok(last) => {
            wrong.tell();
            tell!(
                "warning: the machine's policy cannot be compiled, so the policy that was last in force is taken: {}",
                last.name
            );
            Ok(last)
        }
        Err(_) => Err(wrong),
    }
}

/// Tells what came of it; a failure is told by the command's end.
fn announce(report: &Report, json: bool) {
    if report.code.is_some() {
        return;
    }
    for warning in &report.warnings {
        tell!("warning: {warning}");
    }
    if json {
        let _ = print_json(report);
    } else {
        say!("{}", report.message);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tidegate_policy::map;

    use super::*;

    /// Profiles that are not there.
    fn with_wrong_profiles() -> Source {
        let mut source = Source::default();
        source.profiles.profile = vec![PathBuf::from("/nowhere/profiles")];
        source
    }

    #[test]
    fn a_machine_whose_policy_is_wrong_takes_the_last_one() {
        let dir = tempfile::tempdir().unwrap();
        let last = dir.path().join("last.bundle");
        let server = map::compile_preset("server").unwrap().policy;
        std::fs::write(&last, server.to_bundle()).unwrap();
        let taken = policy(&with_wrong_profiles(), &last).unwrap();
        assert_eq!(taken.name, server.name);
        assert!(policy(&with_wrong_profiles(), &dir.path().join("none")).is_err());
    }

    #[test]
    fn a_map_that_is_named_has_no_other_in_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let last = dir.path().join("last.bundle");
        let server = map::compile_preset("server").unwrap().policy;
        std::fs::write(&last, server.to_bundle()).unwrap();
        let named = Source {
            policy: Some(dir.path().join("none.plm")),
            ..with_wrong_profiles()
        };
        assert!(policy(&named, &last).is_err());
        let preset = Source {
            preset: Some("server".into()),
            ..with_wrong_profiles()
        };
        assert!(policy(&preset, &last).is_err());
    }
}
