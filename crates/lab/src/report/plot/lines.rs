//! Cost against a length or a number: path components, rules, processors.

use anyhow::Result;
use plotters::coord::ranged1d::Ranged;
use plotters::coord::types::RangedCoordf64;

use super::Plot;
use super::canvas::{Canvas, HAIR, INK, MUTED, SERIES, Side, draw};
use super::dots::shortened;
use crate::report::section::{Item, Section};
use crate::report::sheet::count;

const SIZE: (i32, i32) = (960, 640);
const LEFT: i32 = 130;
const RIGHT: i32 = 290;
const TOP: i32 = 30;
const BOTTOM: i32 = 90;
/// Least distance of two labels.
const APART: i32 = 26;

/// What is swept: the last word of its items' names, what is said of it, whether what the
/// baseline itself costs is taken off, and whether the axis is logarithmic.
const SWEEPS: [(&str, &str, bool, bool); 5] = [
    ("components", "components of the path", true, false),
    ("rules", "rules in the policy", true, true),
    ("CPUs", "processors", false, false),
    ("bytes", "bytes of the name", true, false),
    ("capabilities", "capabilities of the subject", true, true),
];

struct Line {
    title: String,
    colour: usize,
    points: Vec<(f64, f64)>,
}

/// `NAME, 8 components`: the name, the number, which sweep.
fn parse(item: &str) -> Option<(&str, f64, usize)> {
    let (name, rest) = item.rsplit_once(", ")?;
    let (number, word) = rest.split_once(' ')?;
    let sweep = SWEEPS
        .iter()
        .position(|s| s.0.trim_end_matches('s') == word.trim_end_matches('s'))?;
    Some((name, number.parse().ok()?, sweep))
}

/// Whether all of these items belong to sweeps.
pub fn is_sweep(items: &[&Item]) -> bool {
    items.iter().all(|i| parse(&i.name).is_some())
}

/// The plots of all sweeps of which at least two points were measured.
///
/// # Errors
/// When one cannot be drawn.
pub fn plots(section: &Section) -> Result<Vec<Plot>> {
    let mut names: Vec<(&str, &str, usize)> = Vec::new();
    for item in &section.items {
        if let Some((name, _, sweep)) = parse(&item.name) {
            let key = (item.workload.as_str(), name, sweep);
            if !names.contains(&key) {
                names.push(key);
            }
        }
    }
    names.sort_by_key(|n| n.2);
    let mut plots = Vec::new();
    for (workload, name, sweep) in names {
        let lines = lines(section, workload, name, sweep);
        if lines.iter().any(|l| l.points.len() > 1) {
            plots.push(plot(section, name, sweep, &lines)?);
        }
    }
    Ok(plots)
}

fn lines(section: &Section, workload: &str, name: &str, sweep: usize) -> Vec<Line> {
    let over_base = SWEEPS[sweep].2;
    let base = section.base();
    let mut lines = Vec::new();
    let others: Vec<usize> = section.others().collect();
    for (at, system) in section.systems.iter().enumerate() {
        if over_base && at == base {
            continue;
        }
        let mut points: Vec<(f64, f64)> = section
            .items
            .iter()
            .filter(|i| i.workload == workload)
            .filter_map(|i| {
                let (its, x, _) = parse(&i.name).filter(|p| (p.0, p.2) == (name, sweep))?;
                debug_assert_eq!(its, name);
                let y = if over_base {
                    let pairs = i.cells[at].pairs(&i.cells[base]);
                    let more: Vec<f64> = pairs.iter().map(|(b, v)| v - b).collect();
                    (!more.is_empty())
                        .then(|| crate::report::stats::middle(section.clock, &more))?
                } else {
                    i.cells[at].mean()?
                };
                Some((x, y))
            })
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        // The same colour in every plot; the baseline has the last one.
        let place = others.iter().position(|o| *o == at);
        let last = SERIES.len() - 1;
        if !points.is_empty() {
            lines.push(Line {
                title: system.title.clone(),
                colour: place.map_or(last, |p| p % last),
                points,
            });
        }
    }
    lines
}

fn plot(section: &Section, name: &str, sweep: usize, lines: &[Line]) -> Result<Plot> {
    let (_, axis, over_base, logarithmic) = SWEEPS[sweep];
    let all = || lines.iter().flat_map(|l| &l.points);
    let scale = |x: f64| if logarithmic { x.ln() } else { x };
    let ends = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| {
            (a.min(v), b.max(v))
        })
    };
    let (x0, x1) = ends(&mut all().map(|p| scale(p.0)));
    let (low, high) = ends(&mut all().map(|p| p.1));
    let room = (high - low.min(0.0)).max(1.0) * 0.05;
    let (y0, y1) = (
        low.min(0.0) - if low < 0.0 { room } else { 0.0 },
        high.max(0.0) + room,
    );
    #[allow(clippy::cast_possible_truncation, reason = "within the plot")]
    let place = |x: f64, y: f64| {
        let wide = f64::from(SIZE.0 - LEFT - RIGHT);
        let tall = f64::from(SIZE.1 - TOP - BOTTOM);
        let x = (scale(x) - x0) / (x1 - x0).max(f64::EPSILON) * wide;
        let y = (y - y0) / (y1 - y0) * tall;
        (LEFT + x as i32, SIZE.1 - BOTTOM - y as i32)
    };
    let svg = draw(SIZE, |canvas| {
        for tick in RangedCoordf64::from(y0..y1).key_points(6) {
            let (_, y) = place(1.0, tick);
            let colour = if tick == 0.0 { MUTED } else { HAIR };
            canvas.line(&[(LEFT, y), (SIZE.0 - RIGHT, y)], colour, 2)?;
            canvas.words((LEFT - 14, y), Side::End, MUTED, &count(tick))?;
        }
        let mut ticks: Vec<f64> = all().map(|p| p.0).collect();
        ticks.sort_by(f64::total_cmp);
        ticks.dedup();
        for tick in ticks {
            let at = (place(tick, 0.0).0, SIZE.1 - BOTTOM + 26);
            canvas.words(at, Side::Middle, MUTED, &count(tick))?;
        }
        let centre = (LEFT + (SIZE.0 - LEFT - RIGHT) / 2, SIZE.1 - 24);
        canvas.words(centre, Side::Middle, INK, axis)?;
        for line in lines {
            let points: Vec<_> = line.points.iter().map(|p| place(p.0, p.1)).collect();
            canvas.line(&points, SERIES[line.colour], 4)?;
            for point in points {
                canvas.dot(point, SERIES[line.colour], false)?;
            }
        }
        names(canvas, lines, &place)
    })?;
    let unit = section.clock.unit();
    Ok(Plot {
        title: format!("{name}, by {axis}"),
        about: if over_base {
            format!("In {unit}, what one operation costs more than under the baseline.")
        } else {
            format!("In {unit}, what one operation costs, under the baseline too.")
        },
        half: true,
        svg,
    })
}

/// Each line's name at its end; names keep apart.
fn names(
    canvas: &Canvas<'_>,
    lines: &[Line],
    place: &impl Fn(f64, f64) -> (i32, i32),
) -> Result<()> {
    let mut ends: Vec<(i32, i32, &Line)> = lines
        .iter()
        .filter_map(|line| {
            let (x, y) = line.points.last()?;
            let (x, y) = place(*x, *y);
            Some((y, x, line))
        })
        .collect();
    ends.sort_by_key(|e| e.0);
    let mut heights = spread(&ends.iter().map(|e| e.0).collect::<Vec<_>>());
    for (height, (y, x, line)) in heights.drain(..).zip(ends) {
        let colour = SERIES[line.colour];
        canvas.line(&[(x + 8, y), (SIZE.0 - RIGHT + 22, height)], colour, 1)?;
        let at = (SIZE.0 - RIGHT + 28, height);
        canvas.words(at, Side::Start, colour, &shortened(&line.title, 20))?;
    }
    Ok(())
}

/// Heights at least [`APART`] from each other, within the plot if there is room.
fn spread(wanted: &[i32]) -> Vec<i32> {
    let mut heights = wanted.to_vec();
    for at in 1..heights.len() {
        heights[at] = heights[at].max(heights[at - 1] + APART);
    }
    let mut limit = SIZE.1 - BOTTOM;
    for height in heights.iter_mut().rev() {
        *height = (*height).min(limit);
        limit = *height - APART;
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn names_of_items_say_what_is_swept() {
        assert_eq!(
            parse("open+close, 16 components"),
            Some(("open+close", 16.0, 0))
        );
        assert_eq!(parse("open+close, 1 CPUs"), Some(("open+close", 1.0, 2)));
        assert_eq!(parse("open+close, 1 CPU"), Some(("open+close", 1.0, 2)));
        assert_eq!(
            parse("bind of a name, 8 bytes"),
            Some(("bind of a name", 8.0, 3))
        );
        assert_eq!(parse("open+close, 8 directories down"), None);
    }

    #[test]
    fn there_are_plots_only_where_there_is_data() {
        let section = Section::new(&sample::run(), "none").unwrap();
        let titles: Vec<_> = plots(&section)
            .unwrap()
            .into_iter()
            .map(|p| p.title)
            .collect();
        assert_eq!(
            titles,
            [
                "open+close, by components of the path",
                "first open, by rules in the policy",
                "open again, by rules in the policy",
                "open+close, by processors",
            ]
        );
        let mut run = sample::run();
        for boot in &mut run.boots {
            for sweep in ["paths", "rules", "contention"] {
                boot.results.remove(sweep);
            }
        }
        let section = Section::new(&run, "none").unwrap();
        assert!(plots(&section).unwrap().is_empty());
    }

    #[test]
    fn labels_keep_apart_and_within() {
        let heights = spread(&[100, 101, 102, 548, 549]);
        assert!(heights.windows(2).all(|w| w[1] - w[0] >= APART));
        assert!(heights.iter().all(|h| *h <= SIZE.1 - BOTTOM));
    }
}
