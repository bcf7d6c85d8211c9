//! A SELinux policy's refusal, explained: which rule it lacks, or which constraint refuses.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidegate_audit::{Record, printable};
use tidegate_bundle::Policy;
use tidegate_bundle::te::Te;
use tidegate_bundle::te::db::PolicyDb;
use tidegate_bundle::te::decide::{Because, Decider, Dormant, Refused};
use tidegate_recording::Denied;

use super::need::Need;
use crate::explanation::{Explain, Explanation, Shown};

/// A refusal, and all that refuses it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeRefusal {
    /// The type of the process that asked.
    pub source: String,
    /// That of what it was about.
    pub target: String,
    /// The class.
    pub class: String,
    /// What refuses: all of it has to be fixed, but of what booleans let not hold one rule is enough.
    pub reasons: Vec<TeReason>,
}

/// What refuses some permissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeReason {
    /// Of which kind it is.
    pub kind: Kind,
    /// Which permissions it is about.
    pub permissions: Vec<String>,
    /// The rule that would allow them, as it stands in the policy where a boolean is the reason; or the constraint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Booleans that would have to be set, `name=on`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub booleans: Vec<String>,
}

/// Kinds of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// No rule allows it.
    NoRule,
    /// A rule would that a boolean lets not hold.
    Boolean,
    /// A constraint is not true.
    Constraint,
    /// The role may not change to the other one.
    Role,
    /// What bounds the type may not do it.
    Bounds,
    /// The policy does not know the permissions.
    Unknown,
}

impl Kind {
    /// Whether no rule and no boolean fixes it.
    pub fn is_final(self) -> bool {
        matches!(self, Kind::Constraint | Kind::Unknown)
    }

    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Kind::NoRule => "no rule allows it",
            Kind::Boolean => "a boolean lets the rule that allows it not hold",
            Kind::Constraint => "a constraint refuses it, whatever rules allow",
            Kind::Role => "no rule lets the role change to the other one",
            Kind::Bounds => "the type that bounds it may not",
            Kind::Unknown => {
                "the policy does not know the permission, and refuses what it does not know"
            }
        }
    }
}

impl Explain for TeRefusal {
    fn explain(chain: &[Record], policy: &Arc<Policy>) -> Option<Explanation<TeRefusal>> {
        explain(chain.first()?, policy.te.as_ref()?)
    }

    fn lines(&self, _shown: &Shown<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        for reason in &self.reasons {
            lines.push(format!(
                "te: {} may not {{ {} }} {}:{}: {}",
                printable(&self.source),
                reason.permissions.join(" "),
                printable(&self.target),
                self.class,
                reason.kind.text()
            ));
            let Some(rule) = &reason.rule else {
                continue;
            };
            let rule = printable(rule);
            match reason.kind {
                Kind::Boolean => {
                    lines.push(format!("    the rule: {rule}"));
                    let options = reason
                        .booleans
                        .iter()
                        .map(|it| format!("--te-boolean {it}"));
                    let options = options.collect::<Vec<_>>().join(" ");
                    lines.push(format!("fix: {}", printable(&options)));
                }
                Kind::Constraint => lines.push(format!("    the constraint: {rule}")),
                _ => lines.push(format!(
                    "fix: {rule}   (`tidegate learn --te` writes it, with its reason)"
                )),
            }
        }
        lines
    }
}

/// What there is to say of a record under a policy; `None`: it is no SELinux policy's refusal.
fn explain(record: &Record, te: &Te) -> Option<Explanation<TeRefusal>> {
    if !record.is_denial() || !Need::is_told_by(record) {
        return None;
    }
    let need = match Need::of(record, &te.db) {
        Ok(need) => need,
        Err(why) => return Some(Explanation::Advice(why.text())),
    };
    let decider = te.decider();
    let refused = decider.explain(&need.source, &need.target, need.class, need.permissions);
    let reasons = reasons(&need, &refused, &te.db);
    if reasons.is_empty() {
        return Some(Explanation::Advice(
            "by the policy in force it would not be refused now".into(),
        ));
    }
    let db = &te.db;
    Some(Explanation::Refused(TeRefusal {
        source: db.type_text(need.source.kind).to_owned(),
        target: db.type_text(need.target.kind).to_owned(),
        class: db.classes[need.class as usize - 1].name.clone(),
        reasons,
    }))
}

/// What refuses, in the policy's words.
pub fn reasons(need: &Need, refused: &[Refused], db: &PolicyDb) -> Vec<TeReason> {
    let mut all = Vec::new();
    for of in refused {
        let names = db.permission_names(need.class, of.permissions);
        let reason = |kind, rule| TeReason {
            kind,
            permissions: names.iter().map(|&name| name.to_owned()).collect(),
            rule,
            booleans: Vec::new(),
        };
        let allow = |source, target| {
            Some(format!(
                "allow {} {}:{} {};",
                db.type_text(source),
                db.type_text(target),
                db.classes[need.class as usize - 1].name,
                db.permissions_text(need.class, of.permissions)
            ))
        };
        for because in &of.because {
            match because {
                Because::NoRule(dormant) if dormant.is_empty() => {
                    all.push(reason(
                        Kind::NoRule,
                        allow(need.source.kind, need.target.kind),
                    ));
                }
                Because::NoRule(dormant) => {
                    all.extend(by_booleans(dormant, db).map(|(rule, booleans)| TeReason {
                        booleans,
                        ..reason(Kind::Boolean, Some(rule))
                    }))
                }
                Because::Constraint(at) => {
                    let constraint = &db.classes[need.class as usize - 1].constraints[*at];
                    let text = db.constraint_text(need.class, constraint);
                    all.push(reason(Kind::Constraint, Some(text)));
                }
                Because::Role => {
                    let role = |number: u32| &db.roles[number as usize - 1].name;
                    let [from, to] = [role(need.source.role), role(need.target.role)];
                    all.push(reason(Kind::Role, Some(format!("allow {from} {to};"))));
                }
                Because::Bounds { source, target } => {
                    all.push(reason(Kind::Bounds, allow(source.kind, target.kind)));
                }
            }
        }
    }
    if !need.unknown.is_empty() {
        all.push(TeReason {
            kind: Kind::Unknown,
            permissions: need.unknown.clone(),
            rule: None,
            booleans: Vec::new(),
        });
    }
    all
}

/// What would fix a refusal that was predicted, a line each.
pub fn fixes(te: &Te, decider: &Decider<'_>, denied: &Denied) -> Vec<String> {
    let db = &te.db;
    let Some(need) = Need::of_denied(denied, db) else {
        return Vec::new();
    };
    let refused = decider.explain(&need.source, &need.target, need.class, need.permissions);
    let line = |reason: TeReason| match (reason.kind, reason.rule) {
        (Kind::Boolean, rule) => format!(
            "fix: --te-boolean {}   (the rule: {})",
            reason.booleans.join(" --te-boolean "),
            rule.unwrap_or_default()
        ),
        (Kind::Constraint, rule) => format!("the constraint: {}", rule.unwrap_or_default()),
        (_, rule) => format!("fix: {}", rule.unwrap_or_default()),
    };
    let reasons = reasons(&need, &refused, db).into_iter();
    reasons.map(|reason| printable(&line(reason))).collect()
}

/// A rule for each way of setting booleans, those of the fewest first.
fn by_booleans(dormant: &[Dormant], db: &PolicyDb) -> impl Iterator<Item = (String, Vec<String>)> {
    let mut sorted: Vec<&Dormant> = dormant.iter().collect();
    sorted.sort_by_key(|it| it.settings.len());
    let mut ways: Vec<(String, Vec<String>)> = Vec::new();
    for it in sorted {
        let settings = it.settings.iter().map(|&(number, value)| {
            let name = &db.booleans[number as usize - 1].name;
            format!("{name}={}", if value { "on" } else { "off" })
        });
        let settings: Vec<_> = settings.collect();
        if !ways.iter().any(|(_, known)| *known == settings) {
            let conditional = &db.conditionals[it.conditional];
            let rule = db.conditional_rule_text(&it.rule, conditional, it.when);
            ways.push((rule, settings));
        }
    }
    ways.into_iter()
}

#[cfg(test)]
mod tests {
    use tidegate_bundle::te::db::{Bitmap, Constraint, Part, Side, Symbol, Term};
    use tidegate_bundle::te::example::example;
    use tidegate_bundle::te::policydb::pack::pack;

    use super::*;

    fn te(change: impl FnOnce(&mut PolicyDb)) -> Te {
        let mut db = example(34);
        change(&mut db);
        Te::read(pack(&db)).unwrap()
    }

    fn record(source: &str, target: &str, class: &str, denied: &str) -> Record {
        Record {
            kind: "denied".into(),
            scontext: Some(source.into()),
            tcontext: Some(target.into()),
            tclass: Some(class.into()),
            denied: Some(denied.into()),
            ..Record::default()
        }
    }

    fn said(te: &Te, record: &Record) -> Vec<String> {
        match explain(record, te).unwrap() {
            Explanation::Refused(of) => of.lines(&Shown {
                all: false,
                map: "",
            }),
            Explanation::Advice(advice) => vec![advice],
        }
    }

    const AIDE: &str = "ann:clerk:aide_t:s0";
    const DOC: &str = "ann:object_r:file_t:s0";

    #[test]
    fn the_rule_that_lacks_is_named() {
        let plain = te(|_| {});
        let new = record("ann:auditor:new_t:s0", DOC, "file", "read write");
        let lines = said(&plain, &new);
        assert_eq!(
            lines[0],
            "te: new_t may not { read write } file_t:file: no rule allows it"
        );
        assert!(lines[1].starts_with("fix: allow new_t file_t:file { read write };"));
        assert_eq!(lines.len(), 2);
        let roles = said(
            &plain,
            &record(
                "ann:auditor:boss_t:s0",
                "ann:clerk:boss_t:s0",
                "process",
                "transition",
            ),
        );
        assert!(
            roles[1].starts_with("fix: allow auditor clerk;"),
            "{roles:?}"
        );
        assert_eq!(
            said(&plain, &record(AIDE, DOC, "file", "read")),
            ["by the policy in force it would not be refused now"]
        );
        let gone = said(
            &plain,
            &record(AIDE, "ann:object_r:gone_t:s0", "file", "read"),
        );
        assert!(gone[0].contains("no context `ann:object_r:gone_t:s0`"));
        let unknown = said(&plain, &record(AIDE, DOC, "file", "fly"));
        assert!(unknown[0].contains("does not know the permission"));
    }

    #[test]
    fn a_boolean_is_named_with_its_rule() {
        let mut te = te(|db| {
            db.types[1].bounds = None;
        });
        te.set("strict", true).unwrap();
        let lines = said(&te, &record(AIDE, DOC, "file", "ioctl"));
        assert_eq!(
            lines[1],
            "    the rule: allow aide_t file_t:file ioctl; [ ! strict && open ]:True"
        );
        assert_eq!(lines[2], "fix: --te-boolean strict=off");
    }

    #[test]
    fn a_constraint_is_printed_and_what_bounds_is_named() {
        let nobody = Term::Among(
            Part {
                of: Side::Source,
                what: Symbol::Type,
            },
            tidegate_bundle::te::db::Operator::Differs,
            [0, 1].into_iter().collect::<Bitmap>(),
            Bitmap::new(),
        );
        let te = te(|db| {
            db.classes[1].constraints.push(Constraint {
                permissions: 0b1,
                expression: vec![nobody],
            });
        });
        let lines = said(&te, &record(AIDE, DOC, "file", "read"));
        assert_eq!(
            lines[1],
            "    the constraint: constrain file read (t1 != staff);"
        );
        assert!(lines[3].starts_with("fix: allow boss_t file_t:file read;"));
    }
}
