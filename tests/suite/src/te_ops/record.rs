//! What SELinux asks at each operation: the refusals that it records of a domain that may do nothing and is
//! permissive, once it has forgotten what it decided.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::te_ops::op::all;
use crate::te_ops::play::{Player, System, one};
use crate::te_ops::policy::{ASKED, MAKER};
use crate::te_ops::socket::{netlink, socket};
use crate::te_ops::sys::sys;
use crate::te_ops::world;

/// The kernel's records as they come.
struct Records {
    socket: OwnedFd,
    marks: u32,
}

impl Records {
    fn open() -> io::Result<Self> {
        let socket = socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_AUDIT)?;
        let (room, len) = (32 << 20, 4);
        let to = socket.as_raw_fd();
        sys!(libc::setsockopt(
            to,
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            (&raw const room).cast(),
            len
        ))?;
        // AUDIT_NLGRP_READLOG
        let address = netlink(1);
        sys!(libc::bind(to, (&raw const address).cast(), 12))?;
        Ok(Self { socket, marks: 0 })
    }

    /// All that was recorded since the last time.
    fn all(&mut self) -> io::Result<Vec<String>> {
        self.marks += 1;
        let mark = format!("te-ops mark {};", self.marks);
        // its last byte is not kept
        let len = 16 + mark.len() + 1;
        // AUDIT_USER, NLM_F_REQUEST
        let mut message: Vec<u8> = [len as u32, 1005 | 1 << 16, self.marks, 0]
            .map(u32::to_ne_bytes)
            .concat();
        message.extend(mark.bytes().chain([0]));
        sys!(libc::send(
            self.socket.as_raw_fd(),
            message.as_ptr().cast(),
            len,
            0
        ))?;
        let mut records = Vec::new();
        loop {
            let mut text = [0u8; 8192];
            let got = sys!(libc::recv(
                self.socket.as_raw_fd(),
                text.as_mut_ptr().cast(),
                text.len(),
                0
            ))?;
            let text = String::from_utf8_lossy(&text[16..got as usize]).into_owned();
            if text.contains(&mark) {
                return Ok(records);
            }
            records.push(text);
        }
    }
}

/// What follows a word in a record.
fn after<'a>(record: &'a str, word: &str) -> Option<&'a str> {
    let (_, rest) = record.split_once(word)?;
    rest.split([' ', '\0', '\n']).next()
}

/// The type in a context.
fn kind(context: &str) -> &str {
    context.split(':').nth(2).unwrap_or_default()
}

/// The questions in records: class, permission, and the types that they are about.
fn questions(records: &[String]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for record in records
        .iter()
        .filter(|record| record.contains("avc:  denied"))
    {
        let (Some(from), Some(to), Some(class)) = (
            after(record, "scontext="),
            after(record, "tcontext="),
            after(record, "tclass="),
        ) else {
            continue;
        };
        let (_, rest) = record.split_once('{').unwrap_or_default();
        let permissions = rest.split('}').next().unwrap_or_default();
        for permission in permissions.split_whitespace() {
            found.insert(format!(
                "{class}:{permission} {} -> {}",
                kind(from),
                kind(to)
            ));
        }
    }
    found
}

pub fn record() -> io::Result<()> {
    world::make(true)?;
    let mut records = Records::open()?;
    let mut maker = Player::start(System::Selinux, MAKER, "make")?;
    let mut player = Player::start(System::Selinux, ASKED, "serve waiting")?;
    for op in all() {
        let (verdict, _) = one(&mut maker, &mut player, &op, || {
            world::enforce("0")?;
            world::enforce("1")?;
            records.all().map(drop)
        })?;
        let asked = questions(&records.all()?);
        println!("asked: {}", op.name);
        if verdict != "ok" {
            println!("FAILED  {}: {verdict}", op.name);
        }
        for question in &asked {
            println!("asked: \t{question}");
        }
    }
    player.end()?;
    maker.end()
}
