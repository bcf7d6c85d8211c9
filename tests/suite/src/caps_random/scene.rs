//! What random sequences come to seldom, played each time.

use anyhow::{Result, anyhow, ensure};
use tidegate_policy::caps;

use crate::caps_random::file::{PORTS, ROOT, SOCKETS, SUBJECTS, base};
use crate::caps_random::stage::{self, Stage};

/// Uses of what is counted.
const USES: usize = 3;

fn said(stage: &Stage, at: usize, words: &str) -> Result<String> {
    stage
        .ask(at, words)?
        .map_err(|errno| anyhow!("{at}: {words}: errno {errno}"))
}

/// A file in which these are the lines of the subjects.
fn stage_of(lines: [String; 3]) -> Result<Stage> {
    let subjects = SUBJECTS.iter().zip(&lines);
    let text: String = subjects
        .map(|(name, lines)| format!("subject {name} {{\n{}{lines}}}\n", base()))
        .collect();
    let caps = caps::compile_str(&stage::path(), &text)
        .map_err(|e| anyhow!("{e:?}"))?
        .capabilities;
    Stage::new(&text, &caps.to_bundle())
}

/// How often something goes through, of more often than it may.
fn count(stage: &Stage, at: usize, words: &str) -> Result<usize> {
    let mut went = 0;
    for _ in 0..USES + 2 {
        went += usize::from(stage.ask(at, words)?.is_ok());
    }
    Ok(went)
}

/// One receives what it may use a few times, narrows itself, and has it taken out of it by another
/// of its session, while the one that handed it over may have it for ever: the uses are those of
/// the one that was taken from.
pub fn taken_out_of_who_narrowed_itself() -> Result<String> {
    let mut stage = stage_of([
        format!("    file {ROOT}/in/b read\n"),
        format!("    file {ROOT}/in/b read uses {USES}\n    control file read\n"),
        format!("    file {ROOT}/in/b read\n"),
    ])?;
    let (giver, taker, holder) = (0, 1, 2);
    stage.start(giver, Some("host"))?;
    stage.start(taker, Some("host"))?;
    let (input, output) = stage.ends(holder);
    said(&stage, taker, &format!("fork {input} {output}"))?;
    ensure!(
        stage.answer(holder)? == "ok ",
        "the child says something else"
    );
    said(&stage, holder, &format!("exec {ROOT}/bin/tool"))?;
    let given = said(&stage, giver, &format!("open {ROOT}/in/b r"))?;
    let (inbox, outside) = stage.inbox(holder);
    said(&stage, giver, &format!("give {outside} {given}"))?;
    let held = said(&stage, holder, &format!("take {inbox}"))?;
    said(&stage, holder, &format!("narrow plug {}", stage.bundle))?;
    let number = stage.number(holder)?;
    let taken = said(&stage, taker, &format!("getfd {number} {held}"))?;
    let went = count(&stage, taker, &format!("read {taken}"))?;
    ensure!(went == USES, "who took it used it {went} times of {USES}");
    let went = count(&stage, holder, &format!("read {held}"))?;
    ensure!(went == 0, "who it was taken from used it {went} times more");
    let went = count(&stage, giver, &format!("read {given}"))?;
    ensure!(went > USES, "who gave it used it {went} times");
    Ok(format!("{USES} uses"))
}

/// What one opened and connected before anybody limited it is taken back as what it bound itself is: by object, and by subject.
pub fn what_was_had_before_is_taken_back() -> Result<String> {
    let (socket, port) = (format!("{ROOT}/run/{}", SOCKETS[0]), PORTS[0]);
    let objects = [
        format!("file:{ROOT}/in/b"),
        format!("unix:{socket}"),
        format!("tcp:127.0.0.1:{port}"),
    ];
    for by_object in [true, false] {
        let lines = format!(
            "    file {ROOT}/in/* read\n    connect unix {ROOT}/run/*\n    connect tcp any\n"
        );
        let mut stage = stage_of([lines, String::new(), String::new()])?;
        stage.start(0, None)?;
        let ways = [
            ("read", format!("open {ROOT}/in/b r")),
            ("send", format!("unix {socket}")),
            ("send", format!("tcp {port}")),
        ];
        let mut uses = Vec::new();
        for (way, opening) in &ways {
            uses.push(format!("{way} {}", said(&stage, 0, opening)?));
        }
        said(&stage, 0, &format!("narrow host {}", stage.bundle))?;
        for words in &uses {
            said(&stage, 0, words)?;
        }
        match by_object {
            true => {
                for (object, words) in objects.iter().zip(&uses) {
                    stage::revoke(&["--object".into(), object.clone()])?;
                    let answer = stage.ask(0, words)?;
                    ensure!(answer == Err(libc::EACCES), "{object}: {words}: {answer:?}");
                }
            }
            false => {
                stage::revoke(&["--subject".into(), "random.caps:host".into()])?;
                for words in &uses {
                    let answer = stage.ask(0, words)?;
                    ensure!(answer == Err(libc::EACCES), "{words}: {answer:?}");
                }
            }
        }
    }
    Ok(format!("{} objects, and a subject", objects.len()))
}
