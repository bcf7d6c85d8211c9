//! What the keys have changed: the order, the filter, the chosen process.

use std::cmp::Reverse;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::frame::{Frame, Process, Source};

/// The order of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// The newest fall first.
    Fall,
    /// The lowest level first.
    Level,
    /// By process id.
    Pid,
}

impl Sort {
    /// What it is called.
    pub fn word(self) -> &'static str {
        match self {
            Sort::Fall => "newest fall",
            Sort::Level => "level",
            Sort::Pid => "pid",
        }
    }

    fn next(self) -> Sort {
        match self {
            Sort::Fall => Sort::Level,
            Sort::Level => Sort::Pid,
            Sort::Pid => Sort::Fall,
        }
    }
}

/// What follows a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Then {
    /// Nothing but another look.
    GoOn,
    /// The chosen process may be another.
    Explain,
    /// The end.
    End,
}

/// What is shown, and how.
#[derive(Debug)]
pub struct State {
    /// What there is.
    pub frame: Frame,
    /// The order of processes.
    pub sort: Sort,
    /// Only processes at this level.
    pub level: Option<u8>,
    /// Whether the frame stays as it is.
    pub paused: bool,
    /// The chosen process.
    pub chosen: Option<u32>,
    /// The chain of the chosen process, where it is asked for.
    pub why: Option<Vec<String>>,
}

impl State {
    /// As it begins.
    pub fn new(frame: Frame) -> State {
        State {
            frame,
            sort: Sort::Fall,
            level: None,
            paused: false,
            chosen: None,
            why: None,
        }
    }

    /// Shows another frame.
    pub fn show(&mut self, frame: Frame) {
        self.frame = frame;
    }

    /// The processes that are shown, in their order.
    pub fn processes(&self) -> Vec<&Process> {
        ordered(&self.frame, self.sort, self.level)
    }

    /// The place of the chosen process.
    pub fn place(&self) -> Option<usize> {
        self.processes()
            .iter()
            .position(|p| Some(p.pid) == self.chosen)
    }

    /// Asks for the chosen process's chain anew, where it is shown.
    pub fn explain(&mut self, source: &Source) {
        if self.why.is_some() {
            self.why = self.chosen.map(|pid| source.why(pid));
        }
    }

    /// Does what a key says.
    pub fn key(&mut self, key: KeyEvent) -> Then {
        if key.kind == KeyEventKind::Release {
            return Then::GoOn;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return Then::End,
            KeyCode::Char('q') => return Then::End,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('l') => self.next_level(),
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Up | KeyCode::Char('k') => self.move_by(-1),
            KeyCode::Down | KeyCode::Char('j') => self.move_by(1),
            KeyCode::PageUp => self.move_by(-10),
            KeyCode::PageDown => self.move_by(10),
            KeyCode::Enter if self.why.is_none() => {
                if self.chosen.is_none() {
                    self.move_by(0);
                }
                self.why = Some(Vec::new());
            }
            KeyCode::Enter | KeyCode::Esc => self.why = None,
            _ => return Then::GoOn,
        }
        Then::Explain
    }

    /// All levels, then each below the top, the lowest first.
    fn next_level(&mut self) {
        let below = self.frame.levels.len().saturating_sub(1);
        let next = self.level.map_or(0, |l| usize::from(l) + 1);
        self.level = (next < below).then_some(next as u8);
    }

    fn move_by(&mut self, by: isize) {
        let pids: Vec<u32> = self.processes().iter().map(|p| p.pid).collect();
        let to = match self.place() {
            Some(at) => at.saturating_add_signed(by),
            None => 0,
        };
        self.chosen = pids.get(to.min(pids.len().saturating_sub(1))).copied();
    }
}

/// A frame's processes, in an order; of one level, or of all.
pub fn ordered(frame: &Frame, sort: Sort, level: Option<u8>) -> Vec<&Process> {
    let fits = |p: &&Process| level.is_none_or(|l| p.number == l);
    let mut processes: Vec<&Process> = frame.processes.iter().filter(fits).collect();
    // a record's number grows with time; what is no more in the history is older
    let fall = |p: &Process| Reverse(p.fall.as_ref().map_or(0, |f| f.id));
    match sort {
        Sort::Fall => processes.sort_by_key(|p| (fall(p), p.pid)),
        Sort::Level => processes.sort_by_key(|p| (p.number, fall(p), p.pid)),
        Sort::Pid => processes.sort_by_key(|p| p.pid),
    }
    processes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::top::view::tests::frame;

    fn pids(state: &State) -> Vec<u32> {
        state.processes().iter().map(|p| p.pid).collect()
    }

    fn press(state: &mut State, code: KeyCode) -> Then {
        state.key(KeyEvent::from(code))
    }

    #[test]
    fn keys_sort_and_filter() {
        let mut state = State::new(frame());
        assert_eq!(pids(&state), [412, 300, 77]);
        press(&mut state, KeyCode::Char('s'));
        assert_eq!(
            (state.sort, pids(&state)),
            (Sort::Level, vec![412, 77, 300])
        );
        press(&mut state, KeyCode::Char('s'));
        assert_eq!(pids(&state), [77, 300, 412]);
        press(&mut state, KeyCode::Char('l'));
        assert_eq!(pids(&state), [77, 412]);
        press(&mut state, KeyCode::Char('l'));
        assert_eq!(pids(&state), [300]);
        press(&mut state, KeyCode::Char('l'));
        assert_eq!(state.level, None);
    }

    #[test]
    fn the_choice_follows_its_process_and_stays_in_the_list() {
        let mut state = State::new(frame());
        press(&mut state, KeyCode::Down);
        press(&mut state, KeyCode::Down);
        assert_eq!(state.chosen, Some(300));
        press(&mut state, KeyCode::Char('s'));
        assert_eq!((state.chosen, state.place()), (Some(300), Some(2)));
        press(&mut state, KeyCode::PageDown);
        assert_eq!(state.place(), Some(2));
        press(&mut state, KeyCode::PageUp);
        assert_eq!(state.place(), Some(0));
    }

    #[test]
    fn keys_end_pause_and_explain() {
        let mut state = State::new(frame());
        assert_eq!(press(&mut state, KeyCode::Char('q')), Then::End);
        let c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(state.key(c), Then::End);
        press(&mut state, KeyCode::Char('p'));
        assert!(state.paused);
        assert_eq!(press(&mut state, KeyCode::Enter), Then::Explain);
        assert!(state.why.is_some() && state.chosen == Some(412));
        press(&mut state, KeyCode::Esc);
        assert!(state.why.is_none());
    }
}
