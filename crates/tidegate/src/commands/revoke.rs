//! `revoke`: takes capabilities back from the sessions that run.

use serde::Serialize;
use tidegate_audit::printable;
use tidegate_protocol::{Lost, Withdraw};

use super::print_json;
use crate::cli::Revoke;
use crate::client;
use crate::exit::{Code, Failure, Outcome};
use crate::output::say;
use crate::protocol::{Answer, Ask};

/// What came of it.
#[derive(Debug, Serialize)]
struct Told<'a> {
    sessions: usize,
    killed: &'a [Lost],
    whole: usize,
}

pub fn run(args: &Revoke, json: bool) -> Outcome {
    let what =
        what(args).ok_or_else(|| Failure::new(Code::Usage, "nothing is named to take back"))?;
    let answer = client::ask(&Ask::Withdraw { what }, None)?;
    let Answer::Withdrawn {
        sessions,
        whole,
        killed,
    } = answer
    else {
        let text = "the daemon gave another answer";
        return Err(Failure::new(Code::Internal, text));
    };
    if json {
        return print_json(&Told {
            sessions,
            killed: &killed,
            whole,
        });
    }
    say!(
        "taken back from {sessions} {}",
        if sessions == 1 { "session" } else { "sessions" }
    );
    if whole > 0 {
        say!(
            "{whole} of them lost all that they had: the table of revocations has no more room for their users"
        );
    }
    for lost in killed {
        say!(
            "{}({}) was killed: {}",
            printable(&lost.comm),
            lost.pid,
            printable(&lost.why)
        );
    }
    Ok(())
}

fn what(args: &Revoke) -> Option<Withdraw> {
    let session = args.caps_session.map(|number| Withdraw::Session { number });
    let subject = args.subject.clone().map(|of| Withdraw::Subject {
        file: of.file,
        name: of.name,
    });
    let capability = args.capability.clone();
    let capability = capability.map(|(file, line)| Withdraw::Capability { file, line });
    let object = args.object.clone().map(|of| Withdraw::Object {
        class: of.class,
        name: of.name,
    });
    session.or(subject).or(capability).or(object)
}
