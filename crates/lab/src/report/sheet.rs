//! A table before it is written down: the same one goes to a terminal, to Markdown and
//! to HTML.

use serde::{Deserialize, Serialize};

/// A table with its notes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sheet {
    /// Its heading.
    pub title: String,
    /// A sentence under the heading.
    pub about: String,
    /// The columns' headings.
    pub head: Vec<String>,
    /// The columns that are words, by place; the others are figures.
    pub words: Vec<usize>,
    /// How many of the columns stand in each part where a table is too wide.
    pub fixed: usize,
    /// The rows.
    pub rows: Vec<Row>,
    /// Footnotes: the first is (a).
    pub notes: Vec<String>,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// It is a heading over the rows that follow.
    pub group: bool,
    /// It was published by others.
    pub printed: bool,
    /// Its cells, as many as there are headings, or one in a group's heading.
    pub cells: Vec<Text>,
}

/// A cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Text {
    /// What stands there.
    pub text: String,
    /// What stands under it where there is room, such as an interval.
    pub below: String,
    /// It must not be taken for a finding.
    pub faint: bool,
    /// The letters of its footnotes.
    pub notes: Vec<String>,
}

impl Text {
    /// A cell that is less sure.
    #[must_use]
    pub fn faint(mut self) -> Self {
        self.faint = true;
        self
    }

    /// The text with its notes' letters.
    #[must_use]
    pub fn noted(&self) -> String {
        let notes: Vec<String> = self.notes.iter().map(|n| format!("({n})")).collect();
        let words = [self.text.clone(), notes.join(" ")];
        words.join(" ").trim().to_owned()
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

impl Sheet {
    /// An empty table.
    pub fn new(title: impl Into<String>, about: impl Into<String>, head: &[&str]) -> Self {
        Self {
            title: title.into(),
            about: about.into(),
            words: vec![0],
            fixed: head.len(),
            head: head.iter().map(|h| (*h).to_owned()).collect(),
            ..Self::default()
        }
    }

    /// Says that the columns after the first few may go into further parts.
    #[must_use]
    pub fn fixed(mut self, columns: usize) -> Self {
        self.fixed = columns;
        self
    }

    /// Says which further columns are words; they have to be among the fixed ones.
    #[must_use]
    pub fn words(mut self, columns: &[usize]) -> Self {
        self.words.extend(columns);
        self
    }

    /// The table in parts of at most `most` columns besides the fixed ones, all about as
    /// wide; title and words stand over the first, footnotes under the last.
    #[must_use]
    pub fn split(&self, most: usize) -> Vec<Self> {
        let more = self.head.len() - self.fixed;
        let parts = more.div_ceil(most.max(1)).max(1);
        let each = more.div_ceil(parts);
        let part = |n: usize| {
            let from = self.fixed + n * each;
            let columns = || (0..self.fixed).chain(from..(from + each).min(self.head.len()));
            let take = |row: &Row| Row {
                cells: if row.group {
                    row.cells.clone()
                } else {
                    columns().map(|at| row.cells[at].clone()).collect()
                },
                ..row.clone()
            };
            let only = |when: bool, text: &String| if when { text.clone() } else { String::new() };
            Self {
                title: only(n == 0, &self.title),
                about: only(n == 0, &self.about),
                head: columns().map(|at| self.head[at].clone()).collect(),
                words: self.words.clone(),
                fixed: self.fixed,
                rows: self.rows.iter().map(take).collect(),
                notes: if n + 1 == parts {
                    self.notes.clone()
                } else {
                    Vec::new()
                },
            }
        };
        (0..parts).map(part).collect()
    }

    /// Adds a row of one's own figures.
    pub fn row(&mut self, cells: Vec<Text>) {
        self.add(false, cells);
    }

    /// Adds a row that others published.
    pub fn printed(&mut self, cells: Vec<Text>) {
        self.add(true, cells);
    }

    fn add(&mut self, printed: bool, cells: Vec<Text>) {
        debug_assert_eq!(cells.len(), self.head.len(), "{}: {cells:?}", self.title);
        self.rows.push(Row {
            group: false,
            printed,
            cells,
        });
    }

    /// Adds a heading over the rows that follow.
    pub fn group(&mut self, heading: impl Into<String>) {
        self.rows.push(Row {
            group: true,
            printed: false,
            cells: vec![heading.into().into()],
        });
    }

    /// Puts a footnote to a cell; the same words are one footnote.
    pub fn note(&mut self, cell: &mut Text, words: &str) {
        let at = self.notes.iter().position(|n| n == words);
        let at = at.unwrap_or_else(|| {
            self.notes.push(words.to_owned());
            self.notes.len() - 1
        });
        cell.notes.push(letter(at));
    }

    /// A cell without a figure, and why.
    pub fn gap(&mut self, why: &str) -> Text {
        let mut cell = Text::default();
        self.note(&mut cell, why);
        cell
    }

    /// The footnotes with their letters.
    pub fn lettered(&self) -> impl Iterator<Item = (String, &String)> {
        let notes = self.notes.iter().enumerate();
        notes.map(|(at, words)| (letter(at), words))
    }
}

/// a … z, aa, ab …
#[must_use]
pub fn letter(at: usize) -> String {
    const LETTERS: &[u8; 26] = b"abcdefghijklmnopqrstuvwxyz";
    let last = char::from(LETTERS[at % 26]).to_string();
    match at / 26 {
        0 => last,
        more => letter(more - 1) + &last,
    }
}

/// A cost with its thousands set apart and about four figures that matter.
#[must_use]
pub fn amount(value: f64) -> String {
    let places = match value.abs() {
        v if v >= 1000.0 || v == 0.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        v if v >= 1.0 => 3,
        v if v >= 0.01 => 4,
        _ => 6,
    };
    let text = format!("{value:.places$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with('-')));
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{rest}")
}

/// [`amount`] without zeros at its end: for counts and for axes.
#[must_use]
pub fn count(value: f64) -> String {
    let text = amount(value);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A percentage without its sign of percent: two places, one from 100 on.
#[must_use]
pub fn percent(value: f64) -> String {
    let places = if value.abs() < 99.95 { 2 } else { 1 };
    let text = format!("{value:+.places$}");
    match text.as_str() {
        "+0.00" | "-0.00" => "0.00".to_owned(),
        _ => text.replace('-', "−"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_readable() {
        assert_eq!(amount(1_234_567.8), "1,234,568");
        assert_eq!(amount(874.0), "874.0");
        assert_eq!(amount(-8.5), "-8.500");
        assert_eq!(amount(0.974), "0.9740");
        assert_eq!(
            (count(874.0), count(1e6)),
            ("874".into(), "1,000,000".into())
        );
        assert_eq!(percent(-0.001), "0.00");
        assert_eq!(percent(12.345), "+12.35");
        assert_eq!(percent(159.5), "+159.5");
    }

    #[test]
    fn a_wide_table_comes_in_parts() {
        let mut sheet = Sheet::new("t", "", &["", "1", "2", "3", "4"]).fixed(1);
        sheet.row(["x", "a", "b", "c", "d"].map(Text::from).into());
        sheet.group("g");
        sheet.notes.push("n".into());
        let parts = sheet.split(3);
        let heads: Vec<_> = parts.iter().map(|p| p.head.join(" ")).collect();
        assert_eq!(heads, [" 1 2", " 3 4"]);
        assert_eq!(parts[1].rows[0].cells[2].text, "d");
        assert_eq!((parts[0].notes.len(), parts[1].notes.len()), (0, 1));
        assert_eq!(sheet.split(4), [sheet]);
    }

    #[test]
    fn footnotes_have_letters_and_are_not_repeated() {
        let mut sheet = Sheet::new("t", "", &["a"]);
        let one = sheet.gap("why");
        assert_eq!((sheet.gap("why"), one.noted()), (one, "(a)".to_owned()));
        assert_eq!(sheet.gap("why not").notes, ["b"]);
        assert_eq!(letter(25) + &letter(26) + &letter(52), "zaaba");
    }
}
