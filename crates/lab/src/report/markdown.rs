//! Tables and the whole report in Markdown.

use std::fmt::Write;

use anyhow::Result;

use super::document::Document;
use super::sheet::{Sheet, Text};

/// Columns of a table besides its fixed ones.
const COLUMNS: usize = 5;

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
        let _ = writeln!(
            text,
            "## {}\n\n{}\n",
            escape(&part.title),
            escape(&part.about)
        );
        for (name, version) in &part.made_with {
            let _ = writeln!(text, "- {}: {}", escape(name), escape(version));
        }
        if !part.made_with.is_empty() {
            text.push('\n');
        }
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
        text.push_str("### How it is measured, and what that does not see\n\n");
        for point in &part.method {
            let _ = writeln!(
                text,
                "- **{}** {}",
                escape(&point.head),
                escape(&point.text)
            );
        }
        text.push('\n');
    }
    Ok(text.trim_end().to_owned() + "\n")
}

/// A table under a heading of this level.
#[must_use]
pub fn sheet(sheet: &Sheet, level: usize) -> String {
    let mut text = format!("{} {}\n\n", "#".repeat(level), escape(&sheet.title));
    if !sheet.about.is_empty() {
        let _ = writeln!(text, "{}\n", escape(&sheet.about));
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
