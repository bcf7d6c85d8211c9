//! Rules of a program's own, without a file.

use std::fmt::Write;
use std::ops::RangeInclusive;

/// What a subject is given, a line of a capability file each (docs/reference/capability-files.md): objects by a pattern, and what may be
/// done with them. Patterns are AppArmor's globbing; a path that is to stand for itself goes through [`literal`](crate::literal).
#[derive(Debug, Clone, Default)]
pub struct Rules {
    lines: String,
}

impl Rules {
    /// None: nothing may be opened, executed, mapped as code or connected to.
    pub fn new() -> Rules {
        Rules::default()
    }

    /// Files of any kind but directories: `read`, `write`, `append`, `create`, `unlink`, `rename`, `link`, `setattr`, `lock`,
    /// `ioctl`, parted by blanks.
    pub fn file(self, pattern: &str, permissions: &str) -> Rules {
        self.line(&["file", &quoted(pattern), permissions])
    }

    /// Directories: `read`, `create`, `rmdir`, `rename`, `setattr`.
    pub fn dir(self, pattern: &str, permissions: &str) -> Rules {
        self.line(&["dir", &quoted(pattern), permissions])
    }

    /// Programs to be executed.
    pub fn program(self, pattern: &str) -> Rules {
        self.line(&["program", &quoted(pattern), "execute"])
    }

    /// Files to be mapped as code.
    pub fn library(self, pattern: &str) -> Rules {
        self.line(&["library", &quoted(pattern), "load"])
    }

    /// Peers of TCP: `any`, `loopback`, an address or a network, and their ports.
    pub fn connect_tcp(self, network: &str, ports: RangeInclusive<u16>) -> Rules {
        self.inet("connect tcp", network, &ports)
    }

    /// The same of UDP.
    pub fn connect_udp(self, network: &str, ports: RangeInclusive<u16>) -> Rules {
        self.inet("connect udp", network, &ports)
    }

    /// Own addresses of TCP.
    pub fn bind_tcp(self, network: &str, ports: RangeInclusive<u16>) -> Rules {
        self.inet("bind tcp", network, &ports)
    }

    /// The same of UDP.
    pub fn bind_udp(self, network: &str, ports: RangeInclusive<u16>) -> Rules {
        self.inet("bind udp", network, &ports)
    }

    /// Unix sockets to connect to: a path, or `@` and an abstract name.
    pub fn connect_unix(self, pattern: &str) -> Rules {
        self.line(&["connect unix", &quoted(pattern)])
    }

    /// Unix sockets to bind.
    pub fn bind_unix(self, pattern: &str) -> Rules {
        self.line(&["bind unix", &quoted(pattern)])
    }

    fn inet(self, verb: &str, network: &str, ports: &RangeInclusive<u16>) -> Rules {
        let (first, last) = (ports.start(), ports.end());
        self.line(&[verb, network, &format!("port {first}-{last}")])
    }

    fn line(mut self, words: &[&str]) -> Rules {
        self.lines.push_str("    ");
        self.lines.push_str(&in_a_line(&words.join(" ")));
        self.lines.push('\n');
        self
    }

    /// As a capability file with one subject.
    pub fn text(&self, subject: &str) -> String {
        format!("subject {} {{\n{}}}\n", in_a_line(subject), self.lines)
    }
}

/// What would begin another line is what no line can have.
fn in_a_line(text: &str) -> String {
    text.replace(['\n', '\r'], "\u{fffd}")
}

/// A pattern as a word: quotation marks and control characters, which none may have, by their numbers.
fn quoted(pattern: &str) -> String {
    let mut word = String::from("\"");
    for c in pattern.chars() {
        match c {
            c if c.is_ascii_control() || c == '"' => {
                let _ = write!(word, "\\x{:02x}", u32::from(c));
            }
            c => word.push(c),
        }
    }
    word.push('"');
    word
}

#[cfg(test)]
mod tests {
    use tidegate_bundle::caps::{Class, Object, literal};
    use tidegate_policy::caps;

    use super::*;
    use crate::Layer;

    fn rights(rules: &Rules, class: Class, path: &str) -> String {
        let caps = caps::compile_str("t", &rules.text("t")).unwrap();
        let caps = caps.capabilities;
        let said = caps.lookup(0, &Object::Path(class, path.into()));
        caps.words(class, said.rights).join(" ")
    }

    #[test]
    fn what_is_given_is_what_the_lines_say() {
        let rules = Rules::new()
            .file("/srv/in/**", "read")
            .file("/srv/a b/\"c\"\n", "read write")
            .dir("/srv/in", "read")
            .program("/usr/bin/sort")
            .library("/usr/lib/**")
            .connect_tcp("192.0.2.0/24", 443..=443)
            .connect_udp("any", 53..=53)
            .bind_tcp("loopback", 0..=u16::MAX)
            .bind_udp("::1", 1..=9)
            .connect_unix("@x*")
            .bind_unix("/run/x");
        assert_eq!(rights(&rules, Class::File, "/srv/in/a/b"), "read");
        assert_eq!(
            rights(&rules, Class::File, "/srv/a b/\"c\"\n"),
            "read write"
        );
        assert_eq!(rights(&rules, Class::Program, "/usr/bin/sort"), "execute");
        assert_eq!(rights(&rules, Class::File, "/etc/passwd"), "");
    }

    #[test]
    fn nothing_at_all_is_a_subject() {
        assert_eq!(rights(&Rules::new(), Class::File, "/"), "");
    }

    #[test]
    fn a_path_of_somebody_elses_stands_for_itself() {
        for path in [
            "/srv/*",
            "/srv/{a,b}",
            "/srv/[x] \"y\"",
            "/srv/\\",
            "/é\u{1}",
        ] {
            let rules = Rules::new().file(&literal(path), "read");
            assert_eq!(rights(&rules, Class::File, path), "read", "{path}");
            assert_eq!(rights(&rules, Class::File, "/srv/a"), "", "{path}");
        }
    }

    #[test]
    fn no_rule_is_more_than_its_line() {
        for rules in [
            Rules::new().file("/a", "read\n file /** read"),
            Rules::new().connect_tcp("any\n}\nsubject x {", 1..=2),
            Rules::new().file("relative", "read"),
        ] {
            assert!(Layer::of_rules("t", &rules).is_err(), "{rules:?}");
        }
        assert!(Layer::of_rules("t {\n}\nsubject u", &Rules::new()).is_err());
    }
}
