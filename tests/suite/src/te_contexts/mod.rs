//! Looks paths up in file contexts by libselinux and by Tidegate's automata, and counts where they differ.
//!
//! `te-contexts TREE [SETS [SEED]]`: TREE is a Debian tree with the program `lookup` in /tmp/te-contexts and with
//! selinux-policy-default, whose own file contexts are asked first; then SETS sets of files made at random.

mod generate;
mod sample;

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;
use tidegate_bundle::te::contexts::{FileContexts, Kind};
use tidegate_policy::te::contexts::{self, ContextsProblem, Texts};

/// Where files and the oracle lie, in the tree.
const PLACE: &str = "tmp/te-contexts";
/// Differences that are shown.
const SHOWN: usize = 20;

/// A path and a kind of file.
type Pair = (Vec<u8>, Kind);

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
}

/// Looks up what the words ask for.
pub fn main(words: &[&str]) -> ExitCode {
    match compared(words) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("te-contexts: {e:#}");
            ExitCode::FAILURE
        }
    }
}

/// How many answers differ.
fn compared(words: &[&str]) -> Result<usize> {
    let mut words = words.iter();
    let tree = words
        .next()
        .context("usage: te-contexts TREE [SETS [SEED]]")?;
    let tree = PathBuf::from(tree);
    let sets: usize = words.next().map_or(Ok(400), |sets| sets.parse())?;
    let seed: u64 = words.next().map_or(Ok(1), |seed| seed.parse())?;
    let mut rng = Rng::with_seed(seed);
    let mut tally = Tally::default();
    policy(&tree, &mut rng, &mut tally)?;
    generated(&tree, sets, &mut rng, &mut tally)?;
    println!("{} passed, {} failed", tally.passed, tally.failed);
    Ok(tally.failed)
}

/// The policy's own file contexts: with the files that libselinux has compiled for itself, and without.
fn policy(tree: &Path, rng: &mut Rng, tally: &mut Tally) -> Result<()> {
    let directory = tree.join("etc/selinux/default/contexts/files");
    let contexts = contexts::compile_files(&directory.join("file_contexts"))?;
    let mut pairs = Vec::new();
    let mut paths = HashSet::new();
    real(tree, tree, &mut pairs, &mut paths)?;
    let found = pairs.len();
    let mut aliases = Vec::new();
    for line in fs::read_to_string(directory.join("file_contexts.subs_dist"))?.lines() {
        if let [from, to] = line.split_whitespace().collect::<Vec<_>>()[..]
            && from.starts_with('/')
        {
            aliases.push((from.as_bytes().to_owned(), to.as_bytes().to_owned()));
        }
    }
    for file in ["file_contexts", "file_contexts.homedirs"] {
        let text = fs::read_to_string(directory.join(file))?;
        for pattern in text
            .lines()
            .filter_map(|line| line.split_whitespace().next())
        {
            for _ in 0..4 {
                let path = sample::matching(rng, pattern);
                paths.extend(sample::clean(&sample::mutated(rng, &path)));
                for (from, to) in &aliases {
                    if let Some(rest) = path.strip_prefix(&to[..]) {
                        paths.extend(sample::clean(&[from, rest].concat()));
                    }
                }
                paths.extend(sample::clean(&path));
            }
        }
    }
    let mut paths: Vec<_> = paths.into_iter().collect();
    paths.sort_unstable();
    for path in &paths {
        pairs.extend(Kind::ALL.map(|kind| (path.clone(), kind)));
    }
    let plain = tree.join(PLACE).join("plain");
    fs::create_dir_all(&plain)?;
    for file in [
        "file_contexts",
        "file_contexts.homedirs",
        "file_contexts.subs_dist",
    ] {
        fs::copy(directory.join(file), plain.join(file))?;
    }
    for place in [
        "etc/selinux/default/contexts/files",
        "tmp/te-contexts/plain",
    ] {
        let before = tally.failed;
        let oracle = ask(tree, &format!("{place}/file_contexts"), &pairs)?;
        let labelled = compare(&contexts, &pairs, &oracle, tally);
        println!(
            "the policy of /{place}: {} pairs, {found} of them of real files; {labelled} have a context; {} differ",
            pairs.len(),
            tally.failed - before
        );
    }
    Ok(())
}

/// The files of a tree with their kinds, and their paths.
fn real(
    tree: &Path,
    directory: &Path,
    pairs: &mut Vec<Pair>,
    paths: &mut HashSet<Vec<u8>>,
) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        let path = entry.path();
        let inside = [b"/", path.strip_prefix(tree)?.as_os_str().as_bytes()].concat();
        if let Some(kind) = Kind::of_mode(metadata.mode()) {
            pairs.push((inside.clone(), kind));
        }
        paths.insert(inside);
        let is_mount = ["proc", "sys", "dev", "tmp"]
            .iter()
            .any(|name| path == tree.join(name));
        if metadata.is_dir() && !is_mount {
            real(tree, &path, pairs, paths)?;
        }
    }
    Ok(())
}

fn generated(tree: &Path, sets: usize, rng: &mut Rng, tally: &mut Tally) -> Result<()> {
    let place = tree.join(PLACE).join("generated");
    fs::create_dir_all(&place)?;
    let (mut asked, mut labelled, mut refused, before) = (0, 0, 0, tally.failed);
    for set in 0..sets {
        let mut texts = generate::texts(rng);
        let contexts = loop {
            match contexts::compile(&texts) {
                Ok(contexts) => break contexts,
                // a line that is refused is taken out; that it is for a good reason is a unit test's matter
                Err(errors) => {
                    for finding in errors.0.iter().rev() {
                        ensure!(
                            matches!(finding.problem(), ContextsProblem::Pattern(_)),
                            "set {set}: {finding}"
                        );
                        refused += 1;
                    }
                    drop_refused(&mut texts)?;
                }
            }
        };
        for (text, ending) in [
            (&texts.policy, ""),
            (&texts.homedirs, ".homedirs"),
            (&texts.local, ".local"),
            (&texts.subs_dist, ".subs_dist"),
            (&texts.subs, ".subs"),
        ] {
            fs::write(place.join(format!("file_contexts{ending}")), &text.text)?;
        }
        let mut paths = HashSet::new();
        for text in [&texts.policy, &texts.homedirs, &texts.local] {
            for pattern in text
                .text
                .lines()
                .filter_map(|line| line.split_whitespace().next())
            {
                for _ in 0..8 {
                    let path = sample::matching(rng, pattern);
                    paths.extend(sample::clean(&sample::mutated(rng, &path)));
                    paths.extend(sample::clean(&path));
                }
            }
        }
        for _ in 0..100 {
            paths.extend(sample::clean(&generate::path(rng)));
        }
        let mut paths: Vec<_> = paths.into_iter().collect();
        paths.sort_unstable();
        let pairs: Vec<Pair> = paths
            .iter()
            .flat_map(|path| Kind::ALL.map(|kind| (path.clone(), kind)))
            .collect();
        asked += pairs.len();
        let failed = tally.failed;
        let oracle = ask(tree, &format!("{PLACE}/generated/file_contexts"), &pairs)?;
        labelled += compare(&contexts, &pairs, &oracle, tally);
        if tally.failed > failed {
            let kept = place.with_file_name(format!("failed-{set}"));
            fs::create_dir_all(&kept)?;
            for entry in fs::read_dir(&place)? {
                let entry = entry?;
                fs::copy(entry.path(), kept.join(entry.file_name()))?;
            }
            println!("set {set} differs; it is kept as {}", kept.display());
        }
    }
    println!(
        "{sets} sets of files made at random: {asked} pairs; {labelled} have a context; {refused} lines refused; {} differ",
        tally.failed - before
    );
    Ok(())
}

/// Takes lines out whose pattern alone is refused.
fn drop_refused(texts: &mut Texts) -> Result<()> {
    for text in [&mut texts.policy, &mut texts.homedirs, &mut texts.local] {
        let alone = |line: &&str| {
            let mut single = Texts::default();
            single.policy.text = (*line).to_owned();
            contexts::compile(&single).is_ok()
        };
        let lines: Vec<&str> = text.text.lines().filter(alone).collect();
        text.text = lines.iter().map(|line| format!("{line}\n")).collect();
    }
    Ok(())
}

/// What libselinux says, the tree's own, by the tree's loader: so nobody has to be root.
fn ask(tree: &Path, file: &str, pairs: &[Pair]) -> Result<Vec<Option<String>>> {
    let libraries = tree.join("usr/lib/x86_64-linux-gnu");
    let mut child = Command::new(tree.join("lib64/ld-linux-x86-64.so.2"))
        .arg("--library-path")
        .arg(libraries)
        .arg(tree.join(PLACE).join("lookup"))
        .arg(tree.join(file))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("the tree's loader")?;
    let mut input = Vec::new();
    for (path, kind) in pairs {
        write!(input, "{:o} ", mode(*kind))?;
        input.extend(path);
        input.push(0);
    }
    let mut stdin = child.stdin.take().context("no standard input")?;
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output()?;
    writer.join().expect("the writer does not panic")?;
    if !output.status.success() {
        bail!("lookup of {file}: {}", output.status);
    }
    let lines = String::from_utf8(output.stdout)?;
    let answers: Vec<_> = lines
        .lines()
        .map(|line| (line != "-").then(|| line.to_owned()))
        .collect();
    ensure!(
        answers.len() == pairs.len(),
        "{} answers to {} questions",
        answers.len(),
        pairs.len()
    );
    Ok(answers)
}

/// Counts answers that are the same; how many have a context.
fn compare(
    contexts: &FileContexts,
    pairs: &[Pair],
    oracle: &[Option<String>],
    tally: &mut Tally,
) -> usize {
    for ((path, kind), said) in pairs.iter().zip(oracle) {
        let found = contexts.lookup(path, *kind);
        if found.context == said.as_deref() {
            tally.passed += 1;
            continue;
        }
        tally.failed += 1;
        if tally.failed <= SHOWN {
            println!(
                "FAILED {:?} {kind:?}: libselinux {said:?}, Tidegate {:?} by {:?}",
                path.escape_ascii().to_string(),
                found.context,
                found.line
            );
        }
    }
    oracle.iter().flatten().count()
}

fn mode(kind: Kind) -> u32 {
    match kind {
        Kind::Regular => 0o100_000,
        Kind::Directory => 0o040_000,
        Kind::Character => 0o020_000,
        Kind::Block => 0o060_000,
        Kind::Fifo => 0o010_000,
        Kind::Symlink => 0o120_000,
        Kind::Socket => 0o140_000,
    }
}
