//! What an operation is.

use std::any::Any;
use std::io;

use crate::te_ops::{
    bpf, capability, exec, file, inode, ipc, key, mount, process, real, socket, system,
};

/// What was made for an operation: what is to be kept until it is over, and a number that it is told.
pub type Made = (Box<dyn Any>, i64);

type Make = Box<dyn Fn() -> io::Result<Made>>;
type Run = Box<dyn Fn(i64) -> io::Result<()>>;

/// An operation.
pub struct Op {
    /// Its name.
    pub name: String,
    /// Makes its objects, by the process that may do everything.
    pub make: Make,
    /// Plays it, told the number that came of `make`.
    pub run: Run,
    /// What it makes, whose label is then looked at.
    pub new: Option<&'static str>,
    /// Whether only SELinux itself has what it asks for: /proc/PID/attr, labels set by hand.
    pub own: bool,
}

/// The list of operations, as it grows.
#[derive(Default)]
pub struct Ops(pub Vec<Op>);

impl Ops {
    /// One that needs nothing.
    pub fn plain(
        &mut self,
        name: impl Into<String>,
        run: impl Fn() -> io::Result<()> + 'static,
    ) -> &mut Op {
        self.with(name, || Ok(()), move |()| run())
    }

    /// One that needs something made.
    pub fn with<T: 'static>(
        &mut self,
        name: impl Into<String>,
        make: impl Fn() -> io::Result<T> + 'static,
        run: impl Fn(()) -> io::Result<()> + 'static,
    ) -> &mut Op {
        self.told(name, move || Ok((make()?, 0)), move |_| run(()))
    }

    /// One that is told a number, such as a process.
    pub fn told<T: 'static>(
        &mut self,
        name: impl Into<String>,
        make: impl Fn() -> io::Result<(T, i64)> + 'static,
        run: impl Fn(i64) -> io::Result<()> + 'static,
    ) -> &mut Op {
        self.0.push(Op {
            name: name.into(),
            make: Box::new(move || {
                make().map(|(kept, number)| (Box::new(kept) as Box<dyn Any>, number))
            }),
            run: Box::new(run),
            new: None,
            own: false,
        });
        self.0.last_mut().expect("just put there")
    }
}

impl Op {
    /// Has the label of what it makes looked at.
    pub fn labels(&mut self, name: &'static str) -> &mut Self {
        self.new = Some(name);
        self
    }

    /// Only SELinux has it.
    pub fn own(&mut self) {
        self.own = true;
    }
}

/// Each operation there is.
pub fn all() -> Vec<Op> {
    let mut ops = Ops::default();
    // what is asked of whoever plays anything
    ops.plain("nothing", || Ok(()));
    for add in [
        file::add,
        inode::add,
        exec::add,
        process::add,
        capability::add,
        socket::add,
        ipc::add,
        mount::add,
        system::add,
        key::add,
        bpf::add,
    ] {
        add(&mut ops);
    }
    ops.0
}

/// Those that are about what a Debian has.
pub fn of_debian() -> Vec<Op> {
    let mut ops = Ops::default();
    real::add(&mut ops);
    ops.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_can_be_told() {
        let mut names: Vec<String> = all()
            .into_iter()
            .chain(of_debian())
            .map(|op| op.name)
            .collect();
        assert!(!names.iter().any(|name| name.contains(['=', '\n', '\t'])));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn what_is_asked_was_recorded_of_every_operation() {
        let names: Vec<String> = all().into_iter().map(|op| op.name).collect();
        for list in [
            include_str!("../../../te/asked/6.12"),
            include_str!("../../../te/asked/7.2"),
        ] {
            let listed: Vec<&str> = list
                .lines()
                .filter(|line| !line.starts_with('\t'))
                .collect();
            assert_eq!(listed, names);
        }
    }
}
