//! The clients: what a program would do with any library for HTTP.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// An answer whose body is still to be read.
struct Answer {
    status: String,
    label: Option<String>,
    body: BufReader<UnixStream>,
}

impl Answer {
    fn is_good(&self) -> bool {
        self.status.starts_with("200 ")
    }

    /// The rest; told to standard error if it says what is wrong.
    fn text(mut self) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        self.body.read_to_end(&mut text)?;
        if !self.is_good() {
            eprint!("{}: {}", self.status, String::from_utf8_lossy(&text));
        }
        Ok(text)
    }
}

fn ask(socket: &Path, method: &str, path: &str, body: &[u8]) -> Result<Answer> {
    let failed = || format!("ask {}", socket.display());
    let mut stream = UnixStream::connect(socket).with_context(failed)?;
    let head = format!(
        "{method} /doc/{path} HTTP/1.1\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat())?;
    let mut body = BufReader::new(stream);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if body.read_until(b'\n', &mut head)? == 0 || head.len() > 8 << 10 {
            bail!("the store gave no answer");
        }
    }
    let mut headers = [httparse::EMPTY_HEADER; 16];
    let mut response = httparse::Response::new(&mut headers);
    response.parse(&head)?;
    let code = response.code.unwrap_or(0);
    let label = response.headers.iter().find(|h| h.name == "X-Label");
    Ok(Answer {
        status: format!("{code} {}", response.reason.unwrap_or("")),
        label: label.map(|h| String::from_utf8_lossy(h.value).into_owned()),
        body,
    })
}

/// Asks, and prints what comes; whether it was allowed.
pub fn print(socket: &Path, method: &str, name: &str) -> Result<bool> {
    let answer = ask(socket, method, name, b"")?;
    let good = answer.is_good();
    let text = answer.text()?;
    if good {
        io::stdout().write_all(&text)?;
    }
    Ok(good)
}

/// Writes standard input; whether it was allowed.
pub fn put(socket: &Path, name: &str) -> Result<bool> {
    let mut body = Vec::new();
    io::stdin().read_to_end(&mut body)?;
    let answer = ask(socket, "PUT", name, &body)?;
    let good = answer.is_good();
    answer.text()?;
    Ok(good)
}

/// Prints a document's context; whether it may be read.
pub fn label(socket: &Path, name: &str) -> Result<bool> {
    let answer = ask(socket, "GET", name, b"")?;
    let label = answer.label.clone();
    let good = answer.is_good();
    answer.text()?;
    if good {
        println!("{}", label.unwrap_or_default());
    }
    Ok(good)
}

/// Prints a document as it changes, until the store ends that.
pub fn follow(socket: &Path, name: &str) -> Result<bool> {
    let mut answer = ask(socket, "GET", &format!("{name}/follow"), b"")?;
    if !answer.is_good() {
        answer.text()?;
        return Ok(false);
    }
    loop {
        let mut line = String::new();
        if answer.body.read_line(&mut line)? == 0 {
            eprintln!("the store has ended the stream");
            return Ok(false);
        }
        let len = usize::from_str_radix(line.trim(), 16).context("a part without its length")?;
        let mut part = vec![0; len + 2];
        answer.body.read_exact(&mut part)?;
        io::stdout().write_all(&part[..len])?;
        io::stdout().flush()?;
    }
}
