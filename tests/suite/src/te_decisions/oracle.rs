//! libsepol, in a process of its own (`oracle.c`).

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use anyhow::{Context as _, Result, bail, ensure};
use tidegate_bundle::te::db::{Context, PolicyDb};

use crate::te_decisions::{Decides, Label, Sample, Vector};

/// Asks libsepol.
#[derive(Debug)]
pub struct Oracle<'p> {
    db: &'p PolicyDb,
    child: Child,
    questions: BufWriter<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl<'p> Oracle<'p> {
    /// Runs the oracle by this command, whose last argument is the policy.
    ///
    /// # Errors
    ///
    /// If it cannot be run.
    pub fn new(db: &'p PolicyDb, command: &[&str]) -> Result<Self> {
        let (program, arguments) = command.split_first().context("which oracle?")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {program}"))?;
        let questions = child.stdin.take().context("it has a standard input")?;
        let answers = child.stdout.take().context("it has a standard output")?;
        Ok(Self {
            db,
            child,
            questions: BufWriter::new(questions),
            answers: BufReader::new(answers),
        })
    }

    /// Sets a boolean.
    ///
    /// # Errors
    ///
    /// If it cannot be asked, or the policy has no such boolean.
    pub fn set(&mut self, name: &str, value: bool) -> Result<()> {
        let answers = self.ask(&[format!("b {name} {}", u8::from(value))])?;
        ensure!(answers == ["ok"], "the oracle says {answers:?} to {name}");
        Ok(())
    }

    /// What each class is called, and its permissions; each initial SID's context.
    ///
    /// # Errors
    ///
    /// If it cannot be asked.
    pub fn symbols(&mut self) -> Result<(Vec<Vec<String>>, Vec<String>)> {
        let classes: Vec<_> = (1..=self.db.classes.len())
            .map(|class| format!("k {class}"))
            .collect();
        let sids = self.db.initial_sids.iter();
        let sids: Vec<_> = sids.map(|(sid, _)| format!("i {sid}")).collect();
        let classes = self.ask(&classes)?.into_iter();
        let words = |line: String| line.split_whitespace().map(str::to_owned).collect();
        Ok((classes.map(words).collect(), self.ask(&sids)?))
    }

    /// An answer for each question.
    fn ask(&mut self, questions: &[String]) -> Result<Vec<String>> {
        let Self {
            questions: pipe,
            answers,
            child,
            ..
        } = self;
        let answers = thread::scope(|scope| {
            // a thread that writes all before reading waits for one that waits for the same
            let writer = scope.spawn(|| {
                for question in questions {
                    writeln!(pipe, "{question}")?;
                }
                writeln!(pipe, ".")?;
                pipe.flush()
            });
            let lines = BufRead::lines(answers).take(questions.len());
            let lines = lines.collect::<std::io::Result<Vec<_>>>();
            match writer.join() {
                Ok(written) => written.and(lines),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })?;
        if answers.len() != questions.len() {
            bail!("the oracle ended: {}", child.wait()?);
        }
        Ok(answers)
    }

    fn ask_each(
        &mut self,
        samples: &[Sample],
        question: impl Fn(&Sample) -> String,
    ) -> Result<Vec<String>> {
        let questions: Vec<_> = samples.iter().map(question).collect();
        self.ask(&questions)
    }
}

impl Decides for Oracle<'_> {
    fn know(&mut self, contexts: &[Context]) -> Result<()> {
        let texts = contexts.iter().map(|context| self.db.context_text(context));
        let questions: Vec<_> = texts.map(|text| format!("c {text}")).collect();
        let answers = self.ask(&questions)?;
        match answers.iter().position(|answer| answer != "ok") {
            Some(at) => bail!("the oracle takes no {}", questions[at]),
            None => Ok(()),
        }
    }

    fn access(&mut self, samples: &[Sample]) -> Result<Option<Vec<Vector>>> {
        let answers = self.ask_each(samples, |it| {
            format!("a {} {} {}", it.source, it.target, it.class)
        })?;
        let vectors = answers.iter().map(|answer| {
            let mut words = answer.split(' ').map(|word| u32::from_str_radix(word, 16));
            let mut word = || {
                words
                    .next()
                    .context("a word is missing")?
                    .context("no number")
            };
            Ok(Vector {
                allowed: word()?,
                auditallow: word()?,
                auditdeny: word()?,
                permissive: word()? != 0,
            })
        });
        vectors.collect::<Result<_>>().map(Some)
    }

    fn labels(&mut self, label: Label, samples: &[Sample]) -> Result<Option<Vec<Option<String>>>> {
        let kind = match label {
            Label::Transition => 't',
            Label::Member => 'm',
            Label::Change => 'h',
        };
        let answers = self.ask_each(samples, |it| {
            format!("{kind} {} {} {}", it.source, it.target, it.class)
        })?;
        Ok(Some(answers.into_iter().map(if_any).collect()))
    }

    fn names(&mut self, samples: &[Sample]) -> Result<Option<Vec<Option<String>>>> {
        let answers = self.ask_each(samples, |it| {
            format!("n {} {} {} {}", it.source, it.target, it.class, it.name)
        })?;
        Ok(Some(answers.into_iter().map(if_any).collect()))
    }

    fn changes(&mut self, samples: &[Sample]) -> Result<Option<Vec<bool>>> {
        let answers = self.ask_each(samples, |it| {
            format!("v {} {} {} {}", it.source, it.target, it.third, it.class)
        })?;
        Ok(Some(answers.iter().map(|answer| answer == "1").collect()))
    }
}

fn if_any(answer: String) -> Option<String> {
    Some(answer).filter(|answer| answer != "-")
}
