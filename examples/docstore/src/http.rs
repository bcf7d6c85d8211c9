//! As much of HTTP/1.1 as the store needs: a request a connection, read by httparse within bounds.

use std::io::{self, Read, Write};

/// Bytes of a request's head.
const HEAD: usize = 8 << 10;

/// Bytes of a document.
pub const BODY: usize = 1 << 20;

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub body: Vec<u8>,
}

/// Reads a request; `None`: what came is none, or is too long.
pub fn read(stream: &mut impl Read) -> io::Result<Option<Request>> {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let len = stream.read(&mut part)?;
        if len == 0 {
            return Ok(None);
        }
        bytes.extend_from_slice(&part[..len]);
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&bytes) {
            Ok(httparse::Status::Complete(end)) => {
                let (Some(method), Some(path)) = (request.method, request.path) else {
                    return Ok(None);
                };
                let named = |name: &str| {
                    let mut all = request.headers.iter();
                    all.find(|h| h.name.eq_ignore_ascii_case(name))
                        .map(|h| h.value)
                };
                let length = named("content-length").map_or(Some(0), |value| {
                    std::str::from_utf8(value).ok()?.trim().parse().ok()
                });
                // what is sent in chunks has no length before
                let Some(length) =
                    length.filter(|n| *n <= BODY && named("transfer-encoding").is_none())
                else {
                    return Ok(None);
                };
                let (method, path) = (method.to_owned(), path.to_owned());
                let mut body = bytes.split_off(end);
                body.truncate(length);
                let mut rest = vec![0; length - body.len()];
                stream.read_exact(&mut rest)?;
                body.extend(rest);
                return Ok(Some(Request { method, path, body }));
            }
            Ok(httparse::Status::Partial) if bytes.len() < HEAD => {}
            _ => return Ok(None),
        }
    }
}

/// Writes an answer whole. `label` is the document's context, where one may be told.
pub fn answer(
    stream: &mut impl Write,
    status: &str,
    label: Option<&str>,
    body: &[u8],
) -> io::Result<()> {
    let label = label.map_or_else(String::new, |label| format!("X-Label: {label}\r\n"));
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{label}Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat())
}

/// Begins an answer of parts.
pub fn begin(stream: &mut impl Write) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
}

/// Writes a part.
pub fn part(stream: &mut impl Write, body: &[u8]) -> io::Result<()> {
    // an empty part would be the end
    let mut chunk = format!("{:x}\r\n", body.len() + 1).into_bytes();
    chunk.extend_from_slice(body);
    chunk.extend_from_slice(b"\n\r\n");
    stream.write_all(&chunk)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a byte at a time, as a slow client does.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let len = self.0.len().min(1);
            into[..len].copy_from_slice(&self.0[..len]);
            self.0 = &self.0[len..];
            Ok(len)
        }
    }

    #[test]
    fn a_request_is_read_however_it_comes() {
        let text = b"PUT /doc/plans HTTP/1.1\r\nHost: x\r\ncontent-length: 5\r\n\r\nhello";
        let expected = Request {
            method: "PUT".into(),
            path: "/doc/plans".into(),
            body: b"hello".to_vec(),
        };
        assert_eq!(read(&mut &text[..]).unwrap().as_ref(), Some(&expected));
        assert_eq!(read(&mut Slow(text)).unwrap(), Some(expected));
    }

    #[test]
    fn what_is_none_or_too_long_is_refused() {
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(2 * HEAD));
        for text in [
            "",
            "hello\r\n\r\n",
            "PUT / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
            "PUT / HTTP/1.1\r\ncontent-length: 99999999\r\n\r\n",
            "PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
            &long,
        ] {
            assert_eq!(read(&mut text.as_bytes()).unwrap(), None, "{text}");
        }
        let cut = "PUT / HTTP/1.1\r\ncontent-length: 5\r\n\r\nhe";
        assert!(read(&mut cut.as_bytes()).is_err());
    }
}
