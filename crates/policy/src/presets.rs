//! The maps that come with Tidegate.

/// A map that comes with Tidegate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// What `include` and [`compile_preset`](crate::map::compile_preset) call it.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// The whole policies: each serves as it is, or is included and added to.
pub const PRESETS: [Preset; 3] = [
    Preset {
        name: "classic",
        text: include_str!("../presets/classic.plm"),
    },
    Preset {
        name: "server",
        text: include_str!("../presets/server.plm"),
    },
    Preset {
        name: "workstation",
        text: include_str!("../presets/workstation.plm"),
    },
];

/// Parts of policies, to be included by one that names the levels they use.
pub const FRAGMENTS: [Preset; 1] = [Preset {
    name: "base",
    text: include_str!("../presets/base.plm"),
}];
