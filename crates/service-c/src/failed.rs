//! What a call of C's comes to.

use tidegate_boundary::Fault;
use tidegate_boundary::errno::{
    EACCES, EAGAIN, EBADMSG, ECONNRESET, EINVAL, EIO, EMSGSIZE, EPROTO, EPROTOTYPE,
};
use tidegate_service::Error;

tidegate_boundary::failures!(Failed);

impl From<Error> for Failed {
    fn from(e: Error) -> Failed {
        let errno = match &e {
            Error::Refused => EACCES,
            Error::Ended => EPROTO,
            Error::Malformed(_) | Error::OtherReply { .. } => EBADMSG,
            Error::TooLong(_) => EMSGSIZE,
            Error::Truncated => ECONNRESET,
            Error::Busy => EAGAIN,
            Error::Socket => EPROTOTYPE,
            // what the library checks itself has no number
            Error::Io(e) => e.raw_os_error().unwrap_or(EINVAL),
            _ => EIO,
        };
        Failed(Fault::made(errno, e))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn what_is_refused_and_what_has_ended_are_told_apart() {
        let errno = |e: Error| {
            assert_eq!(done(|| Err(e.into())), -1);
            io::Error::last_os_error().raw_os_error()
        };
        assert_eq!(errno(Error::Refused), Some(EACCES));
        assert_eq!(errno(Error::Ended), Some(EPROTO));
        assert_eq!(errno(Error::TooLong(9)), Some(EMSGSIZE));
        assert_eq!(errno(io::Error::from_raw_os_error(2).into()), Some(2));
    }
}
