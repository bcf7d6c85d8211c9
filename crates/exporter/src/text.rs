//! The metrics as text: OpenMetrics, and the older form that everything reads.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use crate::family::{FAMILIES, Kind};
use crate::snapshot::Snapshot;

/// A form of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// OpenMetrics 1.0.
    Open,
    /// Prometheus 0.0.4.
    Classic,
}

impl Form {
    /// The form that a client asks for by its `Accept` header.
    pub fn wanted(accept: Option<&str>) -> Form {
        match accept {
            Some(a) if a.contains("application/openmetrics-text") => Form::Open,
            _ => Form::Classic,
        }
    }

    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Form::Open => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Form::Classic => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Writes every metric down.
pub fn expose(snapshot: Snapshot, form: Form) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Exposed(snapshot)));
    let mut out = String::new();
    text::encode(&mut out, &registry).expect("a string takes all that is written");
    match form {
        Form::Open => out,
        Form::Classic => classic(&out),
    }
}

#[derive(Debug)]
struct Exposed(Snapshot);

impl Collector for Exposed {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &FAMILIES {
            let samples = (family.read)(&self.0);
            if samples.is_empty() {
                continue;
            }
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
            };
            let unit = family.unit.map(|u| Unit::Other(u.into()));
            let mut metric =
                encoder.encode_descriptor(family.name, family.help, unit.as_ref(), kind)?;
            for sample in samples {
                if sample.labels.is_empty() {
                    write(family.kind, sample.value, metric)?;
                    break;
                }
                let line = metric.encode_family(&sample.labels)?;
                write(family.kind, sample.value, line)?;
            }
        }
        Ok(())
    }
}

fn write(kind: Kind, value: u64, to: MetricEncoder<'_>) -> fmt::Result {
    match kind {
        Kind::Counter => ConstCounter::new(value).encode(to),
        Kind::Gauge => ConstGauge::new(value as i64).encode(to),
    }
}

/// The older form: a counter is described by its whole name, `_total` with it; there are
/// no units and there is no mark at the end.
fn classic(open: &str) -> String {
    let mut out = String::with_capacity(open.len());
    let described = |line: &str| {
        let (_, rest) = line.split_once("# TYPE ")?;
        rest.strip_suffix(" counter").map(str::to_owned)
    };
    let counters: Vec<String> = open.lines().filter_map(described).collect();
    for line in open.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("UNIT" | "EOF"), ..) => continue,
            (Some("#"), Some(word), Some(name), Some(rest))
                if counters.iter().any(|c| c == name) =>
            {
                out += &format!("# {word} {name}_total {rest}");
            }
            _ => out += line,
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::tests::snapshot;

    #[test]
    fn openmetrics_has_types_units_and_an_end() {
        let text = expose(snapshot(), Form::Open);
        for line in [
            "# TYPE tidegate_records counter",
            "tidegate_records_total{kind=\"denied\",class=\"file\",op=\"open-write\"} 7",
            "# UNIT tidegate_daemon_start_time_seconds seconds",
            "tidegate_daemon_start_time_seconds 1790000000",
            "tidegate_policy_info{policy=\"my \\\"own\\\"\"} 1",
            "tidegate_processes{level=\"untrusted\"} 4",
            "tidegate_queries_total{object_manager=\"file\",by=\"cache\"} 6",
            "tidegate_up 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn the_older_form_describes_counters_by_their_whole_name() {
        let text = expose(snapshot(), Form::Classic);
        for line in [
            "# TYPE tidegate_records_total counter",
            "# HELP tidegate_records_total Records that reached the daemon, by their sort.",
            "# TYPE tidegate_up gauge",
            "tidegate_records_lost_total{at=\"kernel\"} 3",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
        assert!(!text.contains("# EOF") && !text.contains("# UNIT"));
    }

    #[test]
    fn the_form_is_the_one_asked_for() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3";
        assert_eq!(Form::wanted(Some(prometheus)), Form::Open);
        assert_eq!(Form::wanted(Some("*/*")), Form::Classic);
        assert_eq!(Form::wanted(None), Form::Classic);
    }
}
