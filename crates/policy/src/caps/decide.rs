//! The reference decisions: what a subject's layers allow, slowly and simply. The automata, and what the kernel will do, are held
//! against these.
//!
//! A process is limited by *layers*: the subject that it was started as, and one more for whatever narrowed it since. Each layer
//! is asked, and all have to allow, so that a layer more never allows more, and their order has no meaning.

use std::collections::BTreeSet;

use tidegate_bundle::caps::{Allowed, Capabilities, Class, Object};

use super::compile;

/// A subject of some capability files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Layer {
    /// The files, by the number that whoever keeps several gives them.
    pub files: usize,
    /// The subject: an index into [`Capabilities::subjects`].
    pub subject: u32,
}

/// What was taken back from its holder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Withdrawn {
    /// All of it.
    pub everything: bool,
    /// What subjects gave.
    pub layers: BTreeSet<Layer>,
    /// What single capabilities gave, by their files' number and their own.
    pub capabilities: BTreeSet<(usize, u32)>,
    /// What anybody gave for an object. Services' objects are told apart by the number of the files that describe the service.
    pub objects: BTreeSet<(Option<usize>, Object)>,
}

/// Of which files an object is, for what tells objects of services apart.
fn of_files(files: usize, object: &Object) -> (Option<usize>, Object) {
    let is_of_service = matches!(object, Object::Of(..));
    (is_of_service.then_some(files), object.clone())
}

/// The capabilities that give what was asked for, and how long it is good for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// The capabilities that give it, by their files' number and their own.
    pub by: BTreeSet<(usize, u32)>,
    /// Seconds after which it ends: the fewest that any of them says.
    pub expires: Option<u32>,
    /// Counted uses after which it ends: the fewest that any of them says.
    pub uses: Option<u32>,
}

impl Given {
    /// What is given by both.
    fn and(mut self, other: Given) -> Given {
        self.by.extend(other.by);
        self.expires = least(self.expires, other.expires);
        self.uses = least(self.uses, other.uses);
        self
    }
}

/// The lower one, where none is above all.
pub(super) fn least<N: Ord>(a: Option<N>, b: Option<N>) -> Option<N> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, None) | (None, one) => one,
    }
}

/// What a layer does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// The layer.
    pub layer: Layer,
    /// The permissions that nothing gives.
    pub rights: u32,
}

/// What a subject may do with an object: each of its capabilities is asked.
pub fn allowed(caps: &Capabilities, subject: u32, object: &Object) -> Allowed {
    let all = caps.capabilities.iter().enumerate();
    let matching = all.filter(|(_, capability)| {
        capability.subject == subject
            && capability.class == object.class()
            && capability.objects.contains(object)
    });
    compile::allowed(
        &matching.map(|(at, _)| at).collect::<Vec<_>>(),
        &caps.capabilities,
    )
}

/// What a layer gives for an object, without what was taken back.
pub fn left(
    files: &[Capabilities],
    layer: Layer,
    withdrawn: &Withdrawn,
    object: &Object,
) -> Allowed {
    let caps = &files[layer.files];
    let mut said = allowed(caps, layer.subject, object);
    if withdrawn.everything
        || withdrawn.layers.contains(&layer)
        || withdrawn.objects.contains(&of_files(layer.files, object))
    {
        return Allowed::default();
    }
    said.by
        .retain(|&at| !withdrawn.capabilities.contains(&(layer.files, at)));
    let rights = said
        .by
        .iter()
        .map(|&at| caps.capabilities[at as usize].rights);
    said.rights = rights.fold(0, |all, rights| all | rights);
    said
}

/// Asks one layer for `wanted`. A permission is given by the first capability that has it: one that lasts, if there is one.
pub fn ask_layer(
    files: &[Capabilities],
    layer: Layer,
    withdrawn: &Withdrawn,
    object: &Object,
    wanted: u32,
) -> Result<Given, Missing> {
    let said = left(files, layer, withdrawn, object);
    let rights = wanted & !said.rights;
    if rights != 0 {
        return Err(Missing { layer, rights });
    }
    let capabilities = &files[layer.files].capabilities;
    let mut given = Given::default();
    for bit in (0..u32::BITS)
        .map(|bit| 1 << bit)
        .filter(|bit| wanted & bit != 0)
    {
        let gives = |at: &&u32| capabilities[**at as usize].rights & bit != 0;
        if let Some(&at) = said.by.iter().find(gives) {
            let capability = &capabilities[at as usize];
            given = given.and(Given {
                by: BTreeSet::from([(layer.files, at)]),
                expires: capability.expires,
                uses: capability.uses,
            });
        }
    }
    Ok(given)
}

/// Asks all layers for `wanted` with an object that has the same name for all of them, which a service's object has not.
///
/// # Errors
///
/// The first layer that does not allow all of it.
pub fn ask(
    files: &[Capabilities],
    layers: &BTreeSet<Layer>,
    withdrawn: &Withdrawn,
    object: &Object,
    wanted: u32,
) -> Result<Given, Missing> {
    layers.iter().try_fold(Given::default(), |given, &layer| {
        Ok(given.and(ask_layer(files, layer, withdrawn, object, wanted)?))
    })
}

/// What of `wanted` all layers give.
pub fn common(
    files: &[Capabilities],
    layers: &BTreeSet<Layer>,
    withdrawn: &Withdrawn,
    object: &Object,
    wanted: u32,
) -> u32 {
    layers.iter().fold(wanted, |rights, &layer| {
        rights & left(files, layer, withdrawn, object).rights
    })
}

/// Of the access operations that were not asked for when something was bound, those that go with it: each layer gives them by a
/// capability that lasts, or by one that gives what was asked for anyway, so that they never end it sooner. With them, which
/// capabilities these are.
pub fn beside(
    files: &[Capabilities],
    layers: &BTreeSet<Layer>,
    withdrawn: &Withdrawn,
    object: &Object,
    given: &Given,
) -> (u32, BTreeSet<(usize, u32)>) {
    let class = object.class();
    let mut rights = class.access() & !class.controllable();
    let mut gives = Vec::new();
    for &layer in layers {
        let capabilities = &files[layer.files].capabilities;
        let by = left(files, layer, withdrawn, object).by.into_iter();
        let goes = by
            .map(|at| (layer.files, at))
            .filter(|place| capabilities[place.1 as usize].lasts() || given.by.contains(place));
        let goes = goes.map(|place| (place, capabilities[place.1 as usize].rights));
        let of_layer: Vec<_> = goes.collect();
        rights &= of_layer.iter().fold(0, |all, (_, rights)| all | rights);
        gives.push(of_layer);
    }
    let mut by = BTreeSet::new();
    for of_layer in gives {
        let mut open = rights;
        for (place, gives) in of_layer {
            if gives & open != 0 {
                by.insert(place);
                open &= !gives;
            }
        }
    }
    (rights, by)
}

/// What of a class any layer has checked at each use.
pub fn controlled(files: &[Capabilities], layers: &BTreeSet<Layer>, class: Class) -> u32 {
    layers.iter().fold(0, |all, layer| {
        let subject = &files[layer.files].subjects[layer.subject as usize];
        all | subject.controlled(class)
    })
}

/// The layers that content brings, which is executed or mapped: what every capability that is for it says, in each layer.
pub fn brought(
    files: &[Capabilities],
    layers: &BTreeSet<Layer>,
    withdrawn: &Withdrawn,
    object: &Object,
) -> BTreeSet<Layer> {
    let mut all = BTreeSet::new();
    for &layer in layers {
        let capabilities = &files[layer.files].capabilities;
        let by = left(files, layer, withdrawn, object).by.into_iter();
        let becomes = by.filter_map(|at| capabilities[at as usize].becomes);
        all.extend(becomes.map(|subject| Layer { subject, ..layer }));
    }
    all
}
