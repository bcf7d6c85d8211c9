//! `reload`: puts another policy in force, in one step.

use std::os::fd::AsFd;
use std::sync::Arc;

use tidegate_audit::printable;
use tidegate_bundle::Policy;
use tidegated::Policies;

use super::have_done;
use super::status::in_force;
use crate::cli::Reload;
use crate::exit::{Code, Failure, Outcome};
use crate::output::tell;
use crate::profiles::whole;
use crate::protocol::{Ask, Status};

pub fn run(args: &Reload, json: bool) -> Outcome {
    let (policy, permissive) = wanted(args)?;
    let bundle = tidegate_protocol::seal("bundle", &policy.to_bundle())
        .map_err(|e| Failure::io("hand the bundle over", e))?;
    have_done(&Ask::Reload { permissive }, Some(bundle.as_fd()), json)?;
    whole(&policy.profiles)
}

/// Returns the policy that the command line names, or the one in force, read again by the options that named it; and whether
/// refusals are only recorded.
fn wanted(args: &Reload) -> Outcome<(Policy, bool)> {
    if args.source.is_given() {
        let mut policy = args.source.load()?;
        policy.options = args.source.options(args.permissive)?;
        return Ok((policy, args.permissive));
    }
    let Status {
        options,
        seqno,
        levels,
        ..
    } = in_force()?;
    let kept = Reload::of_options(&options).map_err(|e| {
        let message = format!("the options of the policy in force cannot be read: {e}");
        Failure::new(Code::Usage, message)
    })?;
    if !options.is_empty() {
        tell!("options as before: {}", printable(&options.join(" ")));
    }
    let mut policy = match kept.source.load() {
        Err(wrong) if args.permissive => as_it_is(seqno, wrong)?,
        Ok(policy) if args.permissive && policy.levels != levels => {
            let message = "the map has other levels than the policy in force";
            as_it_is(seqno, Failure::new(Code::Policy, message))?
        }
        loaded => loaded?,
    };
    policy.options = options;
    Ok((policy, kept.permissive || args.permissive))
}

/// Returns the policy in force itself: the way back to a mode that refuses nothing does not depend on a correct map.
///
/// # Errors
/// The one with which the files cannot be used, if the policy's bundle is gone.
fn as_it_is(seqno: u32, wrong: Failure) -> Outcome<Policy> {
    let Some(policy) = Policies::new().get(seqno) else {
        return Err(wrong);
    };
    wrong.tell();
    tell!("warning: so the policy in force is kept as it is, and only records");
    Ok(Arc::unwrap_or_clone(policy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_kept_and_read_again() {
        let again = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let kept = Reload::of_options(&words).unwrap();
            assert_eq!(kept.source.options(kept.permissive).unwrap(), words);
            kept
        };
        assert!(!again(&[]).source.is_given());
        let kept = again(&["--permissive"]);
        assert!(kept.permissive && !kept.source.is_given());
        again(&["--preset=server", "--profile=/etc/apparmor.d"]);
        again(&["--bundle=/root/a b.bundle"]);
        again(&[
            "--policy=/etc/x.plm",
            "--profile=/etc/a",
            "--profile=/etc/b",
            "--profile-base=/etc/a",
            "--apparmor-parser=/opt/apparmor_parser",
            "--strict",
            "--te=/a.cil",
            "--te=/b.cil",
            "--file-contexts=/c",
            "--te-boolean=x=off",
            "--te-boolean=y=on",
            "--te-lookups",
            "--secilc=/opt/secilc",
            "--permissive",
        ]);
        assert!(Reload::of_options(&["--other".into()]).is_err());
    }
}
