//! What a process holds, and keeps or loses when a boolean of a SELinux policy is set: tests/te-live/run.sh plays it in a
//! virtual machine, where Tidegate enforces live.cil.

mod cost;
mod domain;
mod holder;
mod scenes;

/// Where its files are.
fn place(name: &str) -> String {
    format!("/root/live/{name}")
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["hold"] => holder::run(),
        ["inherited", fd] => {
            let read = fd
                .parse()
                .map_err(std::io::Error::other)
                .and_then(holder::inherited);
            println!(
                "{}",
                read.map_or_else(
                    |e| e.raw_os_error().unwrap_or(0).to_string(),
                    |()| "ok".into()
                )
            );
        }
        ["play"] => std::process::exit(scenes::play()),
        ["cost"] => {
            scenes::make();
            cost::measure();
        }
        _ => {
            eprintln!("te-live play | cost");
            std::process::exit(2);
        }
    }
}
