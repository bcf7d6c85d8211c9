//! `list`: what there is to measure.

use anyhow::Result;
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use tidegate_lab::define::{System, Workload};

/// Prints the systems and the workloads.
pub fn list() -> Result<()> {
    let mut systems = table(&["system", "", "what it is"]);
    for s in System::all()? {
        systems.add_row([s.name, core(s.core), format!("{}. {}", s.title, s.about)]);
    }
    let mut workloads = table(&["workload", "", "what it does"]);
    for w in Workload::all()? {
        workloads.add_row([w.name, core(w.core), format!("{}. {}", w.title, w.about)]);
    }
    println!("{}\n\n{}", systems.trim_fmt(), workloads.trim_fmt());
    Ok(())
}

fn core(is: bool) -> String {
    if is { "core".into() } else { String::new() }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header);
    if table.width().is_none() {
        table.set_width(100);
    }
    table
}
