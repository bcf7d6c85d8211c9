//! The report channel, host side; guest/guest.h describes the frames.

use anyhow::{Result, bail};

/// A longer frame than the guest ever sends means that the stream is broken.
const MAX_FRAME: usize = 64 << 10;
const HEADER: usize = 5;

/// One message from the guest's init.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    /// The command is about to start; the payload is the kernel's release.
    Ready(String),
    /// A piece of the command's standard output.
    Stdout(Vec<u8>),
    /// A piece of the command's standard error.
    Stderr(Vec<u8>),
    /// The command has ended.
    Exit {
        /// Its exit status, or 128 and the signal that killed it.
        status: i32,
        /// /proc/sys/kernel/tainted.
        taint: u64,
    },
    /// The guest could not run the command.
    Failed(String),
}

/// Cuts a stream of bytes into frames.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    pending: Vec<u8>,
}

impl Decoder {
    /// Takes the next bytes of the stream.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next complete frame, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Frame>> {
        let Some((header, rest)) = self.pending.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let [kind, a, b, c, d] = *header;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > MAX_FRAME {
            bail!("broken report channel: a frame {kind:#x} of {length} bytes");
        }
        if rest.len() < length {
            return Ok(None);
        }
        let payload: Vec<u8> = self.pending.drain(..HEADER + length).skip(HEADER).collect();
        parse(kind, payload).map(Some)
    }
}

fn parse(kind: u8, payload: Vec<u8>) -> Result<Frame> {
    let text = || String::from_utf8_lossy(&payload).into_owned();
    Ok(match kind {
        b'R' => Frame::Ready(text()),
        b'O' => Frame::Stdout(payload),
        b'E' => Frame::Stderr(payload),
        b'F' => Frame::Failed(text()),
        b'X' => {
            let text = text();
            let numbers = text.split_once(' ').and_then(|(status, taint)| {
                Some(Frame::Exit {
                    status: status.parse().ok()?,
                    taint: taint.parse().ok()?,
                })
            });
            match numbers {
                Some(frame) => frame,
                None => bail!("broken report channel: exit report {text:?}"),
            }
        }
        other => bail!("broken report channel: frame {other:#x}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn frames_survive_any_cut() {
        let mut stream = frame(b'R', b"6.12");
        stream.extend(frame(b'O', b"out"));
        stream.extend(frame(b'E', b""));
        stream.extend(frame(b'X', b"3 512"));
        for size in 1..stream.len() {
            let mut decoder = Decoder::default();
            let mut frames = Vec::new();
            for piece in stream.chunks(size) {
                decoder.feed(piece);
                while let Some(frame) = decoder.next().unwrap() {
                    frames.push(frame);
                }
            }
            let expected = [
                Frame::Ready("6.12".into()),
                Frame::Stdout(b"out".to_vec()),
                Frame::Stderr(Vec::new()),
                Frame::Exit {
                    status: 3,
                    taint: 512,
                },
            ];
            assert_eq!(frames, expected, "pieces of {size}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for wrong in [
            frame(b'?', b""),
            frame(b'X', b"three"),
            vec![b'O', 255, 255, 255, 255],
        ] {
            let mut decoder = Decoder::default();
            decoder.feed(&wrong);
            assert!(decoder.next().is_err());
        }
    }
}
