//! Tables, the whole report and its summary in Markdown.

use std::fmt::Write;

use anyhow::Result;

use super::document::{Document, Part};
use super::sheet::{Sheet, Text};
use super::terminal::filled;

/// Columns of a table besides its fixed ones.
const COLUMNS: usize = 5;
/// Columns of a line of words.
const WIDTH: u16 = 88;

/// What stands above a summary, which is a page of this project's documentation.
const ABOUT: &str = "A summary of the last whole measurement, which `make cost` writes. The whole report has \
    plots, intervals, all workloads and the tables of published papers. `make cost` writes it to `target/cost`, to be \
    published with a release: `cost.html`, `cost.md`, and the figures in `cost.json`. [What it costs](../explain/cost.md) \
    interprets the figures, and [lab.md](lab.md) says how they are measured.";

/// The whole report; `page` is the HTML file's name, if there is one.
///
/// # Errors
/// When the template is wrong.
pub fn document(document: &Document, page: Option<&str>) -> Result<String> {
    let mut text = String::from("# What mandatory access control costs\n\n");
    if let Some(page) = page {
        let _ = writeln!(text, "With plots: [{}]({page}).\n", escape(page));
    }
    for part in &document.parts {
        text += &head(part);
        text += &sheet(&part.summary, 3);
        let failures = part.failures.iter();
        for one in part.versus.iter().chain(failures).chain(&part.workloads) {
            text += &sheet(one, 3);
        }
        text += &sheet(&part.decisions, 3);
        for paper in &part.papers {
            let _ = writeln!(text, "### {}\n", escape(paper.title));
            for one in &paper.sheets {
                text += &sheet(one, 4);
            }
        }
        text += &method(part);
    }
    Ok(text.trim_end().to_owned() + "\n")
}

/// A page of the report's headline and its single operations, without intervals.
#[must_use]
pub fn summary(document: &Document) -> String {
    let mut text = format!(
        "# What mandatory access control costs\n\n{}\n",
        filled(ABOUT, "", WIDTH)
    );
    for part in &document.parts {
        text += &head(part);
        let sheets = [&part.summary].into_iter().chain(&part.versus);
        for one in sheets.chain(part.workloads.first()).chain(&part.failures) {
            let mut short = one.clone();
            for cell in short.rows.iter_mut().flat_map(|row| &mut row.cells) {
                cell.below.clear();
            }
            text += &sheet(&short, 3);
        }
        text += &method(part);
    }
    text.trim_end().to_owned() + "\n"
}

/// What was measured in a part, and with what.
fn head(part: &Part) -> String {
    let about = filled(&escape(&part.about), "", WIDTH);
    let mut text = format!("## {}\n\n{about}\n", escape(&part.title));
    for (name, version) in &part.made_with {
        let _ = writeln!(text, "- {}: {}", escape(name), escape(version));
    }
    if !part.made_with.is_empty() {
        text.push('\n');
    }
    text
}

/// How a part was measured.
fn method(part: &Part) -> String {
    let mut text = "### How it is measured, and what that does not see\n\n".to_owned();
    for point in &part.method {
        let words = format!("- **{}** {}", escape(&point.head), escape(&point.text));
        text += &filled(&words, "  ", WIDTH);
    }
    text.push('\n');
    text
}

/// A table under a heading of this level.
#[must_use]
pub fn sheet(sheet: &Sheet, level: usize) -> String {
    let mut text = format!("{} {}\n\n", "#".repeat(level), escape(&sheet.title));
    if !sheet.about.is_empty() {
        let _ = writeln!(text, "{}", filled(&escape(&sheet.about), "", WIDTH));
    }
    for part in sheet.split(COLUMNS) {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        text += &line(part.head.iter().map(|h| escape(h)).collect());
        let side = |at| {
            if part.words.contains(&at) {
                "---"
            } else {
                "--:"
            }
        };
        text += &line((0..part.head.len()).map(|at| side(at).to_owned()).collect());
        for row in &part.rows {
            let mut cells: Vec<String> = if row.group {
                vec![format!("**{}**", escape(&row.cells[0].text))]
            } else {
                row.cells.iter().map(cell).collect()
            };
            cells.resize(part.head.len(), String::new());
            text += &line(cells);
        }
        text.push('\n');
    }
    for (letter, words) in sheet.lettered() {
        let _ = writeln!(text, "({letter}) {}  ", escape(words));
    }
    if !sheet.notes.is_empty() {
        text.push('\n');
    }
    text
}

fn cell(cell: &Text) -> String {
    let text = Text {
        text: format!("{} {}", cell.text, cell.below).trim().to_owned(),
        ..cell.clone()
    };
    escape(&text.noted())
}

/// Words that Markdown leaves as they are.
fn escape(words: &str) -> String {
    let mut text = String::with_capacity(words.len());
    for c in words.chars() {
        match c {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '|' | '*' | '_' | '`' | '~' | '[' | ']' | '\\' => text.extend(['\\', c]),
            '\n' => text.push(' '),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_summary_is_a_page() {
        let document = sample::document();
        let (text, whole) = (
            summary(&document),
            super::document(&document, None).unwrap(),
        );
        assert!(text.contains("### In short") && text.contains("### How it is measured"));
        assert!(
            text.len() * 3 < whole.len(),
            "{} of {}",
            text.len(),
            whole.len()
        );
    }

    #[test]
    fn the_whole_report_is_there() {
        let text = document(&sample::document(), Some("cost.html")).unwrap();
        for words in [
            "[cost.html](cost.html)",
            "&lt;kill> &amp; \"0\"",
            "**Tidegate lomac, build-flask**",
            "no such module here",
            "computes to 0.02 %",
            "no cache",
            "603,735",
        ] {
            assert!(text.contains(words), "{words} is not there");
        }
        let row = |line: &str| line.starts_with('|');
        for line in text.lines().filter(|l| row(l)) {
            assert!(line.ends_with('|'), "{line}");
        }
    }
}
