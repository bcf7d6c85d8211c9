//! Plays the same operations in one domain of a SELinux policy after the other, and prints what became of each: on
//! a kernel whose SELinux enforces the policy and on one where Tidegate does, to compare.
//!
//! ```text
//! te-ops policy DIR ASKED…              writes the policy's source and the domains, for what operations ask
//! te-ops list                           the operations' names; a word before each says who has it
//! te-ops play selinux POLICY CONTEXTS ASKED   root, in a machine of its own
//! te-ops play tidegate CONTEXTS ASKED         the same, the policy enforced by Tidegate
//! te-ops debian selinux|tidegate CONTEXTS   the same of a Debian's own files, under Debian's policy
//! te-ops record POLICY                  what SELinux asks at each operation
//! ```

mod bpf;
mod capability;
mod exec;
mod file;
mod inode;
mod ipc;
mod key;
mod mount;
mod op;
mod peers;
mod play;
mod policy;
mod process;
mod real;
mod record;
mod socket;
mod sys;
mod system;
mod world;

use std::process::ExitCode;

/// Whether it is a copy that is executed by its path: others are called `te-ops`, this one is the
/// reader of a script.
pub fn is_copy(path: &str) -> bool {
    path == exec::INTERPRETER
}

/// Plays what the words say.
pub fn main(words: &[&str]) -> ExitCode {
    let done = match *words {
        ["policy", dir, ref asked @ ..] => policy::write(dir, asked),
        ["list"] => {
            for op in op::all() {
                println!("{} {}", if op.own { "selinux" } else { "both" }, op.name);
            }
            Ok(())
        }
        ["play", "selinux", policy, contexts, asked] => {
            world::load(policy).and_then(|()| play::play(play::System::Selinux, contexts, asked))
        }
        ["play", "tidegate", contexts, asked] => {
            play::play(play::System::Tidegate, contexts, asked)
        }
        ["debian", "selinux", contexts] => play::debian(play::System::Selinux, contexts),
        ["debian", "tidegate", contexts] => play::debian(play::System::Tidegate, contexts),
        ["record", policy] => world::load(policy).and_then(|()| record::record()),
        ["serve"] => play::serve(false),
        ["serve", "waiting"] => play::serve(true),
        ["make"] => play::make(),
        ["script", ..] => Ok(()),
        // in place of the program that called it: its end is the error's number
        ["act", ref words @ ..] => sys::leave(exec::act(words)),
        _ => {
            eprintln!(
                "usage: te-ops policy DIR ASKED… | list | play selinux|tidegate … | record POLICY"
            );
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("te-ops: {e}");
            ExitCode::FAILURE
        }
    }
}
