//! The maps and the capability files in the documentation compile.

use std::fs;
use std::path::{Path, PathBuf};

use miette::Report;
use tidegate_policy::{caps, map};

/// All pages below a directory.
fn pages(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory of the documentation") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
    found
}

/// The blocks of code of a page: between fences, or indented by four blanks. Some are empty; a synopsis, as `text`, is none.
fn blocks(page: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    let (mut fenced, mut is_text) = (false, false);
    for line in page.lines() {
        let is_fence = line.trim_start().starts_with("```");
        let code = if fenced {
            Some(line)
        } else {
            line.strip_prefix("    ")
        };
        if is_fence {
            is_text = line.trim() == "```text";
        }
        if let Some(code) = code.filter(|_| !is_fence && !is_text) {
            let block = blocks.last_mut().expect("there is always one");
            block.push_str(code);
            block.push('\n');
        } else {
            blocks.push(String::new());
        }
        fenced ^= is_fence;
    }
    blocks
}

/// The first word of a block that is not in a comment.
fn first_word(block: &str) -> &str {
    let mut lines = block.lines().filter(|line| !line.starts_with('#'));
    let word = lines.find_map(|line| line.split_whitespace().next());
    word.unwrap_or_default()
}

#[test]
fn each_example_compiles() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let (mut maps, mut files) = (0, 0);
    for page in pages(&docs) {
        let name = page.display();
        let text = fs::read_to_string(&page).expect("a page");
        for block in blocks(&text) {
            match first_word(&block) {
                "include" | "levels" => {
                    maps += 1;
                    if let Err(errors) = map::compile_str("example", &block) {
                        panic!("{name}: {:?}", Report::new(errors));
                    }
                }
                "subject" => {
                    files += 1;
                    if let Err(errors) = caps::compile_str("example.caps", &block) {
                        panic!("{name}: {:?}", Report::new(errors));
                    }
                }
                _ => {}
            }
        }
    }
    // pages of another form are not to leave this without an example
    assert!(
        maps >= 7 && files >= 3,
        "{maps} maps and {files} capability files"
    );
}
