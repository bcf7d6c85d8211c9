//! How the daemon runs, and the words for that.

use std::str::FromStr;

/// How the daemon runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Whether refusals are only recorded.
    pub permissive: bool,
    /// Whether all that runs is brought under the SELinux policy.
    pub te_system: bool,
    /// Room in the table of given levels, and in that of labels.
    pub given_entries: u32,
    /// Bytes after which the audit log is rotated.
    pub log_size: u64,
    /// Rotated audit logs to keep.
    pub log_keep: u32,
    /// Denials of one subject, object and operation to record a second.
    pub log_rate: u32,
    /// Milliseconds for which nobody must have needed the guard before it is detached.
    pub guard_quiet: u32,
}

/// The options of a daemon that is started without any.
pub const DEFAULTS: Options = Options {
    permissive: false,
    te_system: false,
    given_entries: 1 << 18,
    log_size: 64 << 20,
    log_keep: 8,
    log_rate: 10,
    guard_quiet: 5000,
};

impl Options {
    /// Returns the words that [`Options::take`] reads.
    pub fn to_words(&self) -> Vec<String> {
        let mut words = vec![
            format!("--given-entries={}", self.given_entries),
            format!("--log-size={}", self.log_size),
            format!("--log-keep={}", self.log_keep),
            format!("--log-rate={}", self.log_rate),
            format!("--guard-quiet={}", self.guard_quiet),
        ];
        if self.permissive {
            words.push("--permissive".into());
        }
        if self.te_system {
            words.push("--te-system".into());
        }
        words
    }

    /// Takes a word. Returns `None` if it is no option, or has no such value.
    pub fn take(&mut self, word: &str) -> Option<()> {
        match word {
            "--permissive" => self.permissive = true,
            "--te-system" => self.te_system = true,
            _ => {
                let (name, value) = word.split_once('=')?;
                match name {
                    "--given-entries" => self.given_entries = number(value)?,
                    "--log-size" => self.log_size = number(value)?,
                    "--log-keep" => self.log_keep = number(value)?,
                    "--log-rate" => self.log_rate = number(value)?,
                    "--guard-quiet" => self.guard_quiet = number(value)?,
                    _ => return None,
                }
            }
        }
        Some(())
    }
}

fn number<T: FromStr>(value: &str) -> Option<T> {
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_survive_as_words() {
        let options = Options {
            permissive: true,
            te_system: true,
            given_entries: 512,
            log_size: 4096,
            log_keep: 0,
            log_rate: 3,
            guard_quiet: 1,
        };
        let mut read = DEFAULTS;
        for word in options.to_words() {
            read.take(&word).unwrap();
        }
        assert_eq!(read, options);
    }

    #[test]
    fn other_words_are_refused() {
        for word in [
            "",
            "--",
            "permissive",
            "--log-keep",
            "--log-keep=-1",
            "--log-keep=x",
        ] {
            assert_eq!(DEFAULTS.clone().take(word), None, "{word}");
        }
    }
}
