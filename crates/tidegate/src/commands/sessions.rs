//! `sessions`: the sessions that capability files limit.

use tidegate_audit::printable;

use super::print_json;
use crate::client;
use crate::exit::{Code, Failure, Outcome};
use crate::output::say;
use crate::protocol::{Answer, Ask};

pub fn run(json: bool) -> Outcome {
    let Answer::Sessions(sessions) = client::ask(&Ask::Sessions, None)? else {
        let text = "the daemon gave another answer";
        return Err(Failure::new(Code::Internal, text));
    };
    if !json {
        say!(
            "{:>7} {:>6} {:>6} {:<20} SUBJECTS",
            "SESSION",
            "UID",
            "TASKS",
            "SINCE"
        );
    }
    for session in sessions {
        if json {
            print_json(&session)?;
            continue;
        }
        say!(
            "{:>7} {:>6} {:>6} {:<20} {}",
            session.number,
            session.uid,
            session.tasks,
            session.since,
            printable(&session.subjects.join(", "))
        );
        for revoked in &session.revoked {
            say!("{:>7} taken back: {}", "", printable(revoked));
        }
    }
    Ok(())
}
