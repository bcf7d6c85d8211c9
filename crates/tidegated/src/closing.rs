//! Closes the connections of clients that are turned away. A descriptor that was sent and not taken
//! ends with the connection, and its end may wait for whoever serves the file. So the thread that
//! lets others in does not do it.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::error::{DaemonError, Outcome};

/// Threads that close, at most. One that waits for ever keeps no other from it.
const THREADS: usize = 32;

#[derive(Debug)]
struct Shared {
    /// Whichever thread has nothing to do waits here.
    from: Mutex<Receiver<UnixStream>>,
    /// Connections that are not closed yet.
    open: AtomicUsize,
}

/// The threads that close.
#[derive(Debug)]
pub struct Closing {
    to: Sender<UnixStream>,
    shared: Arc<Shared>,
    threads: AtomicUsize,
}

impl Closing {
    /// Starts the first of them.
    pub fn start() -> Outcome<Closing> {
        let (to, from) = channel();
        let closing = Closing {
            to,
            shared: Arc::new(Shared {
                from: Mutex::new(from),
                open: AtomicUsize::new(0),
            }),
            threads: AtomicUsize::new(0),
        };
        closing
            .one_more()
            .map_err(|e| DaemonError::io("start a thread", e))?;
        Ok(closing)
    }

    /// Has a connection closed.
    pub fn close(&self, stream: UnixStream) {
        let open = self.shared.open.fetch_add(1, Ordering::SeqCst) + 1;
        let threads = self.threads.load(Ordering::SeqCst);
        if open > threads && threads < THREADS {
            // without another thread it is closed later
            let _ = self.one_more();
        }
        // there is a receiver as long as this is here
        let _ = self.to.send(stream);
    }

    fn one_more(&self) -> std::io::Result<()> {
        let shared = Arc::clone(&self.shared);
        thread::Builder::new()
            .name("closing".into())
            .spawn(move || {
                loop {
                    let next = shared.from.lock().unwrap_or_else(|e| e.into_inner()).recv();
                    let Ok(stream) = next else { return };
                    drop(stream);
                    shared.open.fetch_sub(1, Ordering::SeqCst);
                }
            })?;
        self.threads.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn connections_are_closed_and_threads_are_few() {
        let closing = Closing::start().unwrap();
        let ends: Vec<UnixStream> = (0..200)
            .map(|_| {
                let (ours, theirs) = UnixStream::pair().unwrap();
                closing.close(ours);
                theirs
            })
            .collect();
        for mut end in ends {
            assert_eq!(end.read(&mut [0]).unwrap(), 0);
        }
        assert!(closing.threads.load(Ordering::SeqCst) <= THREADS);
    }
}
