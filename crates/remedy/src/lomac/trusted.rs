//! Programs that are never to be trusted, whatever they were refused.
//!
//! `nodemote`, `nonetdemote` and `permissive` are said of a program's file. An
//! interpreter or a shell does what somebody else has written: trust in it is trust in
//! every script on the machine, those of the network included.

use super::name::split;

/// What a name begins with, before its version.
const INTERPRETERS: [&str; 44] = [
    "ash",
    "awk",
    "bash",
    "bpftrace",
    "bun",
    "busybox",
    "csh",
    "dash",
    "deno",
    "dotnet",
    "elvish",
    "emacs",
    "emacs-nox",
    "erl",
    "escript",
    "expect",
    "fish",
    "gawk",
    "gdb",
    "ghc",
    "guile",
    "java",
    "julia",
    "ksh",
    "lua",
    "luajit",
    "mawk",
    "mksh",
    "mono",
    "node",
    "nodejs",
    "nu",
    "ocaml",
    "octave",
    "perl",
    "php",
    "pwsh",
    "python",
    "R",
    "ruby",
    "sh",
    "tclsh",
    "toybox",
    "zsh",
];

/// Others that run what they are given in their own process.
const BEGINNINGS: [&str; 5] = ["ld-linux", "ld-musl", "qemu-", "wine", "pypy"];

/// Whether a program runs what others have written.
pub fn is_interpreter(program: &str) -> bool {
    let name = split(program).map_or(program, |(_, name)| name);
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    INTERPRETERS.contains(&stem)
        || INTERPRETERS.contains(&name)
        || BEGINNINGS.iter().any(|b| name.starts_with(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_in_every_version() {
        for program in [
            "/usr/bin/bash",
            "/usr/bin/python3.13",
            "/usr/bin/perl",
            "/usr/bin/node",
            "/usr/bin/lua5.4",
            "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
            "/usr/bin/ruby3.1",
            "/opt/R",
            "/usr/bin/php8.2",
            "/usr/bin/qemu-x86_64",
        ] {
            assert!(is_interpreter(program), "{program}");
        }
        for program in [
            "/usr/bin/ssh",
            "/usr/bin/git",
            "/usr/sbin/nginx",
            "/usr/bin/curl",
        ] {
            assert!(!is_interpreter(program), "{program}");
        }
    }
}
