//! `top`: subjects below the top, demotions and refusals, as they come.

mod frame;
mod state;
mod view;

use std::io::{self, IsTerminal};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use self::frame::{Frame, Source};
use self::state::{State, Then};
use super::print_json;
use crate::cli::Top;
use crate::exit::{Failure, Outcome};
use crate::output::say;

/// Between two frames.
const BEAT: Duration = Duration::from_secs(1);

/// How long a signal may wait to be seen.
const SIGNAL: Duration = Duration::from_millis(200);

pub fn run(args: &Top, json: bool) -> Outcome {
    let mut source = Source::open()?;
    let terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
    if !json && !args.once && terminal {
        return live(source);
    }
    // rates take two looks
    source.take()?;
    thread::sleep(BEAT);
    let frame = source.take()?;
    if json {
        return print_json(&frame);
    }
    print(&frame);
    Ok(())
}

fn print(frame: &Frame) {
    for line in view::header(frame) {
        say!("{line}");
    }
    say!("\n{}", view::PROCESSES);
    for process in state::ordered(frame, state::Sort::Fall, None) {
        say!("{}", view::process(process));
    }
    say!("\n{}", view::RATES);
    for rate in &frame.managers {
        say!("{}", view::rate(rate));
    }
    say!("\nRECORDS");
    for record in &frame.records {
        say!("{}", view::record(record));
    }
}

/// The terminal as it was, however this ends: ratatui's hook does it for a panic.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

fn live(mut source: Source) -> Outcome {
    let failed = |e| Failure::io("use the terminal", e);
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ended)).map_err(failed)?;
    }
    let mut state = State::new(source.take()?);
    let look = view::Look::of_environment();
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let _restore = Restore;
    let mut taken = Instant::now();
    let mut changed = true;
    while !ended.load(Ordering::Relaxed) {
        if mem::take(&mut changed) {
            terminal
                .draw(|screen| view::draw(screen, &state, look))
                .map_err(failed)?;
        }
        let left = BEAT.saturating_sub(taken.elapsed()).min(SIGNAL);
        if event::poll(left).map_err(failed)? {
            // a key, or the terminal's new size
            changed = true;
            if let Event::Key(key) = event::read().map_err(failed)? {
                match state.key(key) {
                    Then::GoOn => {}
                    Then::Explain => state.explain(&source),
                    Then::End => break,
                }
            }
        } else if taken.elapsed() >= BEAT {
            taken = Instant::now();
            if !state.paused {
                state.show(source.take()?);
                state.explain(&source);
                changed = true;
            }
        }
    }
    Ok(())
}
