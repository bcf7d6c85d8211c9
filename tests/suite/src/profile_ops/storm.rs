//! What a profile says of a path must be what its rules say of the path as it is now, however the
//! object came there: names are exchanged, linked, removed and mounted over, first with nothing else
//! going on, then while others rename and mount without a pause.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout};

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::profile_ops::ops::errno;
use crate::profile_ops::{System, itself, start};

/// The profile, which lets what is below `yes` be read, and nothing else.
const PROFILE: &str = "storm";
const YES: &str = "/srv/storm/yes";
const NO: &str = "/srv/storm/no";
const NOISE: &str = "/srv/noise";

/// What others do meanwhile.
pub const STORMS: &[&[&str]] = &[
    &[],
    &["rename"],
    &["move"],
    &["mount"],
    &["rename", "move", "mount"],
];

/// What is done to the very names that are looked at meanwhile.
const STIRS: [&str; 2] = ["exchange", "turn"];

/// A process that is confined and opens what it is told to, and how often it did as the path says.
struct Reader {
    child: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
    right: u32,
    wrong: u32,
}

impl Reader {
    fn new() -> io::Result<Self> {
        let mut child = start(System::Tidegate, PROFILE)?;
        Ok(Self {
            to: child.stdin.take().expect("a pipe"),
            from: BufReader::new(child.stdout.take().expect("a pipe")).lines(),
            child,
            right: 0,
            wrong: 0,
        })
    }

    /// Has this opened; what became of it.
    fn ask(&mut self, path: &str) -> io::Result<String> {
        writeln!(self.to, "look {path}")?;
        Ok(self.from.next().transpose()?.unwrap_or_default())
    }

    /// Has these opened, which are there; twice, so that the second time is remembered.
    fn look(&mut self, after: &str, paths: &[&str]) -> io::Result<()> {
        for path in paths.iter().chain(paths) {
            let verdict = self.ask(path)?;
            let allowed = Path::new(path).starts_with(YES);
            if verdict == if allowed { "ok" } else { "EACCES" } {
                self.right += 1;
            } else {
                self.wrong += 1;
                println!("after {after}: {path} is {verdict}");
            }
        }
        Ok(())
    }
}

/// Opens a path; what became of it.
pub fn look(path: &str) -> String {
    match File::open(path) {
        Ok(_) => "ok".into(),
        Err(e) => errno(e.raw_os_error().unwrap_or(255)),
    }
}

/// Plays it, as root, with Tidegate enforcing; each change is made as often as there are rounds.
pub fn play(rounds: u32) -> io::Result<()> {
    for dir in [YES, NO] {
        fs::create_dir_all(format!("{dir}/d"))?;
        fs::create_dir_all(format!("{dir}/m"))?;
        fs::write(format!("{dir}/d/f"), dir)?;
    }
    fs::create_dir_all(format!("{NOISE}/mount"))?;
    for dir in ["c", "d"] {
        fs::create_dir_all(format!("{NOISE}/{dir}"))?;
    }
    for file in ["a", "b"] {
        fs::write(format!("{NOISE}/{file}"), "")?;
    }
    for storm in STORMS {
        let noise: Vec<_> = storm.iter().map(|what| noisy(what)).collect();
        let mut reader = Reader::new()?;
        let done = (0..rounds)
            .try_for_each(|_| round(&mut reader))
            .and_then(|()| {
                STIRS
                    .iter()
                    .try_for_each(|how| stirred(&mut reader, how, rounds))
            });
        for child in noise {
            let mut child = child?;
            child.kill()?;
            child.wait()?;
        }
        done?;
        drop(reader.to);
        reader.child.wait()?;
        let told = if reader.wrong == 0 { "ok" } else { "wrong" };
        println!(
            "{} looks as the path says, {} not",
            reader.right, reader.wrong
        );
        println!("storm: {}={told}", storm.join(" and "));
    }
    Ok(())
}

fn noisy(what: &str) -> io::Result<Child> {
    itself().args(["noise", what]).spawn()
}

/// Renames, moves directories, mounts, or exchanges the names that are looked at, until it is killed.
pub fn noise(what: &str) -> io::Result<()> {
    let [file, other, dir, elsewhere, at] =
        ["a", "b", "c", "d", "mount"].map(|name| format!("{NOISE}/{name}"));
    let [yes, no] = [YES, NO].map(|dir| format!("{dir}/d/f"));
    loop {
        match what {
            "mount" => {
                let nothing = None::<&str>;
                let tmpfs = Some("tmpfs");
                mount(nothing, at.as_str(), tmpfs, MsFlags::empty(), nothing)?;
                umount2(at.as_str(), MntFlags::MNT_DETACH)?;
            }
            "exchange" => exchange(&yes, &no)?,
            "turn" => exchange(YES, NO)?,
            "move" => exchange(&dir, &elsewhere)?,
            _ => exchange(&file, &other)?,
        }
    }
}

/// Looks while the names are exchanged, whatever that says, must not leave anything behind that is not so.
fn stirred(reader: &mut Reader, how: &str, rounds: u32) -> io::Result<()> {
    let both = [YES, NO].map(|dir| format!("{dir}/d/f"));
    for _ in 0..rounds.div_ceil(10) {
        let mut child = noisy(how)?;
        for path in both.iter().cycle().take(60) {
            reader.ask(path)?;
        }
        child.kill()?;
        child.wait()?;
        reader.look(how, &both.each_ref().map(String::as_str))?;
    }
    Ok(())
}

fn exchange(a: &str, b: &str) -> io::Result<()> {
    Ok(renameat2(
        AT_FDCWD,
        a,
        AT_FDCWD,
        b,
        RenameFlags::RENAME_EXCHANGE,
    )?)
}

fn bind(what: &str, at: &str) -> io::Result<()> {
    let nothing = None::<&str>;
    Ok(mount(Some(what), at, nothing, MsFlags::MS_BIND, nothing)?)
}

/// In a mount namespace of its own, where it is not mounted on, renames what is a mountpoint elsewhere.
pub fn elsewhere(from: &str, to: &str) -> io::Result<()> {
    // SAFETY: no memory is touched.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let nothing = None::<&str>;
    let alone = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(nothing, "/", nothing, alone, nothing)?;
    umount2(from, MntFlags::MNT_DETACH)?;
    fs::rename(from, to)
}

/// Every change, each with looks at what it moved.
fn round(reader: &mut Reader) -> io::Result<()> {
    let [yes, no] = [YES, NO].map(|dir| format!("{dir}/d/f"));
    let both = [yes.as_str(), &no];
    reader.look("nothing", &both)?;
    exchange(&yes, &no)?;
    reader.look("an exchange of files", &both)?;
    exchange(YES, NO)?;
    reader.look("an exchange of their directories", &both)?;

    // a name at the address of one that was removed, perhaps
    let [new, other] = [YES, NO].map(|dir| format!("{dir}/d/g"));
    for (from, to) in [(&yes, &other), (&other, &new), (&new, &yes)] {
        fs::hard_link(from, to)?;
        fs::remove_file(from)?;
        reader.look("a link and a removal", &[to, &no])?;
    }
    for i in 0..4 {
        let [here, there] = [YES, NO].map(|dir| format!("{dir}/d/{i}"));
        for file in [&here, &there] {
            fs::write(file, "")?;
            reader.look("a creation", &[file])?;
            fs::remove_file(file)?;
        }
    }

    let [above, below] = [YES, NO].map(|dir| format!("{dir}/m"));
    for (what, at) in [(NO, &above), (YES, &below)] {
        bind(what, at)?;
        let through = format!("{at}/d/f");
        reader.look("a bind mount", &[&through, &yes, &no])?;
        umount2(at.as_str(), MntFlags::MNT_DETACH)?;
        reader.look("its end", &both)?;
    }

    // what is mounted on a file has its path by the file's name, which a process that does not see
    // the mount may move
    let [here, there] = [YES, NO].map(|dir| format!("{dir}/p"));
    fs::write(&here, "")?;
    bind(&yes, &here)?;
    reader.look("a bind mount of a file", &[&here])?;
    let moved = itself().args(["elsewhere", &here, &there]).status()?;
    if !moved.success() {
        return Err(io::Error::other("a mountpoint was not moved"));
    }
    reader.look("a move of its mountpoint", &[&there])?;
    umount2(there.as_str(), MntFlags::MNT_DETACH)?;
    fs::remove_file(&there)?;

    let calm = "/srv/calm";
    fs::rename("/srv/storm", calm)?;
    reader.look("a rename above", &[&format!("{calm}/yes/d/f")])?;
    fs::rename(calm, "/srv/storm")?;
    reader.look("a rename back", &both)
}
