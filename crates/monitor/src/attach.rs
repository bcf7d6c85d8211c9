//! Attaching: everything or nothing, and the guard on demand.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tidegate_bundle::profile::ProfileSet;

use crate::error::{Error, Result, Trying};
use crate::load::Monitor;
use crate::parts::{Caps, Profile, Te};
use crate::pins::Pinned;
use crate::sys;

/// When a program is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    Base,
    Guard,
    Iterator,
    Profile,
    ProfileSight,
    Links,
    Messages,
    Te,
    TeGuard,
    TeSight,
    Caps,
    CapsGuard,
    Service,
    Stream,
}

/// What the names of a set's programs begin with: the first that fits says a program's set. `scripts/kernel-check.py` reads this
/// table, and the lines about when a set is attached, for the table of programs in kernel/README.md.
const SETS: [(&str, Set); 15] = [
    // never: user space runs it
    ("ps_", Set::Iterator),
    // while a descriptor has to be revoked
    ("lomac_guard_", Set::Guard),
    // while a descriptor has to be revoked
    ("te_guard_", Set::TeGuard),
    // while something is checked at each use
    ("caps_guard_", Set::CapsGuard),
    // where stat(2) and look-ups are checked
    ("te_sight_", Set::TeSight),
    // while a profile hides attributes
    ("profile_inode_getattr", Set::ProfileSight),
    // while a profile has mount rules
    ("profile_inode_follow_link", Set::Links),
    // while a profile tells messages from sockets
    ("profile_socket_sendmsg", Set::Messages),
    // while a profile tells messages from sockets
    ("profile_socket_recvmsg", Set::Messages),
    // while files describe services
    ("caps_service_", Set::Service),
    // while a service's socket may be a stream
    ("caps_stream_", Set::Stream),
    // while a policy has profiles
    ("profile_", Set::Profile),
    // while a policy is a SELinux policy
    ("te_", Set::Te),
    // while a session of capability files is there
    ("caps_", Set::Caps),
    // from the start
    ("lomac_", Set::Base),
];

impl Set {
    /// The set of a program, by its name; `None`: it is not the monitor's.
    pub fn of(program: &str) -> Option<Set> {
        let mut sets = SETS.into_iter();
        let (_, set) = sets.find(|(begin, _)| program.starts_with(begin))?;
        Some(set)
    }
}

/// Whether a program is in one of these sets.
fn is_in(program: &str, sets: &[Set]) -> bool {
    Set::of(program).is_some_and(|set| sets.contains(&set))
}

/// A model that is loaded for the first policy that has it, and attached only while one has. In place of policies the
/// `capability` model has sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Model {
    Profile,
    Te,
    Caps,
}

impl Model {
    pub const ALL: [Model; 3] = [Model::Profile, Model::Te, Model::Caps];

    /// The model that a program or a map is of, by its name; `None`: `lomac`'s, or what all models share.
    pub fn of(name: &str) -> Option<Model> {
        let name = name.strip_prefix("ps_").unwrap_or(name);
        Model::ALL
            .into_iter()
            .find(|model| name.starts_with(model.prefix()))
    }

    /// Whether it is in the kernel: the last of it to be pinned is.
    pub fn is_loaded(self) -> Result<bool> {
        Pinned::Programs.has(self.executed())
    }

    /// What its programs' and maps' names begin with, those of its iterators after `ps_`.
    pub fn prefix(self) -> &'static str {
        match self {
            Model::Profile => "profile_",
            Model::Te => "te_",
            Model::Caps => "caps_",
        }
    }

    /// What changes the subject at an execution.
    pub fn executed(self) -> &'static str {
        match self {
            Model::Profile => "profile_bprm_committing_creds",
            Model::Te => "te_bprm_committing_creds",
            Model::Caps => "caps_bprm_committing_creds",
        }
    }

    /// Those that keep account of what each task is, and of what directories are moved. Once it has
    /// begun it goes on: what is known of a task or an object may not outlive it.
    fn account(self) -> &'static [&'static str] {
        match self {
            Model::Profile => &["profile_task_alloc", "profile_task_free", MOVES],
            Model::Te => &[
                "te_task_alloc",
                "te_task_free",
                "te_cred_prepare",
                "te_cred_transfer",
                "te_cred_free",
                "te_inode_free_security",
                "te_msg_queue_free",
                "te_msg_msg_free",
                "te_shm_free",
                "te_sem_free",
                "te_key_alloc",
                "te_bpf_map_free",
                "te_bpf_prog_free",
            ],
            Model::Caps => &[
                "caps_task_alloc",
                "caps_task_free",
                "caps_file_free_security",
            ],
        }
    }
}

const MOVES: &str = "profile_d_move";

/// What others have work done by: the steps of a fall (kernel/lomac/demote/serve.h), and the path of a record
/// (kernel/core/record.h). Without the first each fall is refused, and without the second no record has a path.
pub(crate) const SERVERS: [&str; 2] = ["lomac_transaction", "lomac_record_path"];

/// What is asked of each message: a program of the service monitor's, and which others it does the work of.
const MESSAGES_OF_SERVICES: [(&str, &[&str]); 2] = [
    (
        "caps_service_socket_sendmsg",
        &["lomac_socket_sendmsg", "caps_socket_sendmsg"],
    ),
    ("caps_stream_socket_recvmsg", &["lomac_socket_recvmsg"]),
];

/// Whether another one that is attached does what a program does.
fn is_done(program: &str, attached: &[String]) -> bool {
    MESSAGES_OF_SERVICES
        .iter()
        .any(|(by, all)| all.contains(&program) && attached.iter().any(|link| link == by))
}

/// Attaches a pinned program and pins the link. What was detached a moment ago is busy
/// until the kernel has let go of it: that is waited for.
fn attach(program: &str) -> Result<()> {
    let path = Pinned::Programs.path(program);
    let fd = sys::open_pin(&path).trying(|| format!("open {}", path.display()))?;
    let patience = Instant::now() + FREE_WITHIN;
    let link = loop {
        match sys::attach(fd.as_fd()) {
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy && Instant::now() < patience => {
                sleep(LOOK_AGAIN);
            }
            other => break other,
        }
    };
    let link = link.map_err(|source| Error::Hook {
        program: program.into(),
        source,
    })?;
    Pinned::Links.pin(link, program)
}

/// Attaches those of these programs that are not, but what another one that is does, too.
fn attach_late(wanted: impl Fn(&str) -> bool) -> Result<()> {
    let attached = Pinned::Links.names()?;
    for program in Pinned::Programs.names()? {
        if wanted(&program) && !attached.contains(&program) && !is_done(&program, &attached) {
            attach(&program)?;
        }
    }
    Ok(())
}

/// Attaches a model's programs, the end of an execution last: it asks for what the beginning has found.
fn attach_model(model: Model, wanted: impl Fn(&str) -> bool) -> Result<()> {
    attach_late(|p| p != model.executed() && wanted(p))?;
    attach_late(wanted)
}

/// Detaches what a policy's models had attached, that did not come into force, and what was not attached before it. What keeps
/// account goes on.
pub(crate) fn detach_later_than(before: &[String]) -> Result<()> {
    let links = Pinned::Links.names()?;
    let mut later = links.iter().filter(|p| goes_with_policy(p, before));
    later.try_for_each(|p| detach(p))
}

/// Whether a program is attached for a policy alone, and was not among these before.
fn goes_with_policy(program: &str, before: &[String]) -> bool {
    const FOR_POLICIES: [Set; 6] = [
        Set::Profile,
        Set::ProfileSight,
        Set::Links,
        Set::Messages,
        Set::Te,
        Set::TeSight,
    ];
    let keeps_account = Model::of(program).is_some_and(|m| m.account().contains(&program));
    is_in(program, &FOR_POLICIES) && !keeps_account && !before.iter().any(|link| link == program)
}

fn detach(program: &str) -> Result<()> {
    let path = Pinned::Links.path(program);
    fs::remove_file(&path).trying(|| format!("detach {program}"))
}

/// How long the kernel may take to let go of all hooks: it detaches one after the other,
/// each in up to a fifth of a second, and an emulated processor that has other work takes three times that for some three hundred.
const GONE_WITHIN: Duration = Duration::from_secs(180);

/// How long one hook may take to be free again: as long as a demotion waits for the guard.
const FREE_WITHIN: Duration = Duration::from_secs(10);

/// Between two looks whether it has.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The numbers of what is attached.
pub(crate) fn attached() -> Result<Vec<u32>> {
    let id = |program: String| {
        let path = Pinned::Programs.path(&program);
        sys::open_pin(&path)
            .and_then(|fd| sys::program_id(fd.as_fd()))
            .trying(|| format!("open {}", path.display()))
    };
    Pinned::Links.names()?.into_iter().map(id).collect()
}

/// Waits until the kernel has let go of programs: it does so after their last pin is gone,
/// and meanwhile they decide.
pub(crate) fn wait_until_gone(programs: &[u32]) -> Result<()> {
    let patience = Instant::now() + GONE_WITHIN;
    for &program in programs {
        while sys::has_program(program).trying(|| "see whether the hooks are free".into())? {
            if Instant::now() > patience {
                let e = io::Error::from(io::ErrorKind::TimedOut);
                return Err(Error::io(
                    "wait until the kernel has let go of the hooks",
                    e,
                ));
            }
            sleep(LOOK_AGAIN);
        }
    }
    Ok(())
}

/// Whether the kernel's own AppArmor is at work.
fn has_apparmor() -> Result<bool> {
    const ACTIVE: &str = "/sys/kernel/security/lsm";
    let active = fs::read_to_string(ACTIVE).trying(|| format!("read {ACTIVE}"))?;
    Ok(active.trim().split(',').any(|module| module == "apparmor"))
}

impl Monitor {
    /// Attaches every program to its hook, but the guards.
    ///
    /// # Errors
    /// [`Error::Hook`] for the first that this kernel refuses; the caller then
    /// takes the monitor out again.
    pub fn attach(&self) -> Result<()> {
        attach_late(|p| SERVERS.contains(&p))?;
        attach_late(|p| is_in(p, &[Set::Base]))
    }

    /// Attaches those guards that are not.
    pub(crate) fn attach_guards(&self) -> Result<()> {
        attach_late(|p| is_in(p, &[Set::Guard]))
    }

    /// Attaches those of the `te` model's that are not.
    pub(crate) fn attach_te_guards(&self) -> Result<()> {
        attach_late(|p| is_in(p, &[Set::TeGuard]))
    }

    /// Attaches the `profile` model's programs, as far as these profiles need them.
    pub(crate) fn attach_profiles(&self, set: &ProfileSet) -> Result<()> {
        let (sight, links, messages) = (set.hides_attributes(), set.mounts(), set.tells_messages());
        let profile = self.needed::<Profile>()?;
        profile.globals.set_apparmor(has_apparmor()?);
        attach_late(|p| Model::Profile.account().contains(&p))?;
        if Pinned::Links.names()?.iter().any(|link| link == MOVES) {
            profile.globals.set_moves_counted();
        }
        let wanted = |p: &str| match Set::of(p) {
            Some(Set::Profile) => true,
            Some(Set::ProfileSight) => sight,
            Some(Set::Links) => links,
            Some(Set::Messages) => messages,
            _ => false,
        };
        attach_model(Model::Profile, wanted)
    }

    /// Attaches the `te` model's programs; with `sight` those too that are asked at each stat(2) and look-up.
    pub(crate) fn attach_te(&self, sight: bool) -> Result<()> {
        self.needed::<Te>()?;
        attach_late(|p| Model::Te.account().contains(&p))?;
        attach_model(Model::Te, |p| {
            is_in(p, &[Set::Te]) || sight && is_in(p, &[Set::TeSight])
        })
    }

    /// Attaches the `capability` model's programs, but for its guard and the service monitor.
    pub(crate) fn attach_caps(&self) -> Result<()> {
        self.needed::<Caps>()?;
        attach_late(|p| Model::Caps.account().contains(&p))?;
        attach_model(Model::Caps, |p| is_in(p, &[Set::Caps]))
    }

    /// Attaches those of the service monitor that are not, with `streams` also those for streams.
    pub(crate) fn attach_caps_services(&self, streams: bool) -> Result<()> {
        attach_late(|p| is_in(p, &[Set::Service]) || streams && is_in(p, &[Set::Stream]))?;
        let attached = Pinned::Links.names()?;
        let mut done = attached.iter().filter(|link| is_done(link, &attached));
        done.try_for_each(|link| detach(link))
    }

    /// Attaches those of its guard that are not.
    pub(crate) fn attach_caps_guards(&self) -> Result<()> {
        attach_late(|p| is_in(p, &[Set::CapsGuard]))
    }

    /// Detaches a model's programs, where no policy asks them any more, but for those that keep account.
    pub(crate) fn detach_model(&self, model: Model) -> Result<()> {
        let links = Pinned::Links.names()?;
        let goes = |p: &str| p.starts_with(model.prefix()) && !model.account().contains(&p);
        let is_attached = |p: &str| links.iter().any(|link| link == p);
        // first what these did for others, which is asked at every moment
        for (by, all) in MESSAGES_OF_SERVICES {
            if goes(by) && is_attached(by) {
                let stay = all.iter().filter(|p| !goes(p) && !is_attached(p));
                stay.copied().try_for_each(attach)?;
            }
        }
        links.iter().filter(|p| goes(p)).try_for_each(|p| detach(p))
    }

    /// Detaches one of the guards; false if none is attached.
    pub(crate) fn detach_one_guard(&self) -> Result<bool> {
        let links = Pinned::Links.names()?;
        match links.iter().find(|l| is_in(l, &[Set::Guard, Set::TeGuard])) {
            Some(link) => detach(link).map(|()| true),
            None => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_failed_policy_brought_goes_with_it() {
        let before = ["lomac_file_open".to_owned(), "profile_file_open".to_owned()];
        for program in ["profile_inode_getattr", "te_file_open", "te_sight_x"] {
            assert!(goes_with_policy(program, &before), "{program}");
        }
        for program in [
            // was there
            "profile_file_open",
            // keeps account
            "profile_task_alloc",
            "te_task_alloc",
            // others attach these, and may just now
            "te_guard_file_permission",
            "lomac_guard_file_permission",
            "caps_file_open",
            "caps_guard_file_permission",
        ] {
            assert!(!goes_with_policy(program, &before), "{program}");
        }
    }
}
