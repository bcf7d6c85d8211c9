//! What the figures of a cell say: means, intervals, the noise below which nothing counts.
//!
//! Every comparison is made between boots of one disturbance: the pair has all in common
//! but the system.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::statistics::{Data, Median, Statistics};

use crate::results::Clock;

/// How often the pairs are drawn anew for a bootstrap interval.
pub const RESAMPLES: usize = 10_000;
/// The bootstrap begins here, so that a report is the same whenever it is written.
const SEED: u64 = 0x7469_6465;

/// Where an interval comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Student's t over the paired disturbances.
    StudentT,
    /// Percentiles of the median of pairs that are drawn again and again.
    Bootstrap,
}

impl Source {
    /// The name for tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::StudentT => "Student's t",
            Self::Bootstrap => "bootstrap",
        }
    }
}

/// A 95 % interval, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Where it comes from.
    pub source: Source,
}

/// Whether a penalty may be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Its interval excludes 0 and it is larger than the noise floor.
    Significant,
    /// It is not; tables write `~` before it.
    Noise,
    /// There is one pair only, or the noise floor is not known; tables write `?` before it.
    Untested,
}

impl Standing {
    /// What tables write before the figure.
    #[must_use]
    pub fn mark(self) -> &'static str {
        match self {
            Self::Significant => "",
            Self::Noise => "~",
            Self::Untested => "?",
        }
    }
}

/// A system's penalty for an item.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Penalty {
    /// In percent; positive is slower. The mean of the pairs where instructions are
    /// counted, their median where time is.
    pub percent: f64,
    /// How many pairs.
    pub pairs: usize,
    /// Where it may lie; none with one pair.
    pub interval: Option<Interval>,
    /// Whether it may be believed.
    pub standing: Standing,
}

/// The mean.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    values.mean()
}

/// The standard deviation of a sample; none of one figure.
#[must_use]
pub fn deviation(values: &[f64]) -> Option<f64> {
    (values.len() > 1).then(|| values.std_dev())
}

/// The median.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    Data::new(values.to_vec()).median()
}

/// The middle of pairs as this clock wants it: the mean of counted instructions; the
/// median of times, among which single rounds stray far.
#[must_use]
pub fn middle(clock: Clock, values: &[f64]) -> f64 {
    match clock {
        Clock::Instructions => mean(values),
        Clock::Vm | Clock::Machine => median(values),
    }
}

/// The penalty of pairs of (baseline, value), none without a pair.
#[must_use]
pub fn penalty(clock: Clock, pairs: &[(f64, f64)], noise: Option<f64>) -> Option<Penalty> {
    if pairs.is_empty() {
        return None;
    }
    let percents: Vec<f64> = pairs.iter().map(|(b, v)| (v / b - 1.0) * 100.0).collect();
    let percent = middle(clock, &percents);
    let interval = match clock {
        Clock::Instructions => student(&percents),
        Clock::Vm | Clock::Machine => bootstrap(&percents),
    };
    let standing = match (interval, noise) {
        (Some(i), Some(noise)) => {
            let excludes = i.low > 0.0 || i.high < 0.0;
            if excludes && percent.abs() > noise {
                Standing::Significant
            } else {
                Standing::Noise
            }
        }
        _ => Standing::Untested,
    };
    Some(Penalty {
        percent,
        pairs: pairs.len(),
        interval,
        standing,
    })
}

/// How far figures of one and the same thing lie apart, in percent of the least; none of
/// one figure.
#[must_use]
pub fn spread(values: &[f64]) -> Option<f64> {
    let least = values.iter().copied().reduce(f64::min)?;
    let most = values.iter().copied().reduce(f64::max)?;
    (values.len() > 1).then_some((most / least - 1.0) * 100.0)
}

/// How far pairs of one and the same thing lie apart, in percent; none without a pair. Of
/// instructions the farthest pair counts; of times, among which single rounds stray far,
/// the farther end of the interval in which their median lies.
#[must_use]
pub fn apart(clock: Clock, pairs: &[(f64, f64)]) -> Option<f64> {
    match penalty(clock, pairs, None).and_then(|p| p.interval) {
        Some(i) if clock != Clock::Instructions => Some(i.low.abs().max(i.high.abs())),
        _ => pairs
            .iter()
            .filter_map(|(a, b)| spread(&[*a, *b]))
            .reduce(f64::max),
    }
}

/// How far figures of one and the same thing lie apart, in percent; none of one figure. Of
/// times each round is a pair with the one after it.
#[must_use]
pub fn noise(clock: Clock, values: &[f64]) -> Option<f64> {
    let rounds: Vec<(f64, f64)> = values.windows(2).map(|w| (w[0], w[1])).collect();
    match clock {
        Clock::Instructions => spread(values),
        Clock::Vm | Clock::Machine => apart(clock, &rounds),
    }
}

/// Student's t interval of a mean.
fn student(values: &[f64]) -> Option<Interval> {
    let deviation = deviation(values)?;
    #[allow(clippy::cast_precision_loss, reason = "a handful of boots")]
    let n = values.len() as f64;
    let t = StudentsT::new(0.0, 1.0, n - 1.0).ok()?.inverse_cdf(0.975);
    let half = t * deviation / n.sqrt();
    let mean = mean(values);
    Some(Interval {
        low: mean - half,
        high: mean + half,
        source: Source::StudentT,
    })
}

/// The percentile bootstrap of a median.
fn bootstrap(values: &[f64]) -> Option<Interval> {
    // of fewer the interval is their range, which is less than it says
    if values.len() < 6 {
        return None;
    }
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut drawn = vec![0.0; values.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            drawn.fill_with(|| values[random.usize(..values.len())]);
            drawn.sort_unstable_by(f64::total_cmp);
            f64::midpoint(drawn[(drawn.len() - 1) / 2], drawn[drawn.len() / 2])
        })
        .collect();
    medians.sort_unstable_by(f64::total_cmp);
    Some(Interval {
        low: medians[RESAMPLES / 40],
        high: medians[RESAMPLES - 1 - RESAMPLES / 40],
        source: Source::Bootstrap,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    fn pairs(percents: &[f64]) -> Vec<(f64, f64)> {
        percents.iter().map(|p| (100.0, 100.0 + p)).collect()
    }

    /// By hand: penalties 10, 12, 14; mean 12, sd 2, t(0.975, 2) = 4.30265, so
    /// 12 ± 4.30265 × 2 ÷ √3 = 12 ± 4.96828.
    #[test]
    fn students_interval_is_the_textbooks() {
        let p = penalty(Clock::Instructions, &pairs(&[10.0, 12.0, 14.0]), Some(1.0)).unwrap();
        let i = p.interval.unwrap();
        assert!(near(p.percent, 12.0) && near(i.low, 7.031_72) && near(i.high, 16.968_28));
        assert_eq!(
            (p.standing, i.source),
            (Standing::Significant, Source::StudentT)
        );
        assert!(near(deviation(&[10.0, 12.0, 14.0]).unwrap(), 2.0));
    }

    #[test]
    fn a_bootstrap_stays_within_the_figures_and_is_the_same_twice() {
        let figures = pairs(&[5.0, 6.0, 7.0, 7.0, 8.0, 90.0]);
        let p = penalty(Clock::Vm, &figures, Some(1.0)).unwrap();
        let i = p.interval.unwrap();
        assert!(near(p.percent, 7.0), "the median, not the mean");
        assert!(i.low >= 5.0 && i.high <= 90.0 && i.low < i.high);
        assert_eq!(i.source, Source::Bootstrap);
        assert_eq!(penalty(Clock::Vm, &figures, Some(1.0)).unwrap(), p);
    }

    #[test]
    fn one_pair_has_no_interval_and_is_never_significant() {
        for clock in [Clock::Instructions, Clock::Vm] {
            let p = penalty(clock, &pairs(&[30.0]), Some(0.1)).unwrap();
            assert_eq!((p.interval, p.standing), (None, Standing::Untested));
        }
        assert_eq!(penalty(Clock::Vm, &[], None), None);
    }

    #[test]
    fn only_what_excludes_nothing_and_exceeds_the_noise_is_significant() {
        let standing = |p: &[f64], noise| {
            penalty(Clock::Instructions, &pairs(p), noise)
                .unwrap()
                .standing
        };
        assert_eq!(standing(&[2.0, 2.1, 2.2], Some(0.5)), Standing::Significant);
        assert_eq!(standing(&[-2.0, -2.1], Some(0.5)), Standing::Significant);
        assert_eq!(standing(&[2.0, 2.1, 2.2], Some(3.0)), Standing::Noise);
        assert_eq!(standing(&[-1.0, 5.0, 2.0], Some(0.5)), Standing::Noise);
        assert_eq!(standing(&[2.0, 2.1], None), Standing::Untested);
        assert_eq!(standing(&[0.0, 0.0], Some(0.0)), Standing::Noise);
    }

    #[test]
    fn a_round_that_strays_does_not_make_the_noise_of_times() {
        let mut times = vec![
            100.0, 101.0, 100.0, 101.0, 100.0, 101.0, 100.0, 101.0, 100.0,
        ];
        let quiet = noise(Clock::Machine, &times).unwrap();
        assert!((0.5..1.5).contains(&quiet), "{quiet}");
        times.push(190.0);
        let strayed = noise(Clock::Machine, &times).unwrap();
        assert!((0.5..1.5).contains(&strayed), "{strayed}");
        assert!(near(noise(Clock::Instructions, &times).unwrap(), 90.0));
        // of three rounds no interval is known: what was seen counts
        assert!(near(
            noise(Clock::Vm, &[100.0, 101.0, 110.0]).unwrap(),
            8.910_89
        ));
        assert_eq!(noise(Clock::Vm, &[100.0]), None);
        assert_eq!(apart(Clock::Vm, &[]), None);
    }

    #[test]
    fn spread_is_the_largest_relative_difference() {
        assert!(near(spread(&[100.0, 104.0, 98.0]).unwrap(), 6.122_45));
        assert_eq!(spread(&[100.0]), None);
        assert_eq!(spread(&[]), None);
    }
}
