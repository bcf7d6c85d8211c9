//! Where rules were written: what `apparmor_parser` does not say of what it compiles.
//!
//! Profiles are read as the parser's lexer splits them, as far as it takes to find each rule, its
//! class, its line and the profile that it stands in, through all that is included, and where a
//! profile has room for another rule. What a rule means is not looked at: `apparmor.d(5)` has the
//! language.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::pieces::{End, Piece, Pieces};

/// A rule, and where it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The profile that it stands in: a child's and a hat's is `parent//name`.
    pub profile: String,
    /// Its class: the word that it begins with, `file` where it begins with a path.
    pub class: String,
    /// The file that it stands in, which the profile's may include.
    pub file: PathBuf,
    /// Its first line, from 1.
    pub line: u32,
    /// Its words, without the comma.
    pub text: String,
    /// What it says of what it speaks of.
    pub says: Says,
    /// Where it stands in the file, in bytes, with its comma.
    pub span: Range<usize>,
}

/// What a rule says, by its own qualifiers or by those of a block around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// It is allowed.
    Allowed,
    /// It is refused: `deny`.
    Denied,
    /// Somebody is to be asked: `prompt`.
    Asked,
}

/// A profile's own block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The profile.
    pub profile: String,
    /// The file that it stands in.
    pub file: PathBuf,
    /// The line that its head begins at, from 1.
    pub line: u32,
    /// Where its head begins, in bytes.
    pub begin: usize,
    /// Where the bracket that closes it stands.
    pub end: usize,
    /// What it includes of `local/`, where a machine's own rules belong.
    pub locals: Vec<PathBuf>,
}

/// What a file of profiles says, with all that it includes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// The rules, in the order in which they are read.
    pub statements: Vec<Statement>,
    /// The profiles, a child before its parent.
    pub blocks: Vec<Block>,
    /// The profiles' heads, as rules of the class `profile`.
    pub heads: Vec<Statement>,
    /// Files that are included by a path of their own, and not by one that begins at the base.
    pub elsewhere: Vec<PathBuf>,
}

/// Files that include one another, at most.
const MAX_DEPTH: usize = 32;

/// Reads a file of profiles.
///
/// # Errors
///
/// If the file, or one that it includes, cannot be read. What is included `if exists` need not be.
pub fn source(file: &Path, base: &Path) -> io::Result<Source> {
    let mut reader = Reader {
        base,
        open: Vec::new(),
        including: Vec::new(),
        found: Source::default(),
    };
    reader.file(file, 0)?;
    Ok(reader.found)
}

struct Reader<'r> {
    base: &'r Path,
    /// The blocks around what is read.
    open: Vec<Open>,
    /// The files that are included where it is read.
    including: Vec<PathBuf>,
    found: Source,
}

/// A block that has not ended.
enum Open {
    /// A profile's.
    Profile(Block),
    /// One of rules alone: a condition, or qualifiers that hold for each of them.
    Rules(Says),
}

/// What a rule may begin with before it says its class.
const QUALIFIERS: [&str; 8] = [
    "audit", "allow", "deny", "quiet", "owner", "other", "access", "prompt",
];

/// Whether a word is one of those, or part of `priority = 5`.
fn is_qualifier(word: &str) -> bool {
    QUALIFIERS.contains(&word)
        || word.starts_with("priority")
        || word.starts_with('=')
        || word.parse::<i64>().is_ok()
}

/// What qualifiers say.
fn says(words: &[&str]) -> Says {
    let mut qualifiers = words.iter().take_while(|word| is_qualifier(word));
    let said = qualifiers.find_map(|word| match *word {
        "deny" => Some(Says::Denied),
        "prompt" => Some(Says::Asked),
        _ => None,
    });
    said.unwrap_or(Says::Allowed)
}

/// The letters of a file rule's permissions.
const MODES: &str = "rwaklmxiupcUPCd";

impl Reader<'_> {
    fn file(&mut self, file: &Path, depth: usize) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(io::Error::other(format!(
                "{}: included too deep",
                file.display()
            )));
        }
        // a path in a profile is of bytes, and need not be text
        let text = fs::read(file)?;
        let text = String::from_utf8_lossy(&text);
        for piece in Pieces::of(&text) {
            match piece.end {
                End::Comma => self.rule(file, &piece),
                End::Open => {
                    let open = self.opened(file, &piece);
                    self.open.push(open);
                }
                End::Close => {
                    // the last rule of a block may lack its comma
                    if !piece.words.is_empty() {
                        self.rule(file, &piece);
                    }
                    if let Some(Open::Profile(mut block)) = self.open.pop() {
                        block.end = piece.end_at - 1;
                        self.found.blocks.push(block);
                    }
                }
                // where it would go on is not looked for
                End::Line if piece.is_rule() => {
                    return Err(io::Error::other(format!(
                        "{}:{}: a rule that does not end in its file",
                        file.display(),
                        piece.line
                    )));
                }
                End::Line => self.include(&piece.words, depth)?,
            }
        }
        Ok(())
    }

    fn rule(&mut self, file: &Path, piece: &Piece) {
        let words = piece.words.iter().copied();
        let mut words = words.skip_while(|word| is_qualifier(word));
        let (Some(profile), Some(first)) =
            (self.profile(), words.next().filter(|first| *first != "abi"))
        else {
            return;
        };
        let is_path = |word: &str| word.starts_with(['/', '@', '"', '{', '\\']);
        // permissions may stand before the path
        let is_path = is_path(first)
            || (words.next().is_some_and(is_path) && first.chars().all(|c| MODES.contains(c)));
        // permissions may follow the class without a blank
        let class = first.split('(').next().unwrap_or(first);
        let statement = Statement {
            profile: profile.to_owned(),
            class: if is_path { "file" } else { class }.to_owned(),
            file: file.to_owned(),
            line: piece.line,
            text: piece.words.join(" "),
            says: self.says(&piece.words),
            // a bracket that closes the block is not the rule's
            span: piece.begin_at..piece.end_at - usize::from(piece.end == End::Close),
        };
        self.found.statements.push(statement);
    }

    /// What a rule says: its block's qualifiers are the rule's, too.
    fn says(&self, words: &[&str]) -> Says {
        let around = self.open.iter().filter_map(|open| match open {
            Open::Rules(says) => Some(*says),
            Open::Profile(_) => None,
        });
        let mut all = around.chain([says(words)]);
        all.find(|says| *says != Says::Allowed)
            .unwrap_or(Says::Allowed)
    }

    /// The name of the profile that is read.
    fn profile(&self) -> Option<&str> {
        self.open.iter().rev().find_map(|open| match open {
            Open::Profile(block) => Some(block.profile.as_str()),
            Open::Rules(_) => None,
        })
    }

    /// What a block's head begins.
    fn opened(&mut self, file: &Path, head: &Piece) -> Open {
        let Some(block) = self.block(file, head) else {
            return Open::Rules(says(&head.words));
        };
        self.found.heads.push(Statement {
            profile: block.profile.clone(),
            class: "profile".to_owned(),
            file: file.to_owned(),
            line: head.line,
            text: head.words.join(" "),
            says: Says::Allowed,
            span: head.begin_at..head.end_at,
        });
        Open::Profile(block)
    }

    /// The profile that a block's head begins.
    fn block(&self, file: &Path, head: &Piece) -> Option<Block> {
        let name = match head.words[..] {
            ["profile" | "hat", name, ..] => name,
            [name, ..] if name.starts_with(['/', '@', '"', '^', ':']) => name,
            _ => return None,
        };
        let name = name.trim_start_matches('^').trim_matches('"');
        Some(Block {
            profile: match self.profile() {
                Some(parent) => format!("{parent}//{name}"),
                None => name.to_owned(),
            },
            file: file.to_owned(),
            line: head.line,
            begin: head.begin_at,
            end: 0,
            locals: Vec::new(),
        })
    }

    fn include(&mut self, words: &[&str], depth: usize) -> io::Result<()> {
        let (is_optional, path) = match words {
            ["include" | "#include", "if", "exists", path @ ..] => (true, path),
            ["include" | "#include", path @ ..] => (false, path),
            _ => return Ok(()),
        };
        // another one may follow on the line
        let is_include = |word: &&str| matches!(*word, "include" | "#include");
        let end = path.iter().position(is_include).unwrap_or(path.len());
        let (path, next) = path.split_at(end);
        self.include_one(&path.join(" "), is_optional, depth)?;
        self.include(next, depth)
    }

    fn include_one(&mut self, path: &str, is_optional: bool, depth: usize) -> io::Result<()> {
        let is_from_base = path.starts_with('<');
        let path = Path::new(path.trim_matches(['<', '>', '"', ' ']));
        if path.as_os_str().is_empty() {
            return Ok(());
        }
        let is_local = path.starts_with("local");
        let path = match is_from_base {
            true => self.base.join(path),
            false => path.to_owned(),
        };
        let around = self.open.iter_mut().rev().find_map(|open| match open {
            Open::Profile(block) => Some(block),
            Open::Rules(_) => None,
        });
        if is_local && let Some(block) = around {
            block.locals.push(path.clone());
        }
        let files = match fs::metadata(&path) {
            Err(e) if is_optional && e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(e),
            Ok(found) if found.is_dir() => super::parser::profiles_in(&path)?,
            Ok(_) => vec![path],
        };
        for file in files {
            // one that includes itself is read once
            if self.including.contains(&file) {
                continue;
            }
            if !is_from_base {
                self.found.elsewhere.push(file.clone());
            }
            self.including.push(file.clone());
            self.file(&file, depth + 1)?;
            self.including.pop();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The class, profile, line and text of each rule of `main`, beside which `abs` lies.
    fn read(main: &str, abs: &str) -> Vec<(String, String, u32, String)> {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("main"), main).unwrap();
        fs::write(dir.path().join("abs"), abs).unwrap();
        let found = source(&dir.path().join("main"), dir.path()).unwrap();
        (found.statements.into_iter())
            .map(|s| (s.class, s.profile, s.line, s.text))
            .collect()
    }

    fn rule(class: &str, profile: &str, line: u32, text: &str) -> (String, String, u32, String) {
        (class.into(), profile.into(), line, text.into())
    }

    #[test]
    fn rules_have_their_class_their_profile_and_their_line() {
        let main = r#"
abi <abi/4.0>,
@{X} = /a /b
@{X} += "/c d"
profile one /usr/bin/one flags=(complain, attach_disconnected) {
  # a comment, with a comma
  /etc/{a,b,}c r, # another
  owner pix @{HOME}/** ,
  audit deny capability sys_admin,
  dbus (send, receive) bus=system
       peer=(name=org.x, label=two),
  "/with space, and comma" r,
  priority=5 signal peer=@{profile_name},
  change_profile -> two,
  profile child {
    network inet stream,
  }
  ^hat { ptrace, }
}
/usr/bin/two (kill) { userns, }
"#;
        assert_eq!(
            read(main, ""),
            [
                rule("file", "one", 7, "/etc/{a,b,}c r"),
                rule("file", "one", 8, "owner pix @{HOME}/**"),
                rule("capability", "one", 9, "audit deny capability sys_admin"),
                rule(
                    "dbus",
                    "one",
                    10,
                    "dbus (send, receive) bus=system peer=(name=org.x, label=two)"
                ),
                rule("file", "one", 12, "\"/with space, and comma\" r"),
                rule(
                    "signal",
                    "one",
                    13,
                    "priority=5 signal peer=@{profile_name}"
                ),
                rule("change_profile", "one", 14, "change_profile -> two"),
                rule("network", "one//child", 16, "network inet stream"),
                rule("ptrace", "one//hat", 18, "ptrace"),
                rule("userns", "/usr/bin/two", 20, "userns"),
            ]
        );
    }

    #[test]
    fn a_block_may_be_empty() {
        let main = "profile a {}\nprofile b { ^hat {} signal, }\n";
        assert_eq!(read(main, ""), [rule("signal", "b", 2, "signal")]);
        assert_eq!(read("profile a {}", ""), []);
    }

    #[test]
    fn what_is_included_belongs_to_who_includes_it() {
        let main = "profile a {\n  #include <abs>\n  include if exists <none>\n  mount,\n}\n";
        let found = [
            rule("unix", "a", 2, "unix (send)"),
            rule("mount", "a", 4, "mount"),
        ];
        assert_eq!(read(main, "# x\nunix (send),\n"), found);
        let gone = source(Path::new("/nowhere/profile"), Path::new("/nowhere"));
        assert_eq!(gone.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_that_includes_itself_is_read_once_and_no_chain_goes_on_for_ever() {
        let main = "profile a {\n  include <abs>\n}\n";
        assert_eq!(
            read(main, "include <abs>\nunix,\n"),
            [rule("unix", "a", 2, "unix")]
        );
        let main = "profile a {\n  #include < abs > #include if exists <none>\n}\n";
        assert_eq!(read(main, "unix,\n"), [rule("unix", "a", 1, "unix")]);
        let dir = tempfile::tempdir().unwrap();
        for at in 0..40 {
            let text = format!("include <{}>\n", at + 1);
            fs::write(dir.path().join(at.to_string()), text).unwrap();
        }
        let deep = source(&dir.path().join("0"), dir.path());
        assert!(deep.unwrap_err().to_string().contains("too deep"));
    }

    #[test]
    fn a_rule_ends_in_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let [main, abs] = ["main", "abs"].map(|name| dir.path().join(name));
        fs::write(&main, "profile a {\n  include <abs>\n  ,\n}\n").unwrap();
        let read = |text: &str| {
            fs::write(&abs, text).unwrap();
            source(&main, dir.path())
        };
        assert!(
            read("\nnetwork inet")
                .unwrap_err()
                .to_string()
                .contains("abs:2")
        );
        assert!(read("network inet,").is_ok());
        assert!(read("@{X} = /a").is_ok());
    }

    #[test]
    fn what_is_included_by_a_path_of_its_own_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let [main, abs] = ["main", "abs"].map(|name| dir.path().join(name));
        fs::write(&abs, "unix,\n").unwrap();
        let text = format!("profile a {{\n  include \"{}\"\n}}\n", abs.display());
        fs::write(&main, text).unwrap();
        let found = source(&main, Path::new("/nowhere")).unwrap();
        assert_eq!(found.statements.len(), 1);
        assert_eq!(found.elsewhere, [abs]);
    }

    #[test]
    fn a_rule_says_what_its_own_qualifiers_and_its_blocks_say() {
        let main = "profile a {
  deny unix,
  deny { network(create) inet, }
  audit { allow mount, }
  priority = 5 prompt signal,
  owner priority=-1 deny /x r,
  if $X { deny ptrace, }
  userns }
";
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("main");
        fs::write(&file, main).unwrap();
        let found = source(&file, dir.path()).unwrap();
        let told = found.statements.iter().map(|s| (s.class.as_str(), s.says));
        assert_eq!(
            told.collect::<Vec<_>>(),
            [
                ("unix", Says::Denied),
                ("network", Says::Denied),
                ("mount", Says::Allowed),
                ("signal", Says::Asked),
                ("file", Says::Denied),
                ("ptrace", Says::Denied),
                ("userns", Says::Allowed),
            ]
        );
        let spans = found.statements.iter().map(|s| &main[s.span.clone()]);
        let ends: Vec<_> = spans.map(str::trim_end).collect();
        assert_eq!(ends[1], "network(create) inet,");
        assert_eq!(ends[6], "userns");
        assert_eq!(found.heads[0].text, "profile a");
    }

    #[test]
    fn a_block_has_room_before_its_bracket() {
        let dir = tempfile::tempdir().unwrap();
        let main = dir.path().join("main");
        let text =
            "@{X}=/a\nprofile a {\n  include if exists <local/a>\n  profile b { mount, }\n}\n";
        fs::write(&main, text).unwrap();
        let blocks = source(&main, dir.path()).unwrap().blocks;
        let told = blocks.iter().map(|b| (b.profile.as_str(), b.line));
        assert_eq!(told.collect::<Vec<_>>(), [("a//b", 4), ("a", 2)]);
        assert!(blocks[0].locals.is_empty());
        assert_eq!(blocks[1].locals, [dir.path().join("local/a")]);
        assert!(text[blocks[1].begin..].starts_with("profile a {"));
        assert_eq!(&text[blocks[0].end..], "}\n}\n");
        assert_eq!(&text[blocks[1].end..], "}\n");
    }

    #[test]
    fn a_condition_is_no_profile() {
        let main = "profile a {\n  if $X {\n    mqueue,\n  } else {\n    all,\n  }\n}\n";
        let found = [rule("mqueue", "a", 3, "mqueue"), rule("all", "a", 5, "all")];
        assert_eq!(read(main, ""), found);
    }
}
