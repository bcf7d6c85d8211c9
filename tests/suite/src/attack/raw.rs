//! A system call by its number, in either ABI.

use crate::attack::calls::Abi;
use crate::sys;

/// Makes a call; what it returns, or an error number below zero. The kernel takes the lower half of a register for the number
/// of x86-64. The other half has a bit of each argument, so it differs from call to call.
pub fn call(abi: Abi, number: i32, args: &[i64; 6]) -> i64 {
    let others = args.iter().fold(0, |bits, arg| bits << 1 | arg & 1);
    match abi {
        Abi::X64 => match sys::by_number(others << 58 | i64::from(number), args) {
            Ok(got) => got,
            Err(e) => -i64::from(e as i32),
        },
        Abi::I386 => sys::i386(number, &args.map(|arg| arg as u32)).into(),
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::Signal;
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, fork};

    use super::*;

    #[test]
    fn a_call_of_x86_64_returns_a_number_or_an_error() {
        let me = i64::from(std::process::id());
        assert_eq!(call(Abi::X64, libc::SYS_getpid as i32, &[0; 6]), me);
        let bad = call(Abi::X64, libc::SYS_close as i32, &[-1, 0, 0, 0, 0, 0]);
        assert_eq!(bad, -i64::from(libc::EBADF));
    }

    #[test]
    fn a_call_of_i386_comes_to_the_same_process() {
        // SAFETY: the child makes system calls only, and ends.
        let child = match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                let same = call(Abi::I386, 20, &[0; 6]) == i64::from(std::process::id());
                // SAFETY: ends the child.
                unsafe { libc::_exit(i32::from(!same)) }
            }
            ForkResult::Parent { child } => child,
        };
        match waitpid(child, None).unwrap() {
            // a kernel that has no i386, or does not let it in, raises a signal
            WaitStatus::Exited(_, 0) | WaitStatus::Signaled(_, Signal::SIGSEGV, _) => {}
            other => panic!("{other:?}"),
        }
    }
}
