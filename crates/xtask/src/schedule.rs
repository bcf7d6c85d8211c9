//! Runs jobs, each once all that it needs is done, as many at a time as there are processors.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;
use std::thread;

/// What is run as one.
pub struct Job<'a> {
    /// Its name, by which others need it.
    pub name: String,
    /// The jobs that have to be done before.
    pub needs: Vec<String>,
    /// Whether it calls cargo: one at a time does, as they would wait for each other.
    pub cargo: bool,
    /// Does it; whether that succeeded.
    pub run: Box<dyn FnOnce() -> bool + Send + 'a>,
    /// Is told the job that failed, if one does that this needs.
    pub skip: Box<dyn FnOnce(&str) + Send + 'a>,
}

/// Where a job stands that has begun or ended.
enum State {
    Running { cargo: bool },
    Done,
    Failed,
}

/// Runs all jobs, at most `places` at a time; those first that are first in the list.
///
/// # Panics
/// When a job has panicked, once all others have ended.
pub fn run(mut waiting: Vec<Job<'_>>, places: usize) {
    let mut states: HashMap<String, State> = HashMap::new();
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        loop {
            skip(&mut waiting, &mut states);
            while let Some(place) = next(&waiting, &states, places) {
                let job = waiting.remove(place);
                states.insert(job.name.clone(), State::Running { cargo: job.cargo });
                let sender = sender.clone();
                scope.spawn(move || {
                    let done = catch_unwind(AssertUnwindSafe(job.run));
                    // a job that panics has ended, too
                    let _ = sender.send((job.name, matches!(done, Ok(true))));
                    if let Err(panic) = done {
                        resume_unwind(panic);
                    }
                });
            }
            if !states.values().any(|s| matches!(s, State::Running { .. })) {
                break;
            }
            let Ok((name, good)) = receiver.recv() else {
                break;
            };
            states.insert(name, if good { State::Done } else { State::Failed });
        }
    });
}

/// Skips what needs a job that has failed, or that is nowhere.
fn skip(waiting: &mut Vec<Job<'_>>, states: &mut HashMap<String, State>) {
    loop {
        let known = |name: &String| {
            waiting.iter().any(|job| job.name == *name) || states.contains_key(name)
        };
        let found = waiting.iter().enumerate().find_map(|(place, job)| {
            let fails =
                |need: &&String| matches!(states.get(*need), Some(State::Failed)) || !known(need);
            Some((place, job.needs.iter().find(fails)?.clone()))
        });
        let Some((place, need)) = found else { return };
        let job = waiting.remove(place);
        states.insert(job.name, State::Failed);
        (job.skip)(&need);
    }
}

/// The first job that can begin now.
fn next(waiting: &[Job<'_>], states: &HashMap<String, State>, places: usize) -> Option<usize> {
    let running = states
        .values()
        .filter(|s| matches!(s, State::Running { .. }));
    let cargo = states
        .values()
        .any(|s| matches!(s, State::Running { cargo: true }));
    if running.count() >= places {
        return None;
    }
    waiting.iter().position(|job| {
        let done = |need: &String| matches!(states.get(need), Some(State::Done));
        job.needs.iter().all(done) && !(cargo && job.cargo)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn job<'a>(
        name: &str,
        needs: &[&str],
        cargo: bool,
        said: &'a Mutex<Vec<String>>,
        good: bool,
    ) -> Job<'a> {
        let (ran, skipped) = (name.to_owned(), name.to_owned());
        Job {
            name: name.into(),
            needs: needs.iter().map(|n| (*n).into()).collect(),
            cargo,
            run: Box::new(move || {
                said.lock().unwrap().push(ran);
                good
            }),
            skip: Box::new(move |need| {
                said.lock()
                    .unwrap()
                    .push(format!("{skipped} without {need}"))
            }),
        }
    }

    #[test]
    fn a_job_runs_after_what_it_needs() {
        let said = Mutex::new(Vec::new());
        let jobs = vec![
            job("part", &["programs"], false, &said, true),
            job("programs", &["lab"], true, &said, true),
            job("lab", &[], true, &said, true),
        ];
        run(jobs, 4);
        assert_eq!(*said.lock().unwrap(), ["lab", "programs", "part"]);
    }

    #[test]
    fn what_needs_a_failed_job_is_skipped() {
        let said = Mutex::new(Vec::new());
        let jobs = vec![
            job("lab", &[], true, &said, false),
            job("machines", &["lab"], false, &said, true),
            job("part", &["machines"], false, &said, true),
            job("other", &[], false, &said, true),
        ];
        run(jobs, 1);
        let heard = [
            "lab",
            "machines without lab",
            "part without machines",
            "other",
        ];
        assert_eq!(*said.lock().unwrap(), heard);
    }

    #[test]
    #[should_panic(expected = "panicked")]
    fn a_job_that_panics_ends_all() {
        let said = Mutex::new(Vec::new());
        let mut broken = job("broken", &[], false, &said, true);
        broken.run = Box::new(|| -> bool { panic!("broken") });
        run(
            vec![broken, job("part", &["broken"], false, &said, true)],
            2,
        );
    }

    #[test]
    fn a_need_that_is_nowhere_skips() {
        let said = Mutex::new(Vec::new());
        run(vec![job("part", &["none"], false, &said, true)], 2);
        assert_eq!(*said.lock().unwrap(), ["part without none"]);
    }

    #[test]
    fn one_cargo_at_a_time() {
        let running = Mutex::new(0);
        let jobs = (0..8)
            .map(|n| Job {
                name: n.to_string(),
                needs: Vec::new(),
                cargo: true,
                run: Box::new(|| {
                    *running.lock().unwrap() += 1;
                    thread::yield_now();
                    let alone = *running.lock().unwrap() == 1;
                    *running.lock().unwrap() -= 1;
                    assert!(alone);
                    true
                }),
                skip: Box::new(|_| ()),
            })
            .collect();
        run(jobs, 8);
        assert_eq!(*running.lock().unwrap(), 0);
    }
}
