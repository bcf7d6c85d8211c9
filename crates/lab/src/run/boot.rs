//! One boot: the machine, and what it told.

use std::time::Duration;

use anyhow::Result;

use super::payload::Payload;
use super::plan::{Plan, Wanted};
use super::transcript::{self, Transcript};
use crate::artefact::Lab;
use crate::results::{Boot, Clock};
use crate::vm::{Capture, Machine};

/// Virtual machines slow each other down; the slowest boot alone takes a fifth of this.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// Boots and measures. A machine that fails is a boot with the reason.
///
/// # Errors
/// When the machine cannot be put together.
pub(super) fn boot(
    lab: &Lab,
    plan: &Plan,
    wanted: &Wanted<'_>,
    payload: &Payload,
    recipe: String,
) -> Result<Boot> {
    let disturbance = wanted.disturbance.to_string();
    let mut command = vec!["sh", "/payload/guest.sh", &disturbance];
    command.extend(wanted.workloads.iter().map(|w| w.name.as_str()));
    let mut output = Capture::default();
    let outcome = Machine::new(plan.kernel.clone())
        .image(plan.image)
        .scratch(true)
        .icount(plan.clock == Clock::Instructions)
        .smp(plan.processors)
        .kaslr(wanted.disturbance > 0)
        .lsm(&wanted.system.lsm)
        .append(plan.append(wanted))
        .rtc(wanted.rtc())
        .payload(payload.dir())
        .timeout(TIMEOUT)
        .run(lab, &command, &mut output)?;
    let mut told = if outcome.success() {
        transcript::read(&output.out_text(), &wanted.system.lsm)
    } else {
        Transcript {
            failed: format!("{} {}", outcome.explain(), output.err_text()),
            ..Transcript::default()
        }
    };
    if !told.failed.is_empty() {
        told.results.clear();
    }
    Ok(Boot {
        system: wanted.system.name.clone(),
        disturbance: wanted.disturbance,
        recipe,
        seconds: outcome.total.as_secs_f64(),
        proof: told.proof,
        failed: told.failed,
        absent: told.absent,
        results: told.results,
    })
}
