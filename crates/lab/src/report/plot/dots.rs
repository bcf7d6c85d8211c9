//! Cost by item and system: a panel a system, a row an item, the figure beside its dot.
//!
//! The scale is ±ln(1 + |percent|), about linear near 0 and logarithmic far out, so that
//! 0.5 % and 150 % are both to be seen.

use anyhow::Result;

use super::Plot;
use super::canvas::{BAND, Canvas, HAIR, INK, MUTED, SERIES, Side, draw};
use crate::report::section::{Cell, Item, Section};
use crate::report::sheet::percent;
use crate::report::stats::Standing;

const WIDTH: i32 = 1960;
const LABELS: i32 = 420;
const NUMBERS: i32 = 112;
const ROW: i32 = 36;
const HEAD: i32 = 76;
const FOOT: i32 = 24;
/// Panels beside each other.
const PANELS: usize = 5;
/// What is dearer stands at the edge, with its figure.
const MOST: f64 = 200.0;
/// What is cheaper stands at the other one.
const LEAST: f64 = -20.0;

/// The plot of these items, by the names that they have in it, if they have a penalty at all.
///
/// # Errors
/// When it cannot be drawn.
pub fn plot(section: &Section, heading: &str, items: &[(String, &Item)]) -> Result<Option<Plot>> {
    let has = |at: &usize| items.iter().any(|(_, i)| i.cells[*at].penalty.is_some());
    let (others, without): (Vec<usize>, Vec<usize>) = section.others().partition(has);
    let penalties = || {
        items
            .iter()
            .flat_map(|(_, i)| &i.cells)
            .filter_map(|c| c.penalty.as_ref())
    };
    if penalties().next().is_none() {
        return Ok(None);
    }
    let least = penalties()
        .map(|p| p.percent)
        .fold(-1.0, f64::min)
        .max(LEAST);
    let most = penalties()
        .map(|p| p.percent)
        .fold(10.0, f64::max)
        .min(MOST);
    let strips = others.len().div_ceil(PANELS);
    let each = others.len().div_ceil(strips);
    let rows = i32::try_from(items.len())?;
    let tall = HEAD + rows * ROW + FOOT;
    let svg = draw((WIDTH, tall * i32::try_from(strips)?), |canvas| {
        let mut top = 0;
        for systems in others.chunks(each) {
            let wide = (WIDTH - LABELS) / i32::try_from(each)?;
            labels(canvas, items, top)?;
            let mut left = LABELS;
            for at in systems {
                let panel = Panel {
                    left,
                    top,
                    wide: wide - NUMBERS,
                    least,
                    most,
                };
                for (row, (_, item)) in (0..).zip(items) {
                    panel.noise(canvas, row, item.noise)?;
                }
                panel.frame(canvas, rows, &section.systems[*at].title)?;
                for (row, (_, item)) in (0..).zip(items) {
                    panel.cell(canvas, row, &item.cells[*at])?;
                }
                left += wide;
            }
            top += tall;
        }
        Ok(())
    })?;
    let titles: Vec<&str> = without
        .iter()
        .map(|at| section.systems[*at].title.as_str())
        .collect();
    Ok(Some(Plot {
        title: heading.to_owned(),
        about: if titles.is_empty() {
            String::new()
        } else {
            format!("No figures: {}.", titles.join("; "))
        },
        half: false,
        svg,
    }))
}

fn labels(canvas: &Canvas<'_>, items: &[(String, &Item)], top: i32) -> Result<()> {
    for (row, (name, _)) in (0..).zip(items) {
        let y = middle(top, row);
        canvas.words((LABELS - 24, y), Side::End, INK, &shortened(name, 36))?;
        canvas.line(&[(0, y + ROW / 2), (WIDTH, y + ROW / 2)], HAIR, 1)?;
    }
    Ok(())
}

fn middle(top: i32, row: i32) -> i32 {
    top + HEAD + row * ROW + ROW / 2
}

/// As many letters as there is room for.
pub(super) fn shortened(words: &str, most: usize) -> String {
    if words.chars().count() <= most {
        return words.to_owned();
    }
    let kept: String = words.chars().take(most - 1).collect();
    format!("{}…", kept.trim_end())
}

struct Panel {
    left: i32,
    top: i32,
    wide: i32,
    least: f64,
    most: f64,
}

impl Panel {
    fn x(&self, percent: f64) -> i32 {
        let scale = |p: f64| p.signum() * p.abs().ln_1p();
        let (from, to) = (scale(self.least), scale(self.most));
        let at = (scale(percent.clamp(self.least, self.most)) - from) / (to - from);
        #[allow(clippy::cast_possible_truncation, reason = "within the panel")]
        let x = (at * f64::from(self.wide - 40)) as i32;
        self.left + 12 + x
    }

    fn frame(&self, canvas: &Canvas<'_>, rows: i32, title: &str) -> Result<()> {
        let title = shortened(title, usize::try_from(self.wide + NUMBERS)? / 14);
        canvas.strong((self.left + 12, self.top + 20), Side::Start, &title)?;
        let (from, to) = (self.top + HEAD - 4, self.top + HEAD + rows * ROW);
        for (tick, words) in [
            (-10.0, "−10"),
            (0.0, "0"),
            (1.0, "1"),
            (10.0, "10"),
            (100.0, "100"),
        ] {
            if tick >= self.least && tick <= self.most {
                let x = self.x(tick);
                let colour = if tick == 0.0 { MUTED } else { HAIR };
                canvas.line(&[(x, from), (x, to)], colour, 2)?;
                canvas.words((x, self.top + HEAD - 20), Side::Middle, MUTED, words)?;
            }
        }
        Ok(())
    }

    fn noise(&self, canvas: &Canvas<'_>, row: i32, noise: Option<f64>) -> Result<()> {
        let Some(noise) = noise else { return Ok(()) };
        let y = middle(self.top, row);
        let corners = [(self.x(-noise), y - 12), (self.x(noise), y + 12)];
        canvas.band(corners, BAND)
    }

    fn cell(&self, canvas: &Canvas<'_>, row: i32, cell: &Cell) -> Result<()> {
        let y = middle(self.top, row);
        let edge = self.left + self.wide + NUMBERS - 16;
        let Some(penalty) = &cell.penalty else {
            return canvas.words((edge, y), Side::End, MUTED, "failed");
        };
        let sure = penalty.standing == Standing::Significant;
        let colour = if sure { SERIES[0] } else { MUTED };
        if let Some(i) = penalty.interval {
            canvas.line(&[(self.x(i.low), y), (self.x(i.high), y)], colour, 3)?;
        }
        let x = self.x(penalty.percent);
        if penalty.percent > self.most || penalty.percent < self.least {
            canvas.beyond((x, y), penalty.percent > 0.0, colour)?;
        } else {
            canvas.dot((x, y), colour, !sure)?;
        }
        let number = format!(
            "{}\u{2009}{}",
            penalty.standing.mark(),
            percent(penalty.percent)
        );
        canvas.words(
            (edge, y),
            Side::End,
            if sure { INK } else { MUTED },
            &number,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn micro(section: &Section) -> Vec<(String, &Item)> {
        let items = section.items.iter().filter(|i| i.workload == "micro");
        items.map(|i| (i.name.clone(), i)).collect()
    }

    #[test]
    fn each_figure_stands_beside_its_dot_and_gaps_have_none() {
        let section = Section::new(&sample::run(), "none").unwrap();
        let Plot { svg, about, .. } = plot(&section, "m", &micro(&section)).unwrap().unwrap();
        assert_eq!(about, "No figures: TOMOYO.");
        let figures = svg.matches("<circle").count() + svg.matches("<polygon").count();
        assert_eq!(figures, 12 * 8);
        assert!(!svg.contains("TOMOYO"), "all of it failed");
        assert!(svg.contains("&lt;kill&gt; &amp;"));
    }

    #[test]
    fn what_is_beyond_the_scale_is_a_triangle_with_its_figure() {
        let mut run = sample::run();
        for boot in run.boots.iter_mut().filter(|b| b.system == "smack") {
            let figures = &mut boot.results.get_mut("micro").unwrap().figures;
            figures[0].value *= 5.0;
            figures[1].value /= 5.0;
        }
        let section = Section::new(&run, "none").unwrap();
        let svg = plot(&section, "m", &micro(&section)).unwrap().unwrap().svg;
        assert_eq!(svg.matches("<polygon").count(), 2);
        assert!(svg.contains("\u{2009}+4") && svg.contains("\u{2009}−"));
    }

    #[test]
    fn a_workload_without_a_penalty_has_no_plot() {
        let mut run = sample::run();
        run.boots.retain(|b| b.system == "none");
        let section = Section::new(&run, "none").unwrap();
        assert!(plot(&section, "m", &micro(&section)).unwrap().is_none());
    }

    #[test]
    fn long_names_are_shortened_by_letters() {
        assert_eq!(shortened("äöüß", 4), "äöüß");
        assert_eq!(shortened("äöüßä", 4), "äöü…");
    }
}
