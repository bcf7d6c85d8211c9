//! Paths that patterns match, nearly match, or have nothing to do with.

use fastrand::Rng;

/// A text that a pattern matches, most of the time; it is no reader of its own, and what it does not know it takes literally.
pub fn matching(rng: &mut Rng, pattern: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut sample = Sample {
        rng,
        text: pattern.as_bytes(),
        at: 0,
    };
    sample.alternatives(&mut out);
    out
}

struct Sample<'r> {
    rng: &'r mut Rng,
    text: &'r [u8],
    at: usize,
}

impl Sample<'_> {
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    /// Writes one of the alternatives up to the group's end.
    fn alternatives(&mut self, out: &mut Vec<u8>) {
        let mut seen = 0;
        let begin = out.len();
        loop {
            let mut branch = Vec::new();
            while self.at < self.text.len() && !matches!(self.peek(), b'|' | b')') {
                self.item(&mut branch);
            }
            seen += 1;
            if self.rng.usize(..seen) == 0 {
                out.truncate(begin);
                out.append(&mut branch);
            }
            if self.peek() != b'|' {
                return;
            }
            self.at += 1;
        }
    }

    fn item(&mut self, out: &mut Vec<u8>) {
        let begin = self.at;
        let mut once = Vec::new();
        self.atom(&mut once);
        let end = self.at;
        let count = self.count();
        let behind = self.at;
        for _ in 0..count {
            self.at = begin;
            self.atom(out);
            debug_assert_eq!(self.at, end);
        }
        self.at = behind;
    }

    fn atom(&mut self, out: &mut Vec<u8>) {
        let byte = self.peek();
        self.at += 1;
        match byte {
            b'(' => {
                if self.text[self.at..].starts_with(b"?:") {
                    self.at += 2;
                }
                self.alternatives(out);
                self.at += 1;
            }
            b'[' => self.class(out),
            b'.' => out.push(self.any()),
            b'^' | b'$' => {}
            b'\\' => {
                let byte = self.peek();
                self.at += 1;
                out.push(match byte {
                    b'd' => b'0' + self.rng.u8(..10),
                    b'w' => b'_',
                    b's' => b' ',
                    b'D' | b'W' | b'S' => self.any(),
                    byte => byte,
                });
            }
            byte => out.push(byte),
        }
    }

    fn class(&mut self, out: &mut Vec<u8>) {
        let begin = self.at;
        let mut inside = Vec::new();
        while self.at < self.text.len() && (self.peek() != b']' || self.at == begin) {
            if self.text[self.at..].starts_with(b"[:")
                && let Some(length) = self.text[self.at..]
                    .windows(2)
                    .position(|pair| pair == b":]")
            {
                self.at += length + 2;
                inside.push(b"a0 _Z"[self.rng.usize(..5)]);
                continue;
            }
            inside.push(self.peek());
            self.at += 1;
        }
        self.at += 1;
        out.push(match (inside.first(), inside.get(1..)) {
            (Some(b'^'), _) | (None, _) => self.any(),
            (Some(&low), Some(&[b'-', high, ..])) if low <= high => self.rng.u8(low..=high),
            _ => inside[self.rng.usize(..inside.len())],
        });
    }

    /// How often an atom stands there, by the quantifier behind it.
    fn count(&mut self) -> usize {
        let (low, high) = match self.peek() {
            b'*' => (0, 4),
            b'+' => (1, 4),
            b'?' => (0, 1),
            b'{' => {
                let rest = &self.text[self.at..];
                let length = rest.iter().position(|&byte| byte == b'}');
                let inside = length.and_then(|length| std::str::from_utf8(&rest[1..length]).ok());
                let Some((low, high)) = inside.and_then(|text| {
                    let (low, high) = text.split_once(',').unwrap_or((text, text));
                    let low = if low.is_empty() { 0 } else { low.parse().ok()? };
                    Some((
                        low,
                        if high.is_empty() {
                            low + 2
                        } else {
                            high.parse().ok()?
                        },
                    ))
                }) else {
                    return 1;
                };
                self.at += length.unwrap_or(0);
                (low, high)
            }
            _ => return 1,
        };
        self.at += 1;
        if self.peek() == b'?' {
            self.at += 1;
        }
        self.rng.usize(low..=high.max(low))
    }

    fn any(&mut self) -> u8 {
        b"abcz019._-/\n \xe9"[self.rng.usize(..14)]
    }
}

/// A path that is a little other than one that is given.
pub fn mutated(rng: &mut Rng, path: &[u8]) -> Vec<u8> {
    let mut path = path.to_vec();
    for _ in 0..rng.usize(1..3) {
        let at = rng.usize(..path.len().max(1)).min(path.len());
        match rng.usize(..8) {
            0 if at < path.len() => {
                path.remove(at);
            }
            1 if at < path.len() => path[at] = b"abclr/.-0\n"[rng.usize(..10)],
            2 => path.insert(at, b"abclr/.-0\n"[rng.usize(..10)]),
            3 => path.truncate(at),
            4 => path.extend(b"/x"),
            5 => path.push(b'\n'),
            6 => path.extend(b"/bin/a.so.1"),
            _ => path.push(b"ab01./"[rng.usize(..6)]),
        }
    }
    path
}

/// A path as the kernel tells it: from the root, without empty components.
pub fn clean(path: &[u8]) -> Option<Vec<u8>> {
    let mut clean = vec![b'/'];
    for &byte in path {
        if byte == 0 {
            return None;
        }
        if byte != b'/' || clean.last() != Some(&b'/') {
            clean.push(byte);
        }
    }
    if clean.len() > 1 && clean.last() == Some(&b'/') {
        clean.pop();
    }
    (clean.len() < 4_000).then_some(clean)
}
