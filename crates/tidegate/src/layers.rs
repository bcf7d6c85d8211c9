//! The modules of this program, of the daemon and of the libraries for both depend on one another in one direction: no chain of
//! `use crate::` leads back to where it began. What a crate's root itself has no module uses, as the root uses all modules.
//! Those of the crates `bundle` and `policy` are in layers, and each uses what is below it. And the daemon and the exporter link
//! no more crates than they are meant to: no compiler of policies is among them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The modules that each top-level module uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The layers of the crate `bundle`, the lowest first. No model uses another one, but for the policy, which has profiles and a
/// SELinux policy in it: so these two are below it, and capability files above. The format of bundles has them all, so nothing
/// uses it.
const BUNDLE: [&[&str]; 7] = [
    &["attrs", "automaton", "bounded", "escape", "limits"],
    &["builtin", "layout", "names", "profile", "te"],
    &["policy"],
    &["lookup"],
    &["network"],
    &["caps"],
    &["format"],
];

/// The layers of the crate `policy`, the lowest first. No model's compiler uses another one.
const POLICY: [&[&str]; 3] = [
    &[
        "alias",
        "automaton",
        "effects",
        "finding",
        "lexer",
        "network",
        "presets",
        "similar",
        "text",
    ],
    &["words"],
    &["caps", "map", "profile", "te"],
];

/// Returns the modules that a text names after `crate::`, those in braces, too.
fn named(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    for (_, after) in code
        .match_indices("crate::")
        .map(|(at, name)| code.split_at(at + name.len()))
    {
        let Some(list) = after.strip_prefix('{') else {
            found.extend(word(after));
            continue;
        };
        let mut depth = 0;
        let mut begins = true;
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                c if begins && !c.is_whitespace() => {
                    begins = false;
                    found.extend(word(&list[at..]));
                }
                _ => {}
            }
        }
    }
    found
}

fn word(text: &str) -> Option<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let word = text.split(|c| !is_part(c)).next()?;
    (!word.is_empty()).then(|| word.to_owned())
}

/// Adds the files below a directory to a module's uses, but for files of tests, which may look at the crate from outside.
fn add(graph: &mut Graph, module: &str, path: &Path) {
    graph.entry(module.to_owned()).or_default();
    let name = path.file_stem().unwrap().to_string_lossy();
    if name == "tests" || name.ends_with("_tests") {
        return;
    }
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            add(graph, module, &entry.unwrap().path());
        }
        return;
    }
    let mut uses = named(&fs::read_to_string(path).unwrap());
    uses.remove(module);
    graph.entry(module.to_owned()).or_default().extend(uses);
}

fn graph(sources: &Path) -> Graph {
    let mut graph = Graph::new();
    for entry in fs::read_dir(sources).unwrap() {
        let path = entry.unwrap().path();
        let module = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if !["main", "lib", "layers"].contains(&&*module) {
            add(&mut graph, &module, &path);
        }
    }
    graph
}

/// Returns the modules from which a chain of uses leads into a cycle; none, if there is no cycle.
fn cycle(mut graph: Graph) -> Vec<String> {
    loop {
        let before = graph.len();
        let known: BTreeSet<String> = graph.keys().cloned().collect();
        graph.retain(|_, uses| uses.iter().any(|used| known.contains(used)));
        if graph.len() == before {
            return graph.into_keys().collect();
        }
    }
}

/// Returns the uses that lead out of a layer and not into one below it, and the modules that are in no layer.
fn upward(graph: &Graph, layers: &[&[&str]]) -> Vec<String> {
    let height = |name: &str| layers.iter().position(|layer| layer.contains(&name));
    let mut found = Vec::new();
    for (module, uses) in graph {
        if height(module).is_none() {
            found.push(format!("{module} is in no layer"));
        }
        let above = uses.iter().filter(|used| height(used) >= height(module));
        found.extend(above.map(|used| format!("{module} uses {used}")));
    }
    found
}

/// Returns the uses of what is no module: the crate's root has it.
fn of_root(graph: &Graph) -> Vec<String> {
    let uses = graph
        .iter()
        .flat_map(|(module, uses)| uses.iter().map(move |used| (module, used)));
    uses.filter(|(_, used)| !graph.contains_key(*used))
        .map(|(module, used)| format!("{module} uses crate::{used}"))
        .collect()
}

#[test]
fn names_are_found_in_all_forms() {
    let text =
        "use crate::a::B;\nuse crate::{b, c::{d, e}, f};\n// crate::g\nlet x = crate::h::i();\n";
    let found: Vec<String> = named(text).into_iter().collect();
    assert_eq!(found, ["a", "b", "c", "f", "h"]);
}

#[test]
fn a_cycle_is_found() {
    let of = |name: &str, uses: &[&str]| {
        let uses = uses.iter().map(|&name| name.to_owned()).collect();
        (name.to_owned(), uses)
    };
    let all = [
        of("a", &["b"]),
        of("b", &["c"]),
        of("c", &["b"]),
        of("d", &[]),
    ];
    assert_eq!(cycle(all.into_iter().collect()), ["a", "b", "c"]);
    let none = [of("a", &["b"]), of("b", &["d"]), of("d", &[])];
    assert!(cycle(none.into_iter().collect()).is_empty());
}

#[test]
fn a_use_of_an_upper_layer_or_of_ones_own_is_found() {
    let uses = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let graph = Graph::from([
        ("a".to_owned(), uses(&["b"])),
        ("b".to_owned(), uses(&[])),
        ("c".to_owned(), uses(&["a", "d"])),
        ("d".to_owned(), uses(&["b"])),
        ("e".to_owned(), uses(&[])),
    ]);
    assert!(upward(&graph, &[&["b", "e"], &["a", "d"], &["c"]]).is_empty());
    assert_eq!(
        upward(&graph, &[&["a"], &["b", "c", "d"]]),
        ["a uses b", "c uses d", "d uses b", "e is in no layer"]
    );
}

#[test]
fn a_name_of_the_root_is_found() {
    let uses = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let graph = Graph::from([
        ("a".to_owned(), uses(&["b", "Shared"])),
        ("b".to_owned(), uses(&[])),
    ]);
    assert_eq!(of_root(&graph), ["a uses crate::Shared"]);
}

#[test]
fn no_module_of_policies_or_of_their_compilers_uses_an_upper_layer() {
    let crates: [(&str, &[&[&str]]); 2] = [("bundle", &BUNDLE), ("policy", &POLICY)];
    for (name, layers) in crates {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../{name}/src"));
        let found = upward(&graph(&sources), layers);
        assert!(found.is_empty(), "in {name}: {found:?}");
    }
}

#[test]
fn no_module_is_used_by_what_it_uses() {
    for sources in [
        "src",
        "../audit/src",
        "../bundle/src",
        "../policy/src",
        "../remedy/src",
        "../tidegated/src",
    ] {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join(sources);
        let graph = graph(&sources);
        let of_root = of_root(&graph);
        assert!(of_root.is_empty(), "in {}: {of_root:?}", sources.display());
        let found = cycle(graph);
        assert!(found.is_empty(), "in {}: {found:?}", sources.display());
    }
}

/// Returns what a crate of the tree links by its manifest: not what its tests and its build need besides.
fn linked(name: &str) -> BTreeSet<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifest = fs::read_to_string(crates.join(name).join("Cargo.toml")).unwrap();
    let mut found = BTreeSet::new();
    let mut is_linked = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_linked = line == "[dependencies]" || line.ends_with(".dependencies]");
        } else if is_linked && !line.starts_with('#') {
            found.extend(line.split(['.', ' ', '=']).next().map(str::to_owned));
        }
    }
    found.remove("");
    found
}

/// Returns all that a crate of the tree links, itself or by another crate of the tree.
fn all_linked(name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut left = vec![name.to_owned()];
    while let Some(name) = left.pop() {
        for one in linked(&name) {
            let own = one.strip_prefix("tidegate-").map(str::to_owned);
            if found.insert(one) {
                left.extend(own);
            }
        }
    }
    found
}

#[test]
fn no_compiler_is_linked_into_the_daemon_or_the_exporter() {
    let own = |name: &str| -> Vec<String> {
        let all = all_linked(name).into_iter();
        let own = all.filter_map(|one| one.strip_prefix("tidegate-").map(str::to_owned));
        own.collect()
    };
    assert_eq!(
        own("tidegated"),
        [
            "audit",
            "bundle",
            "census",
            "flask",
            "lava",
            "monitor",
            "protocol",
            "recording"
        ]
    );
    assert_eq!(own("exporter"), ["manual", "protocol"]);
    assert!(own("bundle").is_empty());
    // What reads policies as text, and what reads command lines.
    let others = all_linked("tidegated");
    for one in [
        "clap",
        "logos",
        "regex-automata",
        "regex-syntax",
        "strsim",
        "tempfile",
    ] {
        assert!(!others.contains(one), "{one} is linked into the daemon");
    }
    assert!(own("tidegate").contains(&"policy".to_owned()));
}
