//! A client's question, as it comes, and the answer, as it goes.
//!
//! The question is looked at before it is taken (MSG_PEEK), as a descriptor may be in the same message. Only if the question needs
//! one, there is room for it. Any other descriptor never comes into this process's table, where its end could have this process
//! wait for whoever serves the file, even when it is killed (a file of FUSE is flushed).

use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recv, recvmsg};
use tidegate_protocol::{Ask, MAX_ASK};

/// What a client said.
#[derive(Debug)]
pub struct Asked {
    /// Its question, or why it is none.
    pub question: Result<Ask, String>,
    /// What came with it, if it is a question that needs a descriptor.
    pub descriptor: Option<OwnedFd>,
}

/// Hears a question, until then.
pub fn hear(stream: &UnixStream, until: Instant) -> io::Result<Asked> {
    let mut bytes = [0; MAX_ASK];
    let mut len = 0;
    while len < MAX_ASK {
        let came = retried(|| {
            stream.set_read_timeout(Some(left(until)?))?;
            Ok(recv(stream, &mut bytes[len..], RecvFlags::PEEK)?.0)
        })?;
        if came == 0 {
            break;
        }
        let here = len..len + came;
        len += came;
        if bytes[here.clone()].contains(&b'\n') {
            let question = parsed(&bytes[..len]);
            let needs = question.as_ref().is_ok_and(Ask::takes_descriptor);
            let descriptor = match needs {
                true => take(stream, &mut bytes[here])?,
                false => {
                    leave(stream, &mut bytes[here])?;
                    None
                }
            };
            return Ok(Asked {
                question,
                descriptor,
            });
        }
        // half a line: what comes with that belongs to no question
        leave(stream, &mut bytes[here])?;
    }
    Ok(Asked {
        question: parsed(&bytes[..len]),
        descriptor: None,
    })
}

fn parsed(line: &[u8]) -> Result<Ask, String> {
    serde_json::from_slice(line).map_err(|e| format!("not a question: {e}"))
}

/// Takes what was looked at, and lets go of any descriptor that came with it. Without, the client would hear of a connection
/// that was reset and not of one that ends.
fn leave(stream: &UnixStream, line: &mut [u8]) -> io::Result<()> {
    recv(stream, line, RecvFlags::DONTWAIT)?;
    Ok(())
}

/// Takes the line, and the descriptor that came with it: of several, none.
fn take(stream: &UnixStream, line: &mut [u8]) -> io::Result<Option<OwnedFd>> {
    let mut fds = Vec::new();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    recvmsg(
        stream,
        &mut [IoSliceMut::new(line)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
    )?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    Ok(if fds.len() == 1 { fds.pop() } else { None })
}

/// Tells the answer, until then.
pub fn tell(mut stream: &UnixStream, mut answer: &[u8], until: Instant) -> io::Result<()> {
    while !answer.is_empty() {
        let sent = retried(|| {
            stream.set_write_timeout(Some(left(until)?))?;
            stream.write(answer)
        })?;
        if sent == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        answer = &answer[sent..];
    }
    Ok(())
}

/// What is left of the time, which is more than nothing.
fn left(until: Instant) -> io::Result<Duration> {
    match until.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(left),
    }
}

/// Tries again what a signal interrupts.
fn retried<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(e) if e.raw_os_error() == Some(Errno::INTR.raw_os_error()) => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::{IoSlice, Read};
    use std::net::Shutdown;
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::fs::MetadataExt;
    use std::thread;

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

    const STATUS: &str = "{\"ask\":\"status\"}\n";
    const LIMIT: &str = "{\"ask\":\"capabilities\",\"subject\":null,\"now\":true}\n";

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    fn send(stream: &UnixStream, text: &str, fds: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(fds)));
        let text = [IoSlice::new(text.as_bytes())];
        sendmsg(stream, &text, &mut ancillary, SendFlags::empty()).unwrap();
    }

    /// How many descriptors of this process are of this very file.
    fn opened(file: &fs::File) -> usize {
        let of = |m: fs::Metadata| (m.dev(), m.ino());
        let wanted = of(file.metadata().unwrap());
        let all = fs::read_dir("/proc/self/fd").unwrap().flatten();
        all.filter(|fd| fs::metadata(fd.path()).is_ok_and(|m| of(m) == wanted))
            .count()
    }

    #[test]
    fn a_question_that_needs_a_descriptor_is_given_it() {
        let (client, server) = UnixStream::pair().unwrap();
        let file = tempfile::tempfile().unwrap();
        send(&client, LIMIT, &[file.as_fd()]);
        let asked = hear(&server, soon()).unwrap();
        assert!(matches!(asked.question, Ok(Ask::Capabilities { .. })));
        let came = fs::File::from(asked.descriptor.unwrap());
        assert_eq!(
            came.metadata().unwrap().ino(),
            file.metadata().unwrap().ino()
        );
    }

    #[test]
    fn what_comes_with_any_other_question_never_comes_into_the_table() {
        let file = tempfile::tempfile().unwrap();
        for text in [STATUS, "garbage\n", "{\"ask\":\"promote\"}\n"] {
            let (client, server) = UnixStream::pair().unwrap();
            send(&client, text, &[file.as_fd()]);
            let asked = hear(&server, soon()).unwrap();
            assert!(asked.descriptor.is_none(), "{text}");
            assert_eq!(opened(&file), 1, "{text}");
        }
    }

    #[test]
    fn neither_half_a_line_nor_one_of_several_counts() {
        let file = tempfile::tempfile().unwrap();
        let (client, server) = UnixStream::pair().unwrap();
        let (begin, end) = LIMIT.split_at(10);
        send(&client, begin, &[file.as_fd()]);
        let ends = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            send(&client, end, &[]);
            client
        });
        let asked = hear(&server, soon()).unwrap();
        assert!(asked.question.is_ok() && asked.descriptor.is_none());
        drop(ends.join().unwrap());
        let (client, server) = UnixStream::pair().unwrap();
        send(&client, LIMIT, &[file.as_fd(), file.as_fd()]);
        drop(client);
        let asked = hear(&server, soon()).unwrap();
        drop((asked, server));
        assert_eq!(opened(&file), 1);
    }

    #[test]
    fn what_is_no_question_is_told_as_such() {
        for text in ["", "x", "{\"ask\":", "\n", "{\"ask\":\"status\"}\n{}\n"] {
            let (mut client, server) = UnixStream::pair().unwrap();
            client.write_all(text.as_bytes()).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            let asked = hear(&server, soon()).unwrap();
            assert!(asked.question.is_err(), "{text}");
            // the connection ends, and is not reset
            drop(server);
            assert_eq!(client.read(&mut [0]).unwrap(), 0, "{text}");
        }
        let (mut client, server) = UnixStream::pair().unwrap();
        client.write_all(&[b'['; MAX_ASK + 100]).unwrap();
        assert!(hear(&server, soon()).unwrap().question.is_err());
    }

    #[test]
    fn a_byte_now_and_then_does_not_make_the_time_longer() {
        let (mut client, server) = UnixStream::pair().unwrap();
        let drips = thread::spawn(move || {
            while client.write_all(b" ").is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        let begun = Instant::now();
        let heard = hear(&server, begun + Duration::from_millis(300));
        assert!(heard.is_err());
        assert!(begun.elapsed() < Duration::from_secs(3));
        drop(server);
        drips.join().unwrap();
    }

    #[test]
    fn who_does_not_listen_is_given_up_and_who_does_hears_all() {
        let (client, server) = UnixStream::pair().unwrap();
        let long = vec![b'x'; 4 << 20];
        let begun = Instant::now();
        assert!(tell(&server, &long, begun + Duration::from_millis(200)).is_err());
        assert!(begun.elapsed() < Duration::from_secs(3));
        drop((client, server));
        let (mut client, server) = UnixStream::pair().unwrap();
        let hears = thread::spawn(move || {
            let mut heard = Vec::new();
            client.read_to_end(&mut heard).unwrap();
            heard.len()
        });
        tell(&server, &long, soon()).unwrap();
        drop(server);
        assert_eq!(hears.join().unwrap(), long.len());
    }
}
