//! What a record says was asked of a SELinux policy, in the policy's own numbers.

use tidegate_audit::Record;
use tidegate_bundle::te::db::{Context, Number, PolicyDb};
use tidegate_recording::Denied;

/// The number of the initial SID of what is not governed (`SECINITSID_KERNEL`).
const KERNEL: u32 = 1;

/// What would have to be allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The context of the process that asked.
    pub source: Context,
    /// For what.
    pub target: Context,
    /// The class.
    pub class: Number,
    /// The permissions that were refused, a bit each.
    pub permissions: u32,
    /// Those that the policy does not know.
    pub unknown: Vec<String>,
}

/// Why a record tells of nothing that the policy could be asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unlearned {
    /// One of its contexts is none under this policy.
    Context(String),
    /// The policy does not know its class.
    Class(String),
    /// The record was written when its policy was not known any more.
    Numbers,
}

impl Unlearned {
    /// In words.
    pub fn text(&self) -> String {
        match self {
            Unlearned::Context(text) => {
                format!("the policy has no context `{text}`: it was another one that refused")
            }
            Unlearned::Class(name) => format!(
                "the policy does not know the class `{name}`: `handle_unknown allow` would let it through"
            ),
            Unlearned::Numbers => {
                "the policy that refused was not known any more when this was recorded".into()
            }
        }
    }
}

impl Need {
    /// Whether a record is of a SELinux policy.
    pub fn is_told_by(record: &Record) -> bool {
        record.tclass.is_some()
    }

    /// What a record tells.
    ///
    /// # Errors
    /// Why it tells nothing.
    pub fn of(record: &Record, db: &PolicyDb) -> Result<Need, Unlearned> {
        let class = record.tclass.as_deref().unwrap_or_default();
        if class.parse::<u32>().is_ok() {
            return Err(Unlearned::Numbers);
        }
        let number = db.class(class);
        let number = number.ok_or_else(|| Unlearned::Class(class.to_owned()))?;
        let mut need = Need {
            source: context(record.scontext.as_deref(), db)?,
            target: context(record.tcontext.as_deref(), db)?,
            class: number,
            permissions: 0,
            unknown: Vec::new(),
        };
        for name in record.denied.iter().flat_map(|words| words.split(' ')) {
            match db.permission(number, name) {
                Some(bit) => need.permissions |= bit,
                None => need.unknown.push(name.to_owned()),
            }
        }
        Ok(need)
    }
}

impl Need {
    /// What a replay says would be refused; `None`: it speaks of another policy.
    pub fn of_denied(denied: &Denied, db: &PolicyDb) -> Option<Need> {
        let class = db.class(&denied.class)?;
        let bits = denied.permissions.iter();
        Some(Need {
            source: db.context(&denied.context).ok()?,
            target: db.context(&denied.object_context).ok()?,
            class,
            permissions: bits
                .filter_map(|name| db.permission(class, name))
                .fold(0, |all, bit| all | bit),
            unknown: Vec::new(),
        })
    }
}

fn context(text: Option<&str>, db: &PolicyDb) -> Result<Context, Unlearned> {
    let text = text.unwrap_or_default();
    if text == "kernel" {
        let mut all = db.initial_sids.iter();
        let kernel = all.find(|(sid, _)| *sid == KERNEL);
        return kernel
            .map(|(_, context)| context.clone())
            .ok_or_else(|| Unlearned::Context(text.to_owned()));
    }
    db.context(text)
        .map_err(|_| Unlearned::Context(text.to_owned()))
}
