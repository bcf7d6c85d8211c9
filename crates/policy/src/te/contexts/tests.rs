//! The automata against a matcher that asks one line after another as libselinux does, and what is refused.

use proptest::prelude::*;
use proptest::sample::select;
use regex_automata::nfa::thompson::{self, pikevm::PikeVM};
use regex_automata::util::syntax;

use tidegate_bundle::te::contexts::{Automaton, Found, Kind, Said};

use super::compile::automata_with;
use super::spec::Spec;
use super::*;

fn text(name: &str, text: &str) -> Text {
    Text {
        name: name.into(),
        text: text.into(),
    }
}

fn of(policy: &str) -> Texts {
    Texts {
        policy: text("file_contexts", policy),
        ..Texts::default()
    }
}

#[track_caller]
fn says(texts: &Texts, wanted: &[(&str, &str)]) {
    let contexts = compile(texts).unwrap();
    for (path, name) in wanted {
        let found = contexts.lookup(path.as_bytes(), Kind::Regular);
        let got = match found {
            Found { line: None, .. } => "nothing",
            Found { context: None, .. } => "none",
            Found {
                context: Some(context),
                ..
            } => context.strip_prefix("u:r:").unwrap(),
        };
        assert_eq!(got, *name, "{path:?}");
    }
}

#[test]
fn the_last_line_counts_and_one_path_before_any_pattern() {
    says(
        &of(
            "/a/b u:r:exact\n/.* u:r:all\n/a(/.*)? -- u:r:file\n/a(/.*)? -d u:r:dir\n/b(/.*)? <<none>>\n",
        ),
        &[
            ("/", "all"),
            ("/a", "file"),
            ("/a/b", "exact"),
            ("/a/b/c", "file"),
            ("/ab", "all"),
            ("/b/x", "none"),
        ],
    );
    let twice = of("/a u:r:any\n/a -- u:r:first\n/a -- u:r:second\n/b u:r:first\n/b u:r:second\n");
    says(
        &twice,
        &[("/a", "first"), ("/b", "first"), ("/c", "nothing")],
    );
}

#[test]
fn other_files_override_patterns_but_not_lines_of_one_path() {
    let texts = Texts {
        homedirs: text("homedirs", "/a.* u:r:home\n/b u:r:home\n"),
        local: text("local", "/a/.* u:r:local\n/b u:r:local\n"),
        ..of("/a/x.* u:r:policy\n/b u:r:policy\n")
    };
    says(
        &texts,
        &[("/a", "home"), ("/a/x", "local"), ("/b", "policy")],
    );
}

#[test]
fn a_none_that_is_asked_first_ends_the_search() {
    let texts = of("/a/b/.* <<none>>\n/a/.* u:r:later\n");
    says(&texts, &[("/a/b/c", "none"), ("/a/c", "later")]);
    let hidden = of("/a/b/.* <<none>>\n/a/b/c.* u:r:hides\n/a/.* u:r:later\n");
    says(&hidden, &[("/a/b/c", "later"), ("/a/b/d", "none")]);
}

#[test]
fn a_pattern_is_asked_only_below_its_stems() {
    says(
        &of("/a/b/?c.* u:r:t\n"),
        &[("/a/b/c", "t"), ("/a/bc", "nothing")],
    );
}

#[test]
fn anchors_belong_to_the_first_and_last_alternative() {
    let wanted = [
        ("/a.", "t"),
        ("/a.x/y", "t"),
        ("/z/b-/z", "t"),
        ("/z/c", "t"),
        ("/c\n", "t"),
        ("/z/c/z", "nothing"),
        ("/z/a.", "nothing"),
    ];
    says(&of("/a\\.|/b-|/c\\x20?  u:r:t\n"), &wanted[..1]);
    says(&of("[/]a\\.|[/]b-|[/]c u:r:t\n"), &wanted);
}

#[test]
fn a_line_feed_at_the_end_is_let_be_by_patterns() {
    let texts = of("/a u:r:one\n/b.? u:r:t\n/c($|/x) u:r:t\n");
    says(
        &texts,
        &[
            ("/a\n", "nothing"),
            ("/b\n", "t"),
            ("/bx\n", "t"),
            ("/bx\n\n", "nothing"),
            ("/c\n", "t"),
        ],
    );
}

#[test]
fn substitutions_apply_once_each_the_first_that_fits() {
    let texts = Texts {
        subs_dist: text(
            "subs_dist",
            "# comment\n/lib /usr/lib\n/lib/x /y\n/r /\n/usr/lib/own /z z\n",
        ),
        subs: text("subs", "/local /lib\n/usr/lib/own /lib/own\n"),
        ..of("/usr/lib(/.*)? u:r:lib\n/y.* u:r:y\n/z.* u:r:z\n/ u:r:root\n/libx.* u:r:libx\n")
    };
    says(
        &texts,
        &[
            ("/lib", "lib"),
            ("/lib/x", "lib"),
            ("/libx", "libx"),
            ("/r", "root"),
            ("/r/usr/lib/q", "lib"),
            ("/r/lib", "nothing"),
            ("/local/q", "lib"),
            ("/usr/lib/own/q", "lib"),
            ("/usr/lib/owner", "lib"),
        ],
    );
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    for (line, message) in [
        ("/a", "a pattern without a context"),
        ("/a -x u:r:t", "`-x` is not a type of file"),
        ("/a u:r", "`u:r` has not the form of a context"),
        ("/a u:r:t:", "`u:r:t:` has not the form of a context"),
        ("/é u:r:t", "a character that is not ASCII"),
        ("/a( u:r:t", "the pattern has a group that nothing closes"),
        ("/a) u:r:t", "the pattern has a `)` that closes no group"),
        ("/a[ u:r:t", "the pattern has a class that nothing closes"),
        ("/a[b-a] u:r:t", "the pattern has a range whose ends"),
        ("/a[[:no:]] u:r:t", "the pattern has an unknown class"),
        (
            "/a** u:r:t",
            "the pattern has a quantifier with nothing to repeat",
        ),
        (
            "/^* u:r:t",
            "the pattern has a quantifier with nothing to repeat",
        ),
        ("/a{2,1} u:r:t", "the pattern has a quantifier that counts"),
        (
            "/a$b u:r:t",
            "the pattern has something that has to stand behind",
        ),
        (
            "/a\\ u:r:t",
            "the pattern has a backslash with nothing behind it",
        ),
        ("/a\\x1 u:r:t", "the pattern has `\\x` without two"),
        ("/a*+ u:r:t", "the pattern has a possessive quantifier"),
        ("/(?=a) u:r:t", "the pattern has a group of a special kind"),
        ("/(*F) u:r:t", "the pattern has a verb"),
        (
            "/(a)\\1 u:r:t",
            "the pattern has a back reference, which no automaton",
        ),
        (
            "/\\bx u:r:t",
            "the pattern has an assertion, which no automaton",
        ),
        ("/\\Qx u:r:t", "the pattern has an escape that is not known"),
        (
            "/((a{999}){999}){999} u:r:t",
            "the pattern repeats too much",
        ),
    ] {
        let errors = compile(&of(&format!("# first\n{line}\n"))).unwrap_err();
        let [finding] = &errors.0[..] else {
            panic!("{errors:?}");
        };
        let shown = finding.to_string();
        let expected = format!("file_contexts:2: {message}");
        assert!(shown.starts_with(&expected), "{shown}");
    }
    for line in ["/a", "/a/ /b", "/a b", "/a//b /c"] {
        let texts = Texts {
            subs: text("subs", line),
            ..Texts::default()
        };
        let errors = compile(&texts).unwrap_err();
        assert!(errors.0[0].to_string().starts_with("subs:1: "));
    }
}

#[test]
fn a_missing_file_is_told_unless_it_need_not_be_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file_contexts");
    let errors = compile_files(&path).unwrap_err();
    assert!(
        errors.0[0]
            .to_string()
            .contains("file_contexts: cannot be read")
    );
    std::fs::write(&path, "/.* u:r:t\n").unwrap();
    let contexts = compile_files(&path).unwrap();
    assert_eq!(contexts.lookup(b"/x", Kind::Fifo).context, Some("u:r:t"));
}

/// Of two lines that both say `<<none>>` the one with more stems counts, which is asked first.
#[test]
fn a_none_that_is_asked_first_hides_a_later_one() {
    let mut read = read::Read::default();
    read.contexts(&text("file_contexts", "/b/a{1,2} <<none>>\n/.* <<none>>\n"));
    for slack in [0, 100_000] {
        let automata = automata_with(slack, &read.specs, [&[], &[]]);
        let said = said(&automata.unwrap().unwrap(), b"/b/a", Kind::Regular);
        assert_eq!(said.line(), Some(0));
    }
}

/// What automata say together, each over those before it.
fn said(automata: &[Automaton], path: &[u8], kind: Kind) -> Said {
    automata.iter().fold(Said::default(), |before, automaton| {
        automaton.walk(path)[kind as usize].over(before)
    })
}

/// Pieces of patterns, in a syntax that another parser reads as PCRE2 does.
const PIECES: &[&str] = &[
    "a", "b", "/", "/a", "/b", "/a/b", "/a/", "(/.*)?", ".*", "[^/]*", "[ab]", "(a|b/)?", "a+",
    "(?:/b)*", "\\.", "/a{1,2}", "(.*/)?", "a?", "$",
];

/// Lines of which the last pieces of patterns are anchors only, if any are.
fn lines() -> impl Strategy<Value = Vec<(String, Option<Kind>, bool)>> {
    let pattern = prop::collection::vec(select(PIECES), 1..5).prop_map(|pieces| {
        let last = pieces.len() - 1;
        let kept = pieces
            .iter()
            .enumerate()
            .filter(|(at, piece)| *at == last || **piece != "$");
        format!("/{}", kept.map(|(_, piece)| *piece).collect::<String>())
    });
    let kind = prop::option::weighted(0.3, select(&Kind::ALL[..2]));
    prop::collection::vec((pattern, kind, prop::bool::weighted(0.2)), 1..30)
}

/// `lookup_check_node()` of libselinux 3.8: the number of the line that counts, by asking one after another.
fn naive(specs: &[Spec], patterns: &[Matcher], path: &[u8], kind: Kind) -> Option<usize> {
    let asked = |at: &usize| {
        let spec = &specs[*at];
        spec.covers(kind) && path.starts_with(&spec.prefix) && patterns[*at].matches(path)
    };
    let literals = (0..specs.len())
        .filter(|&at| specs[at].is_literal())
        .filter(asked);
    if let Some(literal) = literals.min_by_key(|&at| (specs[at].kind.is_none(), at)) {
        return Some(literal);
    }
    let mut best = None;
    for rank in (1..=4).rev() {
        let node = (0..specs.len()).rev().filter(|&at| specs[at].rank == rank);
        let later = node.take_while(|&at| best.is_none_or(|best| at > best));
        if let Some(found) = later.filter(|&at| !specs[at].is_literal()).find(asked) {
            best = Some(found);
            if specs[found].context.is_none() {
                break;
            }
        }
    }
    best
}

/// A line's pattern as another engine matches it: `^` and `$` around it, where `$` lets a line feed be.
enum Matcher {
    Exact(Vec<u8>),
    Pattern(PikeVM),
}

impl Matcher {
    fn new(text: &str) -> Matcher {
        if let Some(path) = spec::literal(text.as_bytes()) {
            return Matcher::Exact(path);
        }
        let pattern = format!("(?s-u)^(?:{})(?:\\n?\\z)", text.trim_end_matches('$'));
        let engine = PikeVM::builder()
            .syntax(syntax::Config::new().utf8(false))
            .thompson(thompson::Config::new().utf8(false))
            .build(&pattern);
        Matcher::Pattern(engine.unwrap())
    }

    fn matches(&self, path: &[u8]) -> bool {
        match self {
            Matcher::Exact(own) => own == path,
            Matcher::Pattern(engine) => engine.is_match(&mut engine.create_cache(), path),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However lines are parted among automata, what they say together is what a matcher says that asks each.
    #[test]
    fn automata_say_what_lines_say(lines in lines(), paths in prop::collection::vec("(/[ab.]{1,2}){1,5}\n?", 30)) {
        let mut policy = String::new();
        for (number, (pattern, kind, none)) in lines.iter().enumerate() {
            let kind = match kind {
                None => "",
                Some(Kind::Regular) => " --",
                Some(_) => " -d",
            };
            let context = if *none { "<<none>>".into() } else { format!("u:r:t{number}") };
            policy += &format!("{pattern}{kind} {context}\n");
        }
        let mut read = read::Read::default();
        read.contexts(&text("file_contexts", &policy));
        prop_assert!(read.findings.is_empty());
        let patterns: Vec<Matcher> = lines.iter().map(|(pattern, ..)| Matcher::new(pattern)).collect();
        for slack in [0, 100_000] {
            let automata = automata_with(slack, &read.specs, [&[], &[]]).unwrap().unwrap();
            let contexts = FileContexts { automata, lines: read.lines.clone(), ..FileContexts::default() };
            for path in &paths {
                for kind in [Kind::Regular, Kind::Directory, Kind::Socket] {
                    let said = said(&contexts.automata, path.as_bytes(), kind);
                    let wanted = naive(&read.specs, &patterns, path.as_bytes(), kind);
                    prop_assert_eq!(said.line().map(usize::from), wanted, "{} {:?}", path, kind);
                }
            }
        }
    }
}
