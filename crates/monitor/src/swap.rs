//! Putting a policy in force: built beside the running one, swapped by one step.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::thread;

use tidegate_bundle::{Mode, Policy};
use tidegate_flask as te;

use crate::Refusals;
use crate::attach::{self, Model};
use crate::encode;
use crate::error::{Error, Result, Trying};
use crate::image;
use crate::load::Monitor;
use crate::parts::{Profile, Te};
use crate::pins::Pinned;
use crate::skel::types::{tg_edge, tg_net, tg_node, tg_policy};
use crate::sys::Map;

/// A policy that has come into force.
#[derive(Debug)]
pub struct InForce {
    /// Its sequence number.
    pub seqno: u32,
    /// Why programs of a model stay attached that it does not have: they take time, and refuse nothing.
    pub kept: Option<Error>,
}

impl Monitor {
    /// The sequence number that the next policy will have.
    pub fn next_policy(&self) -> u32 {
        next(self.globals.policy().seqno)
    }

    /// Puts a policy in force. The one before stays in force until the last step, and on any error: then no model is
    /// attached that was not before. A map that says `mode permissive` has its refusals recorded where they would be enforced.
    ///
    /// # Errors
    /// [`Error::Io`] if the kernel has no room for it; [`Error::Load`], [`Error::Hook`] if it does not take a model.
    pub fn put_policy(&self, policy: &Policy, refusals: Refusals) -> Result<InForce> {
        let seqno = self.next_policy();
        let mnt_ns = initial_mount_namespace()?;
        // as the kernel finds it: with the number the maps change, by one store
        let slot = seqno & 1;
        let full = || "build the policy's tables".to_string();

        let nodes = Map::<u32, tg_node>::create(
            libbpf_sys::BPF_MAP_TYPE_ARRAY,
            "tg_nodes",
            policy.nodes.len() as u32,
            libbpf_sys::BPF_F_INNER_MAP,
        )
        .trying(full)?;
        let keys: Vec<u32> = (0..policy.nodes.len() as u32).collect();
        let values: Vec<tg_node> = policy.nodes.iter().map(encode::node).collect();
        nodes.put_all(&keys, &values).trying(full)?;

        let (keys, values) = encode::edges(policy);
        let room = keys.len().max(1) as u32;
        let edges = Map::<tg_edge, u32>::create(libbpf_sys::BPF_MAP_TYPE_HASH, "tg_edges", room, 0)
            .trying(full)?;
        edges.put_all(&keys, &values).trying(full)?;

        let nets = Map::<tg_net, u32>::create(
            libbpf_sys::BPF_MAP_TYPE_LPM_TRIE,
            "tg_nets",
            policy.networks.len().max(1) as u32,
            libbpf_sys::BPF_F_NO_PREALLOC,
        )
        .trying(full)?;
        for network in &policy.networks {
            nets.put(&encode::net(network), &network.level.into())
                .trying(full)?;
        }

        let inner = [
            (&self.nodes, nodes.as_fd()),
            (&self.edges, edges.as_fd()),
            (&self.nets, nets.as_fd()),
        ];
        // the kernel waits for the tasks that are deciding at each, and waits for all at once
        thread::scope(|scope| -> io::Result<()> {
            let mut all = Vec::new();
            for (outer, map) in inner {
                let put = move || outer.put(&slot, &(map.as_raw_fd() as u32));
                let named = thread::Builder::new().name("swap".into());
                all.push(named.spawn_scoped(scope, put)?);
            }
            all.into_iter().try_for_each(|one| {
                one.join()
                    .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
            })
        })
        .trying(|| "fill the free slot".into())?;
        let profiles = &policy.profiles;
        if !profiles.profiles.is_empty() {
            self.needed::<Profile>()?;
        }
        if policy.te.is_some() {
            self.needed::<Te>()?;
        }
        // nobody reads the slot's half of the arena any more: the kernel has waited for the tasks
        // that were deciding when it changed the maps
        let tables = policy.te.as_ref().map(|te| {
            move |mut numbering: te::Numbering, base| {
                for range in &te.ranges {
                    numbering.ranges.take(range);
                }
                let image = te::Image::of(&te.db, &te.values(), te.files.as_ref(), numbering, base);
                let image = image.map_err(io::Error::other)?;
                Ok(image::Tables {
                    bytes: image.bytes,
                    numbering: image.numbering,
                })
            }
        });
        let tables = tables.as_ref().map(|lay_out| lay_out as _);
        if let Some(arena) = self.arena()? {
            image::write(arena, profiles, tables, seqno)
                .trying(|| "lay out the policy's profiles and tables".into())?;
        }
        self.attach_models(policy)?;
        self.globals.change_policy(|now| tg_policy {
            seqno,
            mnt_ns,
            given_max: self.given.max_entries,
            top: (policy.levels.len() - 1) as u8,
            permissive: asked(policy, refusals) as u8,
            net_default: 0,
            net_highest: policy.networks.iter().map(|n| n.level).max().unwrap_or(0),
            ..now
        });
        Ok(InForce {
            seqno,
            kept: self.detach_models(policy).err(),
        })
    }

    /// Attaches what decides by the models that a policy has; on an error what was not attached before is not either.
    fn attach_models(&self, policy: &Policy) -> Result<()> {
        let before = Pinned::Links.names()?;
        let profiles = &policy.profiles;
        let attached = match profiles.profiles.is_empty() {
            true => Ok(()),
            false => self.attach_profiles(profiles),
        };
        let attached = attached.and_then(|()| match &policy.te {
            Some(te) => self.attach_te(te.sight),
            None => Ok(()),
        });
        attached.inspect_err(|_| {
            let _ = attach::detach_later_than(&before);
        })
    }

    /// Detaches what decides by a model that a policy does not have.
    fn detach_models(&self, policy: &Policy) -> Result<()> {
        let profiles = match policy.profiles.profiles.is_empty() {
            true => self.detach_model(Model::Profile),
            false => Ok(()),
        };
        let te = match policy.te {
            None => self.detach_model(Model::Te),
            Some(_) => Ok(()),
        };
        profiles.and(te)
    }

    /// Says what becomes of refusals from now on, under the policy in force.
    pub fn set_refusals(&self, policy: &Policy, refusals: Refusals) {
        self.globals.change_policy(|now| tg_policy {
            permissive: asked(policy, refusals) as u8,
            ..now
        });
    }

    /// Tells the kernel that this process waits for its events, or that none does.
    pub fn set_daemon(&self, here: bool) {
        self.globals.change_policy(|now| tg_policy {
            daemon: if here { std::process::id() } else { 0 },
            ..now
        });
    }
}

/// The number of the policy after this one: another slot's, and never 0, which means that
/// nothing was ever loaded.
fn next(seqno: u32) -> u32 {
    match seqno.wrapping_add(1) {
        0 => 2,
        next => next,
    }
}

/// What becomes of refusals, where the map may ask that they be only recorded.
fn asked(policy: &Policy, refusals: Refusals) -> Refusals {
    match refusals {
        Refusals::Enforced if policy.mode == Mode::Permissive => Refusals::Recorded,
        refusals => refusals,
    }
}

/// The inode number of pid 1's mount namespace, in which paths are canonical.
pub(crate) fn initial_mount_namespace() -> Result<u32> {
    let path = "/proc/1/ns/mnt";
    let link = fs::read_link(path).trying(|| format!("read {path}"))?;
    let number = link.to_string_lossy();
    let number = number
        .strip_prefix("mnt:[")
        .and_then(|n| n.strip_suffix(']'));
    number.and_then(|n| n.parse().ok()).ok_or_else(|| {
        Error::Unsupported(format!(
            "{path} does not name a mount namespace: {}",
            link.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_has_the_other_slot_and_a_number() {
        assert_eq!(next(0), 1);
        for seqno in [1, 2, u32::MAX - 1, u32::MAX] {
            assert_ne!(next(seqno), 0);
            assert_ne!(next(seqno) & 1, seqno & 1, "after {seqno}");
        }
    }
}
