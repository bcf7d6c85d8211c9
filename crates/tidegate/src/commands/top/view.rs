//! How `top` looks: the lines, which `--once` prints as well, and their places.

use ratatui::Frame as Screen;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Borders, List, ListState, Paragraph, Wrap};
use tidegate_audit::{Record, printable};

use super::frame::{Frame, Process, Rate};
use super::state::State;

/// The heading of [`process`]' lines.
pub const PROCESSES: &str = "    PID    UID LEVEL        PROGRAM          FELL     BY";

/// The heading of [`rate`]'s lines.
pub const RATES: &str = "MANAGER  QUERIES/s  DENIED/s";

/// Columns of [`rate`]'s lines.
const RATE_WIDTH: u16 = 28;

/// From so many columns on, rates stand beside the records.
const WIDE: u16 = 110;

/// The keys.
const KEYS: &str = " q quit  s sort  l level  p pause  ↑↓ choose  ⏎ why";

/// Whether there is colour.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    colour: bool,
}

impl Look {
    /// No colour where NO_COLOR is set and not empty (no-color.org).
    pub fn of_environment() -> Look {
        let colour = std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        Look { colour }
    }

    fn in_colour(self, colour: Color) -> Style {
        if self.colour {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    /// As `tidegate log` has them.
    fn record(self, record: &Record) -> Style {
        match record.kind.as_str() {
            "denied" | "user-denied" => self.in_colour(Color::Red),
            "would" | "user-would" | "table-full" | "lost" | "dropped" => {
                self.in_colour(Color::Yellow)
            }
            "demoted" => self.in_colour(Color::Cyan),
            _ => Style::new(),
        }
    }

    fn process(self, process: &Process) -> Style {
        match process.number {
            0 => self.in_colour(Color::Red),
            _ => self.in_colour(Color::Yellow),
        }
    }
}

/// What is in force and how it fares, in three lines.
pub fn header(frame: &Frame) -> [String; 3] {
    let s = &frame.status;
    let mode = if s.permissive {
        "permissive"
    } else {
        "enforcing"
    };
    let daemon = s
        .daemon
        .map_or_else(|| "not running".into(), |pid| pid.to_string());
    let guard = if s.guard_armed { "armed" } else { "idle" };
    let levels = frame.levels.iter().enumerate().map(|(number, count)| {
        let name = s.levels.get(number);
        let name = name.map_or_else(|| format!("level {number}"), Clone::clone);
        format!("{count} {name}")
    });
    let levels: Vec<_> = levels.collect();
    [
        format!(
            "{} ({mode}), number {}   daemon {daemon}   guard {guard}",
            printable(&s.policy),
            s.seqno
        ),
        format!(
            "records {}, {} lost, {:.1}/s   given {} of {}",
            s.records, s.events_lost, frame.records_rate, s.given.used, s.given.max
        ),
        format!("processes {}", levels.join(", ")),
    ]
}

/// A process in a line, under [`PROCESSES`].
pub fn process(p: &Process) -> String {
    let (clock, by) = match &p.fall {
        Some(fall) => (fall.clock(), fall.deed()),
        None => ("-".into(), String::new()),
    };
    let line = format!(
        "{:>7} {:>6} {:<12} {:<16} {clock:<8} {by}",
        p.pid,
        p.uid,
        p.level,
        printable(&p.comm)
    );
    line.trim_end().into()
}

/// An object manager in a line, under [`RATES`].
pub fn rate(r: &Rate) -> String {
    format!(
        "{:<7} {:>10.1} {:>9.1}",
        r.object_manager, r.queries, r.denied
    )
}

/// A record in a line.
pub fn record(record: &Record) -> String {
    let id = match record.id {
        0 => String::new(),
        id => format!("@{id} "),
    };
    // a demotion's words have the time, as a chain needs it: here it comes first
    let clock = record.clock();
    let words = record.to_string().replacen(&format!(" {clock}"), "", 1);
    format!("{clock} {id}{words}")
}

/// Draws everything; made for 80 columns and 24 lines, and for more.
pub fn draw(screen: &mut Screen<'_>, state: &State, look: Look) {
    let area = screen.area();
    let wide = area.width >= WIDE;
    let why = state.why.as_ref().map_or(0, |_| 6);
    let rates = state.frame.managers.len() as u16 + 2;
    let [head, strip, processes, chain, lower, keys] = Layout::vertical([
        Constraint::Length(3),
        Constraint::Length(if wide { 0 } else { 3 }),
        Constraint::Min(4),
        Constraint::Length(why),
        Constraint::Length(if wide { rates } else { 8 }.max(area.height / 3)),
        Constraint::Length(1),
    ])
    .areas(area);
    let [records, side] = Layout::horizontal([
        Constraint::Fill(1),
        Constraint::Length(if wide { RATE_WIDTH } else { 0 }),
    ])
    .spacing(u16::from(wide))
    .areas(lower);
    draw_header(screen, state, look, head);
    draw_processes(screen, state, look, processes);
    if let Some(parts) = &state.why {
        let lines: Vec<Line<'_>> = parts.iter().map(|p| Line::raw(p.as_str())).collect();
        let pane = Paragraph::new(lines).wrap(Wrap { trim: false });
        screen.render_widget(pane.block(titled("why")), chain);
    }
    draw_records(screen, state, look, records);
    if wide {
        let lines = state.frame.managers.iter().map(|r| Line::raw(rate(r)));
        let lines: Vec<_> = std::iter::once(heading(RATES)).chain(lines).collect();
        let pane = Paragraph::new(lines).block(titled("object managers"));
        screen.render_widget(pane, side);
    } else {
        let rates: Vec<_> = state.frame.managers.iter().map(short_rate).collect();
        let pane = Paragraph::new(rates.join("  ")).wrap(Wrap { trim: true });
        screen.render_widget(pane.block(titled("decisions/s, !denied/s")), strip);
    }
    let keys_line = Paragraph::new(KEYS).style(Style::new().add_modifier(Modifier::DIM));
    screen.render_widget(keys_line, keys);
}

/// An object manager in a few columns.
fn short_rate(r: &Rate) -> String {
    let denied = match r.denied {
        0.0 => String::new(),
        denied => format!(" !{denied:.1}"),
    };
    // what is parted by this blank stays on one line
    format!("{}\u{a0}{:.0}{denied}", r.object_manager, r.queries).replace(' ', "\u{a0}")
}

/// A pane begins with a line that names it.
fn titled(title: &str) -> Block<'_> {
    Block::new()
        .borders(Borders::TOP)
        .title(format!(" {title} "))
}

fn heading(text: &str) -> Line<'_> {
    Line::styled(text, Style::new().add_modifier(Modifier::BOLD))
}

fn draw_header(screen: &mut Screen<'_>, state: &State, look: Look, area: Rect) {
    let [first, second, third] = header(&state.frame);
    let s = &state.frame.status;
    // what somebody should look into
    let odd = |is: bool| match is {
        true => look.in_colour(Color::Yellow).add_modifier(Modifier::BOLD),
        false => Style::new(),
    };
    let mut name = vec![Span::styled(
        "tidegate ",
        Style::new().add_modifier(Modifier::BOLD),
    )];
    if state.paused {
        let reversed = Style::new().add_modifier(Modifier::REVERSED);
        name.push(Span::styled("paused", reversed));
        name.push(Span::raw(" "));
    }
    name.push(Span::styled(first, odd(s.permissive || s.daemon.is_none())));
    let lines = vec![
        Line::from(name),
        Line::styled(second, odd(s.events_lost > 0)),
        Line::raw(third),
    ];
    screen.render_widget(Text::from(lines), area);
}

fn draw_processes(screen: &mut Screen<'_>, state: &State, look: Look, area: Rect) {
    let processes = state.processes();
    let of = match state.level {
        Some(level) => {
            let name = state.frame.status.levels.get(usize::from(level));
            name.map_or_else(|| format!("at level {level}"), |n| format!("at {n}"))
        }
        None => "below the top".into(),
    };
    let title = format!("{} {of}, by {}", processes.len(), state.sort.word());
    let block = titled(&title);
    let inner = block.inner(area);
    screen.render_widget(block, area);
    let [head, rows] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(inner);
    screen.render_widget(heading(PROCESSES), head);
    let lines = processes
        .iter()
        .map(|p| Line::styled(process(p), look.process(p)));
    let list = List::new(lines).highlight_style(Modifier::REVERSED);
    let mut choice = ListState::default().with_selected(state.place());
    screen.render_stateful_widget(list, rows, &mut choice);
}

fn draw_records(screen: &mut Screen<'_>, state: &State, look: Look, area: Rect) {
    let room = usize::from(area.height.saturating_sub(1));
    let records = &state.frame.records;
    let newest = records.iter().skip(records.len().saturating_sub(room));
    let lines: Vec<_> = newest
        .map(|r| Line::styled(record(r), look.record(r)))
        .collect();
    let pane = Paragraph::new(lines).block(titled("demotions and refusals"));
    screen.render_widget(pane, area);
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::protocol::Status;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use tidegate_audit::{ObjectRecord, RuleRecord, SubjectRecord};
    use tidegate_protocol::Room;

    fn demotion(id: u64, comm: &str, path: &str) -> Record {
        Record {
            id,
            time: "2026-01-31T12:00:00.000000Z".into(),
            kind: "demoted".into(),
            op: Some("open-read".into()),
            subject: Some(SubjectRecord {
                pid: 412,
                comm: comm.into(),
                level: "untrusted".into(),
                ..Default::default()
            }),
            object: Some(ObjectRecord {
                level: "user".into(),
                path: Some(path.into()),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    fn process_at(pid: u32, number: u8, fall: Option<Record>) -> Process {
        Process {
            pid,
            uid: 1000,
            level: ["untrusted", "user"][usize::from(number)].into(),
            number,
            comm: format!("program{pid}"),
            attributes: Vec::new(),
            fall,
        }
    }

    /// Two processes at the lowest level, one above.
    pub fn frame() -> Frame {
        let mut denial = demotion(9, "sh", "/home/alice/.bashrc");
        denial.kind = "denied".into();
        denial.op = Some("open-write".into());
        denial.rule = Some(RuleRecord {
            place: "my.plm:14".into(),
            text: String::new(),
        });
        let names = [
            "file", "dir", "exec", "mmap", "socket", "unix", "ipc", "task", "system",
        ];
        let managers = names.map(|name| Rate {
            object_manager: name.into(),
            queries: 1234.5,
            denied: 0.5,
        });
        Frame {
            status: Status {
                policy: "workstation".into(),
                levels: vec!["untrusted".into(), "user".into(), "system".into()],
                left_out: Vec::new(),
                options: Vec::new(),
                seqno: 2,
                permissive: false,
                daemon: Some(99),
                attached: 90,
                guard_armed: true,
                given: Room {
                    used: 12,
                    max: 262_144,
                },
                labels: Room {
                    used: 0,
                    max: 262_144,
                },
                records: 321,
                events_lost: 4,
                labels_failed: 0,
            },
            records_rate: 2.5,
            managers: managers.into(),
            levels: vec![2, 1, 60],
            processes: vec![
                process_at(77, 0, None),
                process_at(300, 1, Some(demotion(5, "bash", "/home/alice/.profile"))),
                process_at(412, 0, Some(demotion(8, "sh", "/tmp/x\u{1b}[2Jy"))),
            ],
            records: vec![demotion(8, "sh", "/tmp/x"), denial].into(),
        }
    }

    fn shown(state: &State, colour: bool, size: (u16, u16)) -> (String, bool) {
        let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
        let look = Look { colour };
        terminal.draw(|screen| draw(screen, state, look)).unwrap();
        let buffer = terminal.backend().buffer();
        let coloured = buffer.content().iter().any(|c| c.fg != Color::Reset);
        let rows = buffer.content().chunks(usize::from(size.0));
        let lines = rows.map(|r| r.iter().map(|c| c.symbol()).collect::<String>() + "\n");
        (lines.collect(), coloured)
    }

    #[test]
    fn everything_has_its_place_on_80_by_24() {
        let (text, coloured) = shown(&State::new(frame()), true, (80, 24));
        for part in [
            "tidegate workstation (enforcing), number 2   daemon 99   guard armed",
            "records 321, 4 lost, 2.5/s   given 12 of 262144",
            "processes 2 untrusted, 1 user, 60 system",
            " 3 below the top, by newest fall ",
            "read /tmp/x\\u001b[2Jy",
            "program77",
            "@9 denied: sh(412) untrusted may not write /home/alice/.bashrc (user",
            "file\u{a0}1234\u{a0}!0.5",
            "system\u{a0}1234\u{a0}!0.5",
            "q quit",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(coloured);
        let of = |pid: &str| text.find(pid).unwrap();
        assert!(of("program412") < of("program300") && of("program300") < of("program77"));
    }

    #[test]
    fn a_wide_terminal_has_the_rates_in_a_table() {
        let (text, _) = shown(&State::new(frame()), true, (132, 40));
        for part in [
            "file        1234.5       0.5",
            "system      1234.5       0.5",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn there_is_no_colour_where_none_is_wanted() {
        assert!(!shown(&State::new(frame()), false, (80, 24)).1);
    }

    #[test]
    fn a_chain_is_shown_where_it_is_asked_for() {
        let mut state = State::new(frame());
        state.chosen = Some(300);
        state.why = Some(vec!["process 300 is at user".into(), "← demoted".into()]);
        let (text, _) = shown(&state, true, (80, 24));
        assert!(
            text.contains(" why ") && text.contains("process 300 is at user"),
            "{text}"
        );
        assert!(
            text.contains("program300") && text.contains("denied: sh(412)"),
            "{text}"
        );
    }

    #[test]
    fn any_size_is_drawn() {
        let mut state = State::new(frame());
        state.why = Some(vec!["x".into()]);
        state.paused = true;
        for size in [(1, 1), (20, 5), (80, 10), (200, 60)] {
            shown(&state, true, size);
        }
    }
}
