//! Random capability files, over a few files and sockets.

use fastrand::Rng;
use tidegate_bundle::caps::Capabilities;
use tidegate_policy::caps;

/// What is played in.
pub const ROOT: &str = "/srv/random";
/// Files that are there from the beginning.
pub const FILES: [&str; 4] = ["a", "b", "c", "d"];
/// Names that are made.
pub const NEW: [&str; 2] = ["new", "newer"];
/// Ports that somebody listens at.
pub const PORTS: [u16; 2] = [7001, 7002];
/// Unix sockets, the same.
pub const SOCKETS: [&str; 2] = ["s", "t"];
/// How long what expires is good for, in seconds.
pub const EXPIRES: u64 = 8;
/// Subjects; programs bring the later two.
pub const SUBJECTS: [&str; 3] = ["host", "tool", "plug"];

/// What each subject has, so that an actor runs as it.
pub fn base() -> String {
    let programs =
        ["tool", "plug"].map(|name| format!("    program {ROOT}/bin/{name} execute as {name}\n"));
    format!(
        "    file /proc/*/maps read\n    file /dev/null read write\n    connect unix /run/tidegate/tidegate.sock\n    \
         program {ROOT}/bin/same execute\n{}",
        programs.concat()
    )
}

fn line(rng: &mut Rng, is_counted: bool, has_time: bool) -> String {
    let limit = match rng.u32(..10) {
        0..2 if has_time => format!(" expires {EXPIRES}s"),
        2..4 if is_counted => format!(" uses {}", rng.u32(1..5)),
        _ => String::new(),
    };
    match rng.u32(..10) {
        0 => format!(
            "    connect tcp 127.0.0.1 port {}{limit}\n",
            PORTS[rng.usize(..2)]
        ),
        1 => format!("    connect tcp loopback port 7001-7002{limit}\n"),
        2 => format!(
            "    connect unix {ROOT}/run/{}{limit}\n",
            ["s", "t", "*"][rng.usize(..3)]
        ),
        _ => {
            let pattern = ["a", "b", "c", "d", "*", "[ab]", "{a,c}", "new*", "?"][rng.usize(..9)];
            let words = ["read", "write", "append", "create", "lock"];
            let mut own: Vec<&str> = words.into_iter().filter(|_| rng.bool()).collect();
            if own.is_empty() {
                own.push("read");
            }
            format!("    file {ROOT}/in/{pattern} {}{limit}\n", own.join(" "))
        }
    }
}

/// A file's text, and what it compiles to. What the language refuses is drawn again.
pub fn draw(rng: &mut Rng, path: &str) -> (String, Capabilities) {
    // to wait takes long
    let has_time = rng.u32(..4) == 0;
    loop {
        let mut text = String::new();
        for subject in SUBJECTS {
            let is_counted = rng.u32(..3) > 0;
            text += &format!("subject {subject} {{\n{}", base());
            for _ in 0..rng.usize(8..16) {
                text += &line(rng, is_counted, has_time);
            }
            if is_counted {
                text += "    control file read write append\n    control tcp read write\n    control unix read write\n";
            }
            text += "}\n";
        }
        if let Ok(compiled) = caps::compile_str(path, &text) {
            return (text, compiled.capabilities);
        }
    }
}

/// Is all there that actors run by? What was drawn may be left out.
pub fn is_whole(text: &str) -> bool {
    let drawn = [
        format!("    file {ROOT}/in/"),
        format!("    connect unix {ROOT}/run/"),
        "    connect tcp ".into(),
        "    control ".into(),
    ];
    let is_drawn = |line: &&str| drawn.iter().any(|start| line.starts_with(start));
    let left: String = text
        .lines()
        .filter(|line| !is_drawn(line))
        .map(|line| format!("{line}\n"))
        .collect();
    let of = |subject| format!("subject {subject} {{\n{}}}\n", base());
    left == SUBJECTS.map(of).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_drawn_may_be_left_out_and_nothing_else() {
        let mut rng = Rng::with_seed(1);
        let (text, _) = draw(&mut rng, "random.caps");
        assert!(is_whole(&text));
        for (at, left_out) in text.lines().enumerate() {
            let lines = text.lines().enumerate().filter(|(other, _)| *other != at);
            let left: Vec<&str> = lines.map(|(_, line)| line).collect();
            let has_root = left_out.contains(ROOT) && !left_out.contains("program");
            let is_drawn = has_root || left_out.contains("tcp") || left_out.contains("control");
            assert_eq!(is_whole(&(left.join("\n") + "\n")), is_drawn, "{left_out}");
        }
    }
}
