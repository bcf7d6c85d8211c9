//! The line of a capability file that would give what it refused.

use std::net::SocketAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidegate_audit::{CapsRecord, Record, caps_because, printable};
use tidegate_bundle::Policy;
use tidegate_bundle::caps::literal;

use crate::explanation::{Explain, Explanation, Shown};

/// A line, and where it belongs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapsLine {
    /// The subject,
    pub subject: String,
    /// its place,
    pub file: String,
    /// and what it lacks.
    pub line: String,
}

impl Explain for CapsLine {
    fn explain(chain: &[Record], _policy: &Arc<Policy>) -> Option<Explanation<CapsLine>> {
        explain(chain.first()?)
    }

    fn lines(&self, _shown: &Shown<'_>) -> Vec<String> {
        let (line, subject) = (printable(&self.line), printable(&self.subject));
        vec![format!(
            "fix: {line}   (in subject {subject}, {}; for sessions that begin then)",
            printable(&self.file)
        )]
    }
}

/// What is known of how to fix a refusal by capability files; `None`: it is none.
fn explain(record: &Record) -> Option<Explanation<CapsLine>> {
    let caps = record.caps.as_ref().filter(|_| record.is_denial())?;
    let line = (caps.why == "missing").then(|| {
        Some(CapsLine {
            subject: caps.subject.clone()?,
            file: caps.file.clone()?,
            line: line(record)?,
        })
    });
    if let Some(line) = line.flatten() {
        return Some(Explanation::Refused(line));
    }
    let advice = match caps.why.as_str() {
        "revoked" => {
            "it was taken back from this session: one that begins anew has it again".to_owned()
        }
        "expired" | "used-up" => {
            "a line without that limit gives it for longer; or open it anew".to_owned()
        }
        "not-bound" => "have it opened for that, which takes a line that gives it then".to_owned(),
        "request" if caps.service.is_some() => request(caps),
        "socket-type" => format!(
            "the socket has to be of the type that `service {} on …` says, or `type` not to be there",
            caps.service.as_deref().unwrap_or_default()
        ),
        _ => caps_because(&caps.why).to_owned(),
    };
    Some(Explanation::Advice(advice))
}

/// What a service's operations lack.
fn request(caps: &CapsRecord) -> String {
    let service = caps.service.as_deref().unwrap_or_default();
    match caps.operation.as_deref() {
        Some(number) if number.parse::<u32>().is_ok() => {
            format!("`operation {number} …` in service {service} would list it")
        }
        operation => format!(
            "operation {} in service {service} has no such operand, or no such value of one",
            operation.unwrap_or_default()
        ),
    }
}

/// The line that gives it, and nothing else.
fn line(record: &Record) -> Option<String> {
    let (class, denied) = (record.tclass.as_deref()?, record.denied.as_deref()?);
    if let Some(CapsRecord {
        service: Some(service),
        object: Some(object),
        ..
    }) = &record.caps
    {
        return Some(format!("service {service} {} {denied}", word(object)));
    }
    let object = record.object.as_ref()?;
    let path = || {
        let path = object
            .path
            .as_deref()
            .filter(|path| !path.starts_with('…'))?;
        Some(word(path))
    };
    match class {
        "file" | "dir" | "program" | "library" => Some(format!("{class} {} {denied}", path()?)),
        "tcp" | "udp" | "unix" => {
            let bind = denied.split(' ').any(|word| word == "bind");
            let verb = if bind { "bind" } else { "connect" };
            let place = match class {
                "unix" => path()?,
                _ => {
                    let address: SocketAddr = object.address.as_deref()?.parse().ok()?;
                    format!("{} port {}", address.ip(), address.port())
                }
            };
            Some(format!("{verb} {class} {place}"))
        }
        _ => None,
    }
}

/// A path as a word that matches it and nothing else.
fn word(path: &str) -> String {
    let pattern = literal(path);
    match pattern.contains([' ', '>', '#']) {
        true => format!("\"{pattern}\""),
        false => pattern,
    }
}

#[cfg(test)]
mod tests {
    use tidegate_audit::ObjectRecord;
    use tidegate_bundle::caps::{Class, Object};
    use tidegate_policy::caps;

    use super::*;

    fn refusal(class: &str, denied: &str, object: ObjectRecord) -> Record {
        Record {
            kind: "denied".into(),
            tclass: Some(class.into()),
            denied: Some(denied.into()),
            object: Some(object),
            caps: Some(CapsRecord {
                subject: Some("tool".into()),
                file: Some("tools.caps:1".into()),
                why: "missing".into(),
                ..CapsRecord::default()
            }),
            ..Record::default()
        }
    }

    fn of_path(path: &str) -> ObjectRecord {
        ObjectRecord {
            path: Some(path.into()),
            ..ObjectRecord::default()
        }
    }

    #[test]
    fn the_line_gives_what_was_refused_and_compiles() {
        for path in [
            "/srv/a",
            "/srv/a b",
            "/srv/*{x}[y]?",
            "/a#b",
            "/q\"q",
            "/back\\slash",
        ] {
            let remedy = explain(&refusal("file", "read lock", of_path(path))).unwrap();
            let line = remedy.refused().unwrap().line;
            let text = format!("subject tool {{\n {line}\n}}\n");
            let caps = caps::compile_str("t.caps", &text);
            let caps = caps
                .unwrap_or_else(|e| panic!("{e:?}: {text}"))
                .capabilities;
            let rights = |path: &str| {
                let object = Object::Path(Class::File, path.into());
                let said = caps.lookup(0, &object);
                caps.words(Class::File, said.rights).join(" ")
            };
            assert_eq!(rights(path), "read lock", "{line}");
            assert_eq!(rights("/srv/x"), "");
        }
    }

    #[test]
    fn addresses_and_sockets_have_their_lines() {
        let of = |class: &str, denied: &str, object| {
            let remedy = explain(&refusal(class, denied, object)).unwrap();
            remedy.refused().map(|caps| caps.line)
        };
        let address = |text: &str| ObjectRecord {
            address: Some(text.into()),
            ..ObjectRecord::default()
        };
        let line = of("tcp", "connect read write", address("192.0.2.1:443"));
        assert_eq!(line.as_deref(), Some("connect tcp 192.0.2.1 port 443"));
        let line = of("udp", "bind", address("[::1]:53"));
        assert_eq!(line.as_deref(), Some("bind udp ::1 port 53"));
        let line = of("unix", "connect", of_path("/run/x"));
        assert_eq!(line.as_deref(), Some("connect unix /run/x"));
        assert_eq!(of("file", "read", of_path("…/cut")), None);
    }

    #[test]
    fn objects_of_services_have_their_lines_and_operations_advice() {
        let of = |why: &str, operation: &str, object: Option<&str>| {
            let denied = if why == "missing" { "write" } else { "" };
            let mut record = refusal("service", denied, ObjectRecord::default());
            let caps = record.caps.as_mut().unwrap();
            caps.why = why.into();
            caps.service = Some("notes".into());
            caps.operation = Some(operation.into());
            caps.object = object.map(str::to_owned);
            explain(&record).unwrap()
        };
        let line = of("missing", "put", Some("pub:*")).refused().unwrap().line;
        assert_eq!(line, r"service notes pub:\* write");
        let advice = of("request", "9", None).advice().unwrap();
        assert!(advice.contains("`operation 9 …` in service notes"));
        let advice = of("request", "put", None).advice().unwrap();
        assert!(advice.contains("operation put in service notes has no such operand"));
        let advice = of("socket-type", "", None).advice().unwrap();
        assert!(advice.contains("that `service notes on …` says"));
    }

    #[test]
    fn what_no_line_fixes_has_advice() {
        let mut record = refusal("file", "read", of_path("/a"));
        record.caps.as_mut().unwrap().why = "revoked".into();
        let remedy = explain(&record).unwrap();
        assert!(remedy.advice().unwrap().contains("begins anew"));
        assert!(explain(&Record::default()).is_none());
    }
}
