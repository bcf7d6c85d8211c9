//! Holds the reference and the kernel's tables against libsepol.
//!
//! ```text
//! te-decisions generate SEED                                  writes CIL with every kind of statement
//! te-decisions compare POLICY SAMPLES SEED -- ORACLE…         asks both; each boolean is set at random
//! ```

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use fastrand::Rng;
use tidegate_bundle::te::Te;

use crate::te_decisions::{Decides, Oracle, Reference, Samples, Tables, compare, generate};

/// Does what the words ask for.
pub fn main(words: &[&str]) -> ExitCode {
    match done(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("te-decisions: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn done(words: &[&str]) -> Result<()> {
    match *words {
        ["generate", seed] => print!("{}", generate(number(seed)?)),
        ["compare", policy, samples, seed, "--", ref oracle @ ..] => {
            let samples = usize::try_from(number(samples)?)?;
            return hold(Path::new(policy), samples, number(seed)?, oracle);
        }
        _ => bail!(
            "te-decisions generate SEED | te-decisions compare POLICY SAMPLES SEED -- ORACLE…"
        ),
    }
    Ok(())
}

fn number(word: &str) -> Result<u64> {
    word.parse().with_context(|| format!("{word} is no number"))
}

/// Compares under the booleans' own values, and under others.
fn hold(path: &Path, count: usize, seed: u64, command: &[&str]) -> Result<()> {
    let policy = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut te = Te::read(policy)?;
    let db = te.db.clone();
    let mut oracle = Oracle::new(&db, command)?;
    let (mut passed, mut failed) = (0, 0);
    let mut tell = |is_good: bool, what: String| {
        match is_good {
            true => passed += 1,
            false => failed += 1,
        }
        println!("{}: {what}", if is_good { "pass" } else { "FAIL" });
    };

    let (classes, sids) = oracle.symbols()?;
    let ours = db.classes.iter().map(|class| {
        let names = std::iter::once(&class.name).chain(&class.permissions);
        names.cloned().collect::<Vec<_>>()
    });
    tell(
        ours.eq(classes),
        format!("{} classes and their permissions", db.classes.len()),
    );
    let ours = db
        .initial_sids
        .iter()
        .map(|(_, context)| db.context_text(context));
    tell(
        ours.eq(sids),
        format!("{} initial SIDs", db.initial_sids.len()),
    );

    let mut samples = Samples::new(&db, seed);
    oracle.know(samples.contexts())?;
    let texts = samples.contexts().iter();
    let come_back = texts
        .clone()
        .all(|it| db.context(&db.context_text(it)).as_ref() == Ok(it));
    tell(
        come_back,
        format!("{} contexts by their texts", texts.len()),
    );
    let mut random = Rng::with_seed(seed);
    for round in ["as they are", "set at random", "set at random again"] {
        if round != "as they are" {
            for boolean in &db.booleans {
                let value = random.bool();
                te.set(&boolean.name, value)?;
                oracle.set(&boolean.name, value)?;
            }
        }
        let mut reference = Reference::new(te.decider());
        reference.know(samples.contexts())?;
        let these: Vec<_> = samples.by_ref().take(count / 6 + 1).collect();
        let otherwise = reference.explained_otherwise(&these);
        tell(
            otherwise == 0,
            format!(
                "{} explanations with booleans {round}, {otherwise} of them of something else than what is refused",
                these.len()
            ),
        );
        let mut tables = Tables::new(&te);
        tables.know(samples.contexts())?;
        let deciders: [(&str, &mut dyn Decides); 2] = [
            ("the reference", &mut reference),
            ("the tables", &mut tables),
        ];
        for (name, decider) in deciders {
            let half = count / 6 + 1;
            let compared = compare(&db, &mut samples, half, [decider, &mut oracle])?;
            for example in &compared.examples {
                println!("FAIL: {example}");
            }
            ensure!(compared.telling > 0, "no question was telling");
            tell(
                compared.different == 0,
                format!(
                    "{name} and libsepol: {} questions with booleans {round}, {} of them telling, {} answered differently",
                    compared.asked, compared.telling, compared.different
                ),
            );
        }
    }
    println!("{passed} passed, {failed} failed");
    ensure!(failed == 0, "{} is decided differently", path.display());
    Ok(())
}
