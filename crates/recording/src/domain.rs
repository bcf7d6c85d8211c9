//! The `te` model's view of a recording: which process is in which domain by now, what has which
//! label, and what a SELinux policy would have refused.
//!
//! What is asked at a line, and in which order, is what kernel/te asks at the same hooks; decided is by the reference
//! ([`Decider`]). A recording lacks what its recorder is not told of: what sockets and names are asked about otherwise,
//! capabilities, attributes that are read, directories that are searched and read. What it lacks is not guessed.

use std::collections::HashMap;

use tidegate_bundle::te::Te;
use tidegate_bundle::te::contexts::Kind;
use tidegate_bundle::te::db::{Behavior, Context};
use tidegate_bundle::te::decide::Decider;

use crate::head::Filesystem;
use crate::label::parent;
use crate::line::{Act, Flags, Inode, Line, path_bytes};

/// What a SELinux policy would have refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TeRefusal {
    /// The operation, as an audit record would have named it.
    pub act: Act,
    /// The context of the process that asked.
    pub source: String,
    /// That of what it was about.
    pub target: String,
    /// The class.
    pub class: String,
    /// The permissions that are not allowed.
    pub permissions: Vec<String>,
    /// The object: a path, an address or a process.
    pub object: String,
}

/// The policy capability `genfs_seclabel_symlinks`: without it, links are what their filesystem is.
const GENFS_LINKS: usize = 6;

const INET: u32 = 2;
const INET6: u32 = 10;
const UNIX: u32 = 1;
const STREAM: u32 = 1;
const DGRAM: u32 = 2;
/// `IPPROTO_TCP`.
const TCP: u8 = 6;

/// The class of a directory, `st_mode & S_IFMT`.
const DIRECTORY: u32 = 0o040_000;

/// What a filesystem in memory of the kernel's is when no path leads to it.
const NOWHERE: Flags = Flags::UNKNOWN
    .union(Flags::CUT)
    .union(Flags::UNNAMED)
    .union(Flags::UNMOUNTED);

/// A policy's view.
pub struct Domains<'p> {
    te: &'p Te,
    decider: Decider<'p>,
    kernel: Context,
    unlabeled: Context,
    file: Context,
    filesystems: HashMap<u32, Filesystem>,
    /// What whoever has no recorded context begins in.
    enters: Option<Context>,
    /// Whether only what a command began was recorded.
    followed: bool,
    begun: bool,
    by: HashMap<u32, Context>,
    /// The context of a process that is about to execute something.
    next: HashMap<u32, Context>,
    given: HashMap<Inode, Context>,
    refused: Vec<TeRefusal>,
    /// Accesses whose object's label the recording does not tell.
    pub(crate) unsure: u64,
    /// Whether anybody was in a domain.
    pub(crate) any: bool,
}

impl<'p> Domains<'p> {
    /// Nobody yet. `enters`: the context that a command begins in, by its first execution as `tidegate run --context` has
    /// it, or, without a command, that everybody who was there is in, unless his own is recorded.
    pub fn new(
        te: &'p Te,
        filesystems: &[Filesystem],
        followed: bool,
        enters: Option<Context>,
    ) -> Domains<'p> {
        let initial = |name| te.db.initial_sid(name).cloned();
        // each policy has these
        let kernel = initial("kernel").unwrap_or_else(|| te.db.initial_sids[0].1.clone());
        Domains {
            te,
            decider: te.decider(),
            unlabeled: initial("unlabeled").unwrap_or_else(|| kernel.clone()),
            file: initial("file").unwrap_or_else(|| kernel.clone()),
            kernel,
            filesystems: filesystems.iter().map(|f| (f.dev, f.clone())).collect(),
            enters,
            followed,
            begun: false,
            by: HashMap::new(),
            next: HashMap::new(),
            given: HashMap::new(),
            refused: Vec::new(),
            unsure: 0,
            any: false,
        }
    }

    /// Takes a line in; what it would have been refused.
    pub(crate) fn feed(&mut self, line: &Line<'_>) -> &[TeRefusal] {
        self.refused.clear();
        match line.act {
            Act::Given if !line.context.is_empty() => {
                let context = self.context(&line.context);
                self.given.insert(line.inode, context);
            }
            Act::Process => self.was_there(line),
            Act::Begun => self.begun = true,
            Act::Fork if line.peer != 0 => self.fork(line),
            Act::Fork => self.forget(line.pid),
            Act::Started => {
                if let Some(context) = self.next.remove(&line.pid) {
                    self.any = true;
                    self.by.insert(line.pid, context);
                }
            }
            Act::Exit => self.forget(line.pid),
            Act::Exec if line.refused == 0 => self.exec(line),
            _ if line.refused == 0 && !line.class.is_empty() && line.act != Act::Held => {
                if let Some(source) = self.by.get(&line.pid).cloned() {
                    self.asked(line, &source);
                }
            }
            _ => {}
        }
        &self.refused
    }

    fn forget(&mut self, pid: u32) {
        self.by.remove(&pid);
        self.next.remove(&pid);
    }

    /// A context's text; what the policy does not know is without a label.
    fn context(&self, text: &str) -> Context {
        let known = self.te.db.context(text);
        known.unwrap_or_else(|_| self.unlabeled.clone())
    }

    fn was_there(&mut self, line: &Line<'_>) {
        let context = match line.context.is_empty() {
            false => Some(self.context(&line.context)),
            true => self.enters.clone().filter(|_| !self.followed),
        };
        self.any |= context.is_some();
        match context {
            Some(context) => self.by.insert(line.pid, context),
            None => self.by.remove(&line.pid),
        };
    }

    fn fork(&mut self, line: &Line<'_>) {
        self.forget(line.peer);
        let Some(source) = self.by.get(&line.pid).cloned() else {
            return;
        };
        self.ask(Act::Fork, &source, &source, "process", &["fork"], "");
        self.by.insert(line.peer, source);
    }

    /// A file of an execution: the program that was asked for, or an interpreter.
    fn exec(&mut self, line: &Line<'_>) {
        let pid = line.pid;
        let Some(old) = self.by.get(&pid).cloned() else {
            let enters = self.enters.clone().filter(|_| self.followed);
            let first = line.flags.contains(Flags::FIRST);
            if let Some(enters) = enters.filter(|_| first && self.begun) {
                self.next.insert(pid, enters);
            }
            return;
        };
        let Some(file) = self.label(line) else {
            return;
        };
        let opens = ["read", "open", "execute"];
        self.ask(Act::OpenRead, &old, &file, "file", &opens, &line.path);
        if !line.flags.contains(Flags::FIRST) {
            return;
        }
        let process = self.te.db.process_class();
        let becomes = process.map(|class| self.decider.transition(&old, &file, class, None));
        let Some(Ok(new)) = becomes else {
            self.next.insert(pid, old);
            return;
        };
        if new == old {
            let asked = ["execute_no_trans"];
            self.ask(Act::Exec, &old, &file, "file", &asked, &line.path);
        } else {
            self.ask(
                Act::Exec,
                &old,
                &new,
                "process",
                &["transition"],
                &line.path,
            );
            self.ask(Act::Exec, &new, &file, "file", &["entrypoint"], &line.path);
        }
        self.next.insert(pid, new);
    }

    /// What else somebody in a domain asks.
    fn asked(&mut self, line: &Line<'_>, source: &Context) {
        let has = |flag| line.flags.contains(flag);
        let mut access = Vec::new();
        if has(Flags::READS) {
            access.push("read");
        }
        if has(Flags::WRITES) {
            access.push(if has(Flags::APPENDS) {
                "append"
            } else {
                "write"
            });
        }
        match line.act {
            Act::Create if has(Flags::TMPFILE) => {
                access.push("open");
                self.of_file(line, source, &["create"]);
                self.of_file(line, source, &access);
            }
            Act::OpenRead | Act::OpenWrite => {
                access.push("open");
                let act = if has(Flags::WRITES) {
                    Act::OpenWrite
                } else {
                    Act::OpenRead
                };
                self.file_as(line, act, source, &access);
            }
            Act::ReceiveFd => self.of_file(line, source, &access),
            Act::Mmap => {
                let mut asked = vec!["map", "read"];
                asked.extend(has(Flags::EXECUTES).then_some("execute"));
                self.of_file(line, source, &asked);
            }
            Act::Setattr if has(Flags::CONTROL) => {}
            Act::Setattr if has(Flags::CONTENT) => self.of_file(line, source, &["write"]),
            Act::Setattr => self.of_file(line, source, &["setattr"]),
            Act::Xattr if has(Flags::READS) => self.of_file(line, source, &["getattr"]),
            Act::Xattr => self.of_file(line, source, &["setattr"]),
            Act::Readlink => self.of_file(line, source, &["read"]),
            Act::Create => self.create(line, source),
            Act::Unlink => {
                self.of_dir(
                    line,
                    source,
                    line.dir,
                    &line.path,
                    &["search", "write", "remove_name"],
                );
                let removes = if line.kind == DIRECTORY {
                    "rmdir"
                } else {
                    "unlink"
                };
                self.of_file(line, source, &[removes]);
            }
            Act::Rename => self.rename(line, source),
            Act::Link => {
                let adds = ["search", "write", "add_name"];
                self.of_dir(line, source, line.other_dir, &line.other, &adds);
                self.of_file(line, source, &["link"]);
                self.keeps(line);
            }
            Act::Connect | Act::Accept | Act::Receive | Act::Send => self.socket(line, source),
            Act::Signal | Act::Ptrace | Act::Sched => self.act(line, source),
            _ => {}
        }
    }

    fn of_file(&mut self, line: &Line<'_>, source: &Context, permissions: &[&str]) {
        self.file_as(line, line.act, source, permissions);
    }

    fn file_as(&mut self, line: &Line<'_>, act: Act, source: &Context, permissions: &[&str]) {
        if let Some(label) = self.label(line) {
            let class = class_of(line.kind);
            self.ask(act, source, &label, class, permissions, &line.path);
        }
    }

    fn of_dir(
        &mut self,
        line: &Line<'_>,
        source: &Context,
        dir: Inode,
        path: &str,
        permissions: &[&str],
    ) {
        if let Some(label) = self.label_of_dir(line, dir, path) {
            self.ask(line.act, source, &label, "dir", permissions, path);
        }
    }

    /// A name is made: the label that what it stands for gets.
    fn create(&mut self, line: &Line<'_>, source: &Context) {
        let adds = ["search", "write", "add_name"];
        self.of_dir(line, source, line.dir, &line.path, &adds);
        let (class, db) = (class_of(line.kind), &self.te.db);
        let dir = self.label_of_dir(line, line.dir, &line.path);
        let (Some(dir), Some(number)) = (dir, db.class(class)) else {
            return;
        };
        let name = line.path.rsplit('/').next();
        let Ok(made) = self.decider.transition(source, &dir, number, name) else {
            return;
        };
        self.ask(line.act, source, &made, class, &["create"], &line.path);
        let filesystem = self.filesystem(line.inode.0);
        if let Some(on) = filesystem.map(|fs| self.of_super(&fs.kind)) {
            self.ask(
                line.act,
                &made,
                &on,
                "filesystem",
                &["associate"],
                &line.path,
            );
        }
        if !self.is_genfs(line.inode.0) {
            self.given.insert(line.inode, made);
        }
    }

    fn rename(&mut self, line: &Line<'_>, source: &Context) {
        let is_dir = line.kind == DIRECTORY;
        self.of_dir(
            line,
            source,
            line.dir,
            &line.path,
            &["search", "write", "remove_name"],
        );
        self.of_file(line, source, &["rename"]);
        if is_dir && line.dir != line.other_dir {
            self.of_file(line, source, &["reparent"]);
        }
        let replaces = line.flags.contains(Flags::REPLACED);
        let mut asked = vec!["search", "write", "add_name"];
        asked.extend(replaces.then_some("remove_name"));
        self.of_dir(line, source, line.other_dir, &line.other, &asked);
        // what it replaces is of its kind
        let over = self.label_at(line, line.over, &line.other);
        if let Some(over) = over.filter(|_| replaces) {
            let removes = if is_dir { "rmdir" } else { "unlink" };
            let class = class_of(line.kind);
            self.ask(line.act, source, &over, class, &[removes], &line.other);
        }
        if !is_dir {
            self.keeps(line);
        }
    }

    /// A name that comes or goes changes no label.
    fn keeps(&mut self, line: &Line<'_>) {
        if let Some(label) = self.label(line) {
            self.given.insert(line.inode, label);
        }
    }

    /// A socket is its holder's; how it was made is not recorded.
    fn socket(&mut self, line: &Line<'_>, source: &Context) {
        let class = match (line.family, line.socket) {
            (INET | INET6, STREAM) => "tcp_socket",
            (INET | INET6, DGRAM) => "udp_socket",
            (INET | INET6, _) => "rawip_socket",
            (UNIX, DGRAM) => "unix_dgram_socket",
            (UNIX, _) => "unix_stream_socket",
            _ => return,
        };
        let object = match line.address {
            Some(address) => format!("{address}:{}", line.port),
            None => line.path.to_string(),
        };
        let own = match line.act {
            Act::Connect => "connect",
            Act::Accept => "accept",
            Act::Receive => "read",
            _ => "write",
        };
        self.ask(line.act, source, source, class, &[own], &object);
        if line.act == Act::Connect && class == "tcp_socket" && line.address.is_some() {
            let port = self.port(line.port);
            self.ask(line.act, source, &port, class, &["name_connect"], &object);
        }
        if line.act == Act::Connect && line.family == UNIX && line.peer != 0 {
            let peer = self.of_process(line.peer);
            let asked = if class == "unix_dgram_socket" {
                "sendto"
            } else {
                "connectto"
            };
            self.ask(line.act, source, &peer, class, &[asked], &object);
        }
    }

    /// What one process does to another.
    fn act(&mut self, line: &Line<'_>, source: &Context) {
        let asked = match (line.act, line.port) {
            (Act::Ptrace, _) => "ptrace",
            (Act::Sched, _) => "setsched",
            (_, 0) => "setpgid",
            (_, 9) => "sigkill",
            (_, 17) => "sigchld",
            (_, 19) => "sigstop",
            _ => "signal",
        };
        let peer = self.of_process(line.peer);
        let object = format!("process {}", line.peer);
        self.ask(line.act, source, &peer, "process", &[asked], &object);
    }

    /// The context of a process; `None`: it is in no domain.
    #[cfg(test)]
    pub(crate) fn text_of(&self, pid: u32) -> Option<String> {
        self.by
            .get(&pid)
            .map(|context| self.te.db.context_text(context))
    }

    fn of_process(&self, pid: u32) -> Context {
        self.by.get(&pid).unwrap_or(&self.kernel).clone()
    }

    /// Asks; notes what the policy would refuse and record.
    #[allow(clippy::too_many_arguments)]
    fn ask(
        &mut self,
        act: Act,
        source: &Context,
        target: &Context,
        class: &str,
        permissions: &[&str],
        object: &str,
    ) {
        let db = &self.te.db;
        let Some(number) = db.class(class) else {
            return;
        };
        let access = self.decider.access(source, target, number);
        let refused = |name: &&&str| {
            let bit = db.permission(number, name);
            bit.is_some_and(|bit| access.auditdeny & !access.allowed & bit != 0)
        };
        let refused: Vec<String> = permissions
            .iter()
            .filter(refused)
            .map(|&p| p.into())
            .collect();
        if refused.is_empty() || access.never_audited {
            return;
        }
        self.refused.push(TeRefusal {
            act,
            source: db.context_text(source),
            target: db.context_text(target),
            class: class.into(),
            permissions: refused,
            object: object.to_owned(),
        });
    }

    /// The label of a line's object; `None`: the recording does not tell.
    fn label(&mut self, line: &Line<'_>) -> Option<Context> {
        if line.flags.contains(Flags::PROC) {
            return Some(self.of_process(line.peer));
        }
        self.label_at(line, line.inode, &line.path)
    }

    fn label_of_dir(&mut self, line: &Line<'_>, dir: Inode, path: &str) -> Option<Context> {
        self.found(dir, parent(path), DIRECTORY, line.flags - Flags::UNNAMED)
    }

    fn label_at(&mut self, line: &Line<'_>, inode: Inode, path: &str) -> Option<Context> {
        self.found(inode, path, line.kind, line.flags)
    }

    /// What was given, or what the policy says of its filesystem and path: `te_place_sid()` of kernel/te/inode_sid.h.
    fn found(&mut self, inode: Inode, path: &str, kind: u32, flags: Flags) -> Option<Context> {
        if inode.is_none() {
            return None;
        }
        if let Some(given) = self.given.get(&inode) {
            return Some(given.clone());
        }
        let found = (!flags.intersects(NOWHERE) && !path.is_empty())
            .then(|| self.placed(inode.0, path, kind))
            .flatten();
        self.unsure += u64::from(found.is_none());
        found
    }

    fn placed(&self, dev: u32, path: &str, kind: u32) -> Option<Context> {
        let (fs, db) = (self.filesystem(dev)?, &self.te.db);
        let uses = db.fs_uses.iter().find(|it| it.filesystem == fs.kind);
        if let Some(uses) = uses {
            let of_path = match uses.behavior {
                Behavior::Task => Some(uses.context.clone()),
                _ => self.by_file_contexts(path, kind),
            };
            return Some(of_path.unwrap_or_else(|| match uses.behavior {
                Behavior::Transition => uses.context.clone(),
                _ => self.file.clone(),
            }));
        }
        let Some(genfs) = db.genfs.iter().find(|it| it.filesystem == fs.kind) else {
            return Some(self.unlabeled.clone());
        };
        if matches!(Kind::of_mode(kind), Some(Kind::Symlink))
            && !db.capabilities.contains(GENFS_LINKS)
        {
            return Some(self.of_super(&fs.kind));
        }
        let within = path
            .strip_prefix(fs.at.trim_end_matches('/'))
            .unwrap_or(path);
        let within = if within.is_empty() { "/" } else { within };
        let class = db.class(class_of(kind));
        let fits = |it: &&tidegate_bundle::te::db::GenfsPath| {
            within.starts_with(&it.path) && (it.class.is_none() || it.class == class)
        };
        let found = genfs.paths.iter().find(fits);
        Some(found.map_or_else(|| self.unlabeled.clone(), |it| it.context.clone()))
    }

    fn by_file_contexts(&self, path: &str, kind: u32) -> Option<Context> {
        let kind = Kind::of_mode(kind)?;
        let found = self.te.files.as_ref()?.lookup(&path_bytes(path), kind);
        found.context.map(|text| self.context(text))
    }

    fn filesystem(&self, dev: u32) -> Option<&Filesystem> {
        self.filesystems.get(&dev)
    }

    fn is_genfs(&self, dev: u32) -> bool {
        let named = |fs: &Filesystem| {
            let uses = self.te.db.fs_uses.iter();
            uses.clone().all(|it| it.filesystem != fs.kind)
        };
        self.filesystem(dev).is_some_and(named)
    }

    /// The label of a filesystem itself.
    fn of_super(&self, kind: &str) -> Context {
        let db = &self.te.db;
        let uses = db.fs_uses.iter().find(|it| it.filesystem == kind);
        let genfs = || db.genfs.iter().find(|it| it.filesystem == kind);
        let root = || genfs()?.paths.iter().find(|it| it.path == "/");
        uses.map(|it| it.context.clone())
            .or_else(|| root().map(|it| it.context.clone()))
            .unwrap_or_else(|| self.unlabeled.clone())
    }

    fn port(&self, port: u32) -> Context {
        let db = &self.te.db;
        let is_it = |it: &&tidegate_bundle::te::db::Port| {
            it.protocol == TCP && (u32::from(it.low)..=u32::from(it.high)).contains(&port)
        };
        let found = db.ports.iter().find(is_it).map(|it| it.context.clone());
        let initial = || db.initial_sid("port").cloned();
        found
            .or_else(initial)
            .unwrap_or_else(|| self.unlabeled.clone())
    }
}

/// The class of a file, by `st_mode & S_IFMT`.
fn class_of(kind: u32) -> &'static str {
    match Kind::of_mode(kind) {
        Some(Kind::Directory) => "dir",
        Some(Kind::Character) => "chr_file",
        Some(Kind::Block) => "blk_file",
        Some(Kind::Fifo) => "fifo_file",
        Some(Kind::Symlink) => "lnk_file",
        Some(Kind::Socket) => "sock_file",
        Some(Kind::Regular) | None => "file",
    }
}
