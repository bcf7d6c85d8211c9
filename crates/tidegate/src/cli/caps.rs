//! What the command line says of capability files.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

/// By which capability file a command is limited.
#[derive(Debug, Default, Args)]
pub struct RunCaps {
    /// The capability file that lists all that the command may do. Every user may give one. A process that a file limits
    /// already is then limited by both. Unless root runs it, the command gains no privileges from setuid programs
    #[arg(long, value_name = "FILE.caps")]
    pub caps: Option<PathBuf>,
    /// The subject of the file that the command is; without it, the first
    #[arg(long, value_name = "NAME", requires = "caps")]
    pub caps_subject: Option<String>,
}

/// What to take back.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Revoke {
    /// All that a session has, by the number that `tidegate sessions` shows
    #[arg(long, value_name = "N")]
    pub caps_session: Option<u64>,
    /// What a subject gives
    #[arg(long, value_name = "[FILE:]NAME")]
    pub subject: Option<OfSubject>,
    /// What a line of a capability file gives
    #[arg(long, value_name = "FILE:LINE", value_parser = of_line)]
    pub capability: Option<(String, u32)>,
    /// What any file gives of an object: file:PATH, tcp:ADDRESS:PORT, udp:ADDRESS:PORT, unix:PATH or unix:@NAME. A
    /// service's object is service:SERVICE:NAME, by the service's name in capability files
    #[arg(long, value_name = "CLASS:NAME")]
    pub object: Option<OfObject>,
}

/// A subject by its name, and perhaps its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfSubject {
    /// The file.
    pub file: Option<String>,
    /// The name.
    pub name: String,
}

impl FromStr for OfSubject {
    type Err = String;

    fn from_str(text: &str) -> Result<OfSubject, String> {
        let (file, name) = match text.rsplit_once(':') {
            Some((file, name)) => (Some(file.to_owned()), name),
            None => (None, text),
        };
        match name.is_empty() {
            true => Err("it names no subject".into()),
            false => Ok(OfSubject {
                file,
                name: name.to_owned(),
            }),
        }
    }
}

/// An object by its class and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfObject {
    /// The class.
    pub class: String,
    /// The name.
    pub name: String,
}

impl FromStr for OfObject {
    type Err = String;

    fn from_str(text: &str) -> Result<OfObject, String> {
        let parts = text.split_once(':').filter(|(_, name)| !name.is_empty());
        let (class, name) = parts.ok_or("it is not CLASS:NAME, for example file:/srv/data")?;
        Ok(OfObject {
            class: class.to_owned(),
            name: name.to_owned(),
        })
    }
}

fn of_line(text: &str) -> Result<(String, u32), String> {
    let wrong = || "it is not FILE:LINE, for example tools.caps:4".to_owned();
    let (file, line) = text.rsplit_once(':').ok_or_else(wrong)?;
    let line = line.parse().map_err(|_| wrong())?;
    Ok((file.to_owned(), line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_back_is_told_by_its_last_colon_or_its_first() {
        let subject = OfSubject::from_str("/a:b/x.caps:tool").unwrap();
        assert_eq!(subject.file.as_deref(), Some("/a:b/x.caps"));
        assert_eq!(subject.name, "tool");
        assert_eq!(OfSubject::from_str("tool").unwrap().file, None);
        let object = OfObject::from_str("tcp:[::1]:80").unwrap();
        assert_eq!((&*object.class, &*object.name), ("tcp", "[::1]:80"));
        assert!(OfObject::from_str("/srv").is_err());
        assert_eq!(of_line("a.caps:4"), Ok(("a.caps".into(), 4)));
        assert!(of_line("a.caps").is_err());
    }
}
