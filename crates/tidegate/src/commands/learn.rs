//! `learn`: what to add to the map, so that what was refused is not. [`tidegate_remedy::learn`] proposes
//! that, and [`apparmor`] and [`selinux`] of the same crate what profiles and a SELinux policy lack.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use jiff::Timestamp;
use tidegate_audit::{Record, Tail};
use tidegate_bundle::Policy;
use tidegate_remedy::learn::{Counts, Gathered, Proposal, plan};
use tidegate_remedy::{Propose, apparmor, selinux};
use tidegated::paths;

use super::{log, print_json};
use crate::cli::Learn;
use crate::exit::{Code, Failure, Outcome};
use crate::output::say;

pub fn run(args: &Learn, json: bool) -> Outcome {
    let include = include(args)?;
    let policy = Arc::new(args.source.load()?);
    let mut progress = Progress::new();
    let mut gathered = gather(args, &policy, &mut progress)?;
    if gathered.refusals + gathered.profiles.refusals + gathered.te.refusals == 0 {
        return Err(Failure::new(Code::No, "nothing was refused"));
    }
    let of_profiles = std::mem::take(&mut gathered.profiles);
    let amended = amended(args, &of_profiles, &mut progress)?;
    let of_te = std::mem::take(&mut gathered.te);
    let te = selinux_rules(args, &of_te, &policy, &mut progress);
    let counts = Counts::from(&gathered);
    let kinds = gathered.kinds();
    let plan = plan(&kinds, &policy, args.include_untrusted, |done, of| {
        progress.tell(|| format!("fixes for {done} of {of} kinds of refusals"));
    });
    progress.end();
    let mut proposal = Proposal::new(&plan, &kinds, &counts, &include);
    proposal.profiles = amended;
    proposal.te = te;
    let of_map: &dyn Propose = &proposal;
    let of_profiles = proposal.profiles.as_ref().map(|it| it as &dyn Propose);
    let of_te = proposal.te.as_ref().map(|it| it as &dyn Propose);
    let all = [
        (Some(of_map), &args.output),
        (of_profiles, &args.patch),
        (of_te, &args.te_rules),
    ];
    for (one, path) in all {
        if let (Some(one), Some(path)) = (one, path) {
            write(path, one.text(), args.force)?;
        }
    }
    if json {
        return print_json(&proposal);
    }
    // of a map that nothing was refused by there is nothing to say
    let is_others = proposal.refusals == 0 && (of_profiles.is_some() || of_te.is_some());
    for (one, path) in all.into_iter().skip(usize::from(is_others)) {
        match (one, path) {
            (None, _) => {}
            (Some(one), None) => say!("{}", one.text().trim_end()),
            (Some(one), Some(path)) => say!("{}: {}", path.display(), one.counts()),
        }
    }
    Ok(())
}

/// What the SELinux policy lacks; `None`: it refused nothing.
fn selinux_rules(
    args: &Learn,
    gathered: &selinux::Gathered,
    policy: &Policy,
    progress: &mut Progress,
) -> Option<selinux::Proposal> {
    let te = policy.te.as_ref().filter(|_| gathered.refusals > 0)?;
    progress.tell(|| "looking for rules of the SELinux policy".into());
    let compiles = |rules: &_| args.source.te.compiles_with(&selinux::cil(rules, &te.db));
    let plan = selinux::plan(gathered, te, args.include_untrusted, compiles);
    Some(selinux::Proposal::new(
        plan,
        gathered,
        &te.db,
        args.te_syntax.into(),
    ))
}

/// What the profiles lack; `None`: they refused nothing.
fn amended(
    args: &Learn,
    gathered: &apparmor::Gathered,
    progress: &mut Progress,
) -> Outcome<Option<apparmor::Proposal>> {
    if gathered.refusals == 0 {
        return Ok(None);
    }
    let bench = args.source.profiles.bench()?;
    let plan = apparmor::plan(gathered, &bench, |what| progress.tell(|| what.to_owned()));
    apparmor::Proposal::new(plan, gathered, &bench)
        .map(Some)
        .map_err(|e| Failure::io("read the profiles' files", e))
}

/// The line that takes in the policy which the proposal starts from.
fn include(args: &Learn) -> Outcome<String> {
    if args.source.bundle.is_some() {
        return Err(Failure::new(
            Code::Usage,
            "a map cannot include a bundle: name the map that it was made of, by --policy or --preset",
        ));
    }
    if let Some(preset) = &args.source.preset {
        return Ok(format!("include {preset}"));
    }
    let path = args.source.policy.as_deref();
    let path = path.unwrap_or(Path::new(paths::POLICY));
    let failed = |e| Failure::io(format!("read {}", path.display()), e);
    // load() tells what is wrong with one that is not there
    let Ok(whole) = path.canonicalize() else {
        return Ok(String::new());
    };
    if let Some(output) = &args.output
        && output.canonicalize().is_ok_and(|o| o == whole)
    {
        return Err(Failure::new(
            Code::Usage,
            format!(
                "{} would include itself: name another file",
                output.display()
            ),
        ));
    }
    let text = whole
        .to_str()
        .filter(|t| !t.contains(|c: char| c.is_control() || c == '"' || c == '\\'));
    let text =
        text.ok_or_else(|| failed(io::Error::other("its name cannot be written in a map")))?;
    Ok(format!("include \"{text}\""))
}

/// Reads the log, the rotated files first.
fn gather(args: &Learn, policy: &Policy, progress: &mut Progress) -> Outcome<Gathered> {
    let since = args
        .since
        .as_deref()
        .map(|s| log::since(s, Timestamp::now()))
        .transpose()?;
    let mut files: Vec<PathBuf> = log::rotated(&args.file);
    files.push(args.file.clone());
    let mut gathered = Gathered::default();
    for path in files {
        let failed = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => Failure::new(
                Code::No,
                format!("there is no audit log {}", path.display()),
            ),
            _ => Failure::io(format!("read {}", path.display()), e),
        };
        let mut tail = Tail::open(&path).map_err(failed)?;
        tail.lines(&mut |line| {
            gathered.line(line, policy, |record| fits(record, args, since));
            progress.tell(|| format!("reading: {} refusals", gathered.refusals));
        })
        .map_err(failed)?;
    }
    Ok(gathered)
}

fn fits(record: &Record, args: &Learn, since: Option<Timestamp>) -> bool {
    let subject = record.subject.as_ref();
    let path = record.object.as_ref().and_then(|o| o.path.as_deref());
    let is = |wanted: &Option<String>, found: Option<&String>| {
        wanted.as_ref().is_none_or(|w| found == Some(w))
    };
    since.is_none_or(|t| record.time.parse::<Timestamp>().is_ok_and(|at| at >= t))
        && is(&args.comm, subject.map(|s| &s.comm))
        && is(&args.level, subject.map(|s| &s.level))
        && args
            .path
            .as_ref()
            .is_none_or(|p| path.is_some_and(|path| path.starts_with(p)))
}

/// Writes the map, over nothing that is there unless that is wanted.
fn write(path: &Path, map: &str, force: bool) -> Outcome {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let written = if force {
        fs::write(&new, map).and_then(|()| fs::rename(&new, path))
    } else {
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).open(path);
        file.and_then(|mut file| file.write_all(map.as_bytes()))
    };
    written.map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => Failure::new(
            Code::Usage,
            format!("there is a file {}: --force replaces it", path.display()),
        ),
        _ => Failure::io(format!("write {}", path.display()), e),
    })
}

/// What is shown of work that lasts: nothing for two seconds.
struct Progress {
    began: Instant,
    told: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    const QUIET: Duration = Duration::from_secs(2);
    const BEAT: Duration = Duration::from_millis(100);

    fn new() -> Progress {
        let now = Instant::now();
        Progress {
            began: now,
            told: now,
            bar: None,
        }
    }

    fn tell(&mut self, what: impl FnOnce() -> String) {
        let now = Instant::now();
        if now - self.began < Self::QUIET || now - self.told < Self::BEAT {
            return;
        }
        self.told = now;
        let bar = self.bar.get_or_insert_with(ProgressBar::new_spinner);
        bar.set_message(what());
        bar.tick();
    }

    fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
