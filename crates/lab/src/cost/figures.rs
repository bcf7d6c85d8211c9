//! What a boot printed: sections of items with a figure each.

use anyhow::{Context, Result, ensure};

/// A boot's figures, in the order in which they were printed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures(Vec<(String, String, f64)>);

impl Figures {
    /// Reads `== SECTION` and `ITEM<TAB>FIGURE` lines.
    ///
    /// # Errors
    /// When a line is neither, or the end is missing.
    pub fn parse(text: &str) -> Result<Self> {
        let mut figures = Self::default();
        let mut section = String::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("== ") {
                name.clone_into(&mut section);
                continue;
            }
            let (item, value) = line
                .split_once('\t')
                .with_context(|| format!("not a figure: {line}"))?;
            let value = value
                .parse()
                .with_context(|| format!("not a number: {line}"))?;
            figures.0.push((section.clone(), item.to_owned(), value));
        }
        ensure!(section == "end", "the measurement did not come to its end");
        Ok(figures)
    }

    /// One figure.
    pub fn get(&self, section: &str, item: &str) -> Option<f64> {
        let found = self.0.iter().find(|(s, i, _)| s == section && i == item);
        found.map(|(_, _, value)| *value)
    }

    /// How many of them another boot gave otherwise, and how many there are.
    pub fn differing(&self, other: &Self) -> (usize, usize) {
        let differs = |(section, item, value): &&(String, String, f64)| {
            other.get(section, item) != Some(*value)
        };
        (self.0.iter().filter(differs).count(), self.0.len())
    }

    /// A section's items, in order.
    pub fn items(&self, section: &str) -> Vec<&str> {
        let of = self.0.iter().filter(|(s, ..)| s == section);
        of.map(|(_, item, _)| item.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_items() {
        let text = "== top\nread 1 B\t538.0\n== user\nread 1 B\t540\nstat\t3854.5\n== end\n";
        let figures = Figures::parse(text).unwrap();
        assert_eq!(figures.get("top", "read 1 B"), Some(538.0));
        assert_eq!(figures.items("user"), ["read 1 B", "stat"]);
        assert_eq!(figures.get("top", "stat"), None);
        let other = Figures::parse(&text.replace("540", "541")).unwrap();
        assert_eq!(figures.differing(&other), (1, 3));
    }

    #[test]
    fn half_a_measurement_is_none() {
        assert!(Figures::parse("== top\nread\t1\n").is_err());
        assert!(Figures::parse("== top\nKilled\n== end\n").is_err());
    }
}
