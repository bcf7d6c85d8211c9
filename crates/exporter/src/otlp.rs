//! Pushes to an OpenTelemetry collector, by OTLP over HTTP.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter, MeterProvider};
use opentelemetry_otlp::{MetricExporter, Protocol, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider, Temporality};

use crate::family::{FAMILIES, Family, Kind};
use crate::snapshot::Snapshot;

/// How long a push may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The reader's own interval; it is told when to push, after the daemon was asked.
const NEVER: Duration = Duration::from_secs(1 << 32);

/// Pushes until it is killed. A push that fails is told, and the next one tried.
pub fn push(url: &str, interval: Duration) -> Result<()> {
    let latest = Arc::new(RwLock::new(Snapshot::take()));
    let provider = provider(url, &latest)?;
    loop {
        let begun = Instant::now();
        *latest.write().unwrap_or_else(|e| e.into_inner()) = Snapshot::take();
        // what comes of it, `Told` has told
        let _ = provider.force_flush();
        thread::sleep(interval.saturating_sub(begun.elapsed()));
    }
}

/// Tells on standard error when pushes begin to fail, and when they go well again; the
/// SDK keeps why to itself.
struct Told {
    exporter: MetricExporter,
    url: String,
    failing: AtomicBool,
}

impl PushMetricExporter for Told {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let result = self.exporter.export(metrics).await;
        let failing = self.failing.swap(result.is_err(), Ordering::Relaxed);
        match &result {
            Err(e) if !failing => tell!("cannot push to {}: {e}", self.url),
            Ok(()) if failing => tell!("pushing to {} again", self.url),
            _ => {}
        }
        result
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}

fn provider(url: &str, latest: &Arc<RwLock<Snapshot>>) -> Result<SdkMeterProvider> {
    if !url.starts_with("http://") {
        bail!("--otlp takes http://HOST:PORT/v1/metrics: a collector on this machine adds TLS");
    }
    let exporter = MetricExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(url)
        .with_timeout(PATIENCE)
        .build()
        .with_context(|| format!("cannot push to {url}"))?;
    let exporter = Told {
        exporter,
        url: url.into(),
        failing: AtomicBool::new(false),
    };
    let reader = PeriodicReader::builder(exporter)
        .with_interval(NEVER)
        .build();
    let resource = Resource::builder().with_service_name("tidegate").build();
    let provider = SdkMeterProvider::builder()
        .with_reader(reader)
        .with_resource(resource)
        .build();
    let meter = provider.meter("tidegate-exporter");
    for family in &FAMILIES {
        observe(&meter, family, Arc::clone(latest));
    }
    Ok(provider)
}

/// Has a family's numbers taken out of the latest answer at each push. A collector adds
/// the unit and `_total` to the name.
fn observe(meter: &Meter, family: &'static Family, latest: Arc<RwLock<Snapshot>>) {
    let read = move |observer: &dyn AsyncInstrument<u64>| {
        let latest = latest.read().unwrap_or_else(|e| e.into_inner());
        for sample in (family.read)(&latest) {
            let labels: Vec<_> = sample
                .labels
                .into_iter()
                .map(|(name, value)| KeyValue::new(name, value))
                .collect();
            observer.observe(sample.value, &labels);
        }
    };
    let unit = match family.unit {
        Some("seconds") => "s",
        Some("bytes") => "By",
        _ => "",
    };
    match family.kind {
        Kind::Counter => {
            let builder = meter.u64_observable_counter(family.name);
            let builder = builder.with_description(family.help).with_unit(unit);
            builder.with_callback(read).build();
        }
        Kind::Gauge => {
            let builder = meter.u64_observable_gauge(family.name);
            let builder = builder.with_description(family.help).with_unit(unit);
            builder.with_callback(read).build();
        }
    }
}
