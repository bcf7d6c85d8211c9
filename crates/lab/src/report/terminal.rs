//! Tables for a terminal.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

use super::sheet::Sheet;

const HEADING: Style = Style::new().bold();
const GROUP: Style = AnsiColor::Cyan.on_default();
const FAINT: Style = Style::new().dimmed();
/// Stands in a group's row until the table is laid out.
const PLACE: char = '\u{1}';
/// The least a column of figures may have.
const NARROW: usize = 10;

/// A sheet in no more than `width` columns, with colours that [`anstream`] takes away
/// where they are not wanted.
#[must_use]
pub fn sheet(sheet: &Sheet, width: u16) -> String {
    let mut text = format!("{HEADING}{}{HEADING:#}\n", sheet.title);
    text += &filled(&sheet.about, "", width);
    for part in sheet.split(room(sheet, width)) {
        for line in laid_out(&part, width).lines() {
            match line.trim().strip_prefix(PLACE) {
                Some(place) => {
                    let row = place.trim_end().parse::<usize>().unwrap_or_default();
                    let words = filled(&part.rows[row].cells[0].text, "", width);
                    let _ = write!(text, "{GROUP}{words}{GROUP:#}");
                }
                None => text += &dimmed(line.trim_end()),
            }
        }
        text.push('\n');
    }
    for (letter, words) in sheet.lettered() {
        text += &filled(&format!("({letter}) {words}"), "    ", width);
    }
    if !sheet.notes.is_empty() {
        text.push('\n');
    }
    text
}

/// How many columns fit beside the fixed ones.
fn room(sheet: &Sheet, width: u16) -> usize {
    let widest = |at: usize| {
        let cells = sheet
            .rows
            .iter()
            .filter(|r| !r.group)
            .map(|r| r.cells[at].noted());
        let words = sheet.head[at].split(' ').map(str::to_owned);
        let least = if at == 0 { 0 } else { NARROW };
        cells
            .chain(words)
            .map(|c| c.chars().count())
            .fold(least, usize::max)
            + 2
    };
    let fixed: usize = (0..sheet.fixed).map(widest).sum();
    let each = (sheet.fixed..sheet.head.len())
        .map(widest)
        .max()
        .unwrap_or(1);
    usize::from(width).saturating_sub(fixed) / each
}

fn laid_out(part: &Sheet, width: u16) -> String {
    let mut table = Table::new();
    table
        .load_preset(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width)
        .set_header(part.head.iter().map(|h| wrapped(h)));
    for (at, row) in part.rows.iter().enumerate() {
        if row.group {
            table.add_row([format!("{PLACE}{at}")])
        } else {
            table.add_row(row.cells.iter().map(|c| Cell::new(c.noted())))
        };
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        if !part.words.contains(&at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// A heading with a line for each word or two, so that columns stay narrow.
fn wrapped(heading: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in heading.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < NARROW => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// The line, with what is no finding dimmed.
fn dimmed(line: &str) -> String {
    let mut text = String::new();
    for word in line.split_inclusive(' ') {
        if word.starts_with(['~', '?']) {
            let _ = write!(text, "{FAINT}{word}{FAINT:#}");
        } else {
            text += word
        }
    }
    text + "\n"
}

/// Words in lines of this width.
#[must_use]
pub fn filled(words: &str, indent: &str, width: u16) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in words.split_whitespace() {
        let long = word.chars().count();
        if column > 0 && column + 1 + long > usize::from(width) {
            text.push('\n');
            text += indent;
            column = indent.len();
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += long;
    }
    if column > 0 {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::{overview, sample};
    use super::*;

    /// Without colours.
    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn every_table_fits_the_width() {
        let document = sample::document();
        let part = &document.parts[0];
        let papers = part.papers.iter().flat_map(|p| &p.sheets);
        let sheets = part
            .workloads
            .iter()
            .chain([&part.summary, &part.decisions]);
        for one in sheets.chain(&part.failures).chain(papers) {
            for width in [80, 100] {
                let text = plain(&sheet(one, width));
                for line in text.lines() {
                    assert!(
                        line.chars().count() <= usize::from(width),
                        "{width}:\n{text}"
                    );
                }
            }
        }
    }

    #[test]
    fn every_system_is_there_though_they_do_not_fit_one_table() {
        let section = sample::section();
        let text = plain(&sheet(&overview::overhead(&section, "micro"), 80));
        assert!(text.matches("read 1 B").count() > 1);
        let words: Vec<&str> = text.split_whitespace().collect();
        for name in ["SELinux", "Smack", "lomac", "TOMOYO"] {
            assert!(words.contains(&name), "{name}:\n{text}");
        }
    }

    #[test]
    fn what_is_no_finding_is_dimmed() {
        assert_eq!(plain(&dimmed("a ~1.2 b")), "a ~1.2 b\n");
        assert!(dimmed("a ~1.2 b").contains("\u{1b}[2m~1.2"));
    }
}
