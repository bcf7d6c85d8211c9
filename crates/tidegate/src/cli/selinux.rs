//! What the commands about booleans of a SELinux policy take.

use clap::Args;

use crate::te::assignment;

/// Which booleans.
#[derive(Debug, Args)]
pub struct Getsebool {
    /// Their names; without, all
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
}

/// Which booleans, and how.
#[derive(Debug, Args)]
pub struct Setsebool {
    /// Their values; all of them come into force in one step
    #[arg(required = true, value_name = "NAME=on|off", value_parser = assignment)]
    pub values: Vec<(String, bool)>,
}
