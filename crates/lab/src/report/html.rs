//! The report as one page that needs nothing else.

use anyhow::{Context, Result};
use minijinja::value::ViaDeserialize;
use minijinja::{Environment, Value, context};

use super::document::Document;
use super::sheet::{self, Sheet};

/// Columns of a table besides its fixed ones.
const COLUMNS: usize = 6;

/// Writes the page.
///
/// # Errors
/// When the template that comes along is wrong.
pub fn page(document: &Document) -> Result<String> {
    let mut templates = Environment::new();
    templates.set_trim_blocks(true);
    templates.set_lstrip_blocks(true);
    templates.add_template("page.html", include_str!("templates/page.html"))?;
    templates.add_filter("parts", |ViaDeserialize(sheet): ViaDeserialize<Sheet>| {
        Value::from_serialize(sheet.split(COLUMNS))
    });
    templates.add_filter("letter", sheet::letter);
    let page = templates.get_template("page.html")?;
    page.render(context! {
        css => include_str!("templates/page.css"),
        parts => document.parts,
    })
    .context("templates/page.html")
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn names_are_escaped_and_nothing_is_loaded() {
        let page = page(&sample::document()).unwrap();
        assert!(!page.contains("<kill>") && page.contains("&lt;kill&gt;"));
        for word in ["<script", "<link", "@import", "url(", " src="] {
            assert!(!page.contains(word), "{word}");
        }
        for words in [
            "no such module here",
            "computes to 0.02 %",
            "no cache",
            "603,735",
        ] {
            assert!(page.contains(words), "{words} is not there");
        }
    }

    #[test]
    fn every_colour_of_a_plot_has_one_for_the_dark() {
        let page = page(&sample::document()).unwrap();
        let css = include_str!("templates/page.css").to_uppercase();
        for part in page.split("=\"#").skip(1) {
            if let Some((colour, _)) = part.split_once('"')
                && colour.len() == 6
            {
                assert!(
                    css.contains(&format!("\"#{}\"", colour.to_uppercase())),
                    "{colour}"
                );
            }
        }
    }
}
