//! `getsebool` and `setsebool`: the booleans of the SELinux policy in force.

use super::{have_done, print_json};
use crate::cli::{Getsebool, Setsebool};
use crate::client;
use crate::exit::{Code, Failure, Outcome};
use crate::output::say;
use crate::protocol::{Answer, Ask};

pub fn get(args: &Getsebool, json: bool) -> Outcome {
    let Answer::Booleans(all) = client::ask(&Ask::Booleans, None)? else {
        return Err(Failure::new(
            Code::Internal,
            "the daemon told of no booleans",
        ));
    };
    let is_there = |name: &&String| all.iter().any(|(known, _)| known == *name);
    if let Some(missing) = args.names.iter().find(|name| !is_there(name)) {
        let message = format!("the policy in force has no boolean `{missing}`");
        return Err(Failure::new(Code::Usage, message));
    }
    let wanted = |(name, _): &&(String, bool)| args.names.is_empty() || args.names.contains(name);
    let wanted: Vec<&(String, bool)> = all.iter().filter(wanted).collect();
    if json {
        let map: serde_json::Map<_, _> = wanted
            .iter()
            .map(|(name, value)| (name.clone(), (*value).into()))
            .collect();
        return print_json(&map);
    }
    for (name, value) in wanted {
        say!("{name} --> {}", if *value { "on" } else { "off" });
    }
    Ok(())
}

pub fn set(args: &Setsebool, json: bool) -> Outcome {
    let values = args.values.clone();
    have_done(&Ask::SetBooleans { values }, None, json)
}
