//! What would let through what an object manager in user space refused.

use std::sync::Arc;

use tidegate_audit::Record;
use tidegate_bundle::Policy;
use tidegate_bundle::te::db::{Rule, Says};
use tidegate_bundle::te::decide::Decider;

use crate::explanation::{Explain, Explanation, Shown};

/// What refused is not told further: all that is said of an object manager's refusal is advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnlyAdvice {}

impl Explain for OnlyAdvice {
    fn explain(chain: &[Record], policy: &Arc<Policy>) -> Option<Explanation<OnlyAdvice>> {
        advice(chain.first()?, policy).map(Explanation::Advice)
    }

    fn lines(&self, _shown: &Shown<'_>) -> Vec<String> {
        match *self {}
    }
}

/// The rule that a SELinux policy would need, and whether it would do: tried with the policy in force. `None`: no object
/// manager refused, or the policy in force has no say in it.
fn advice(record: &Record, policy: &Policy) -> Option<String> {
    record.manager.as_ref()?;
    let te = policy.te.as_ref()?;
    let db = &te.db;
    let context = |text: &Option<String>| db.context(text.as_deref()?).ok();
    let denied = record.denied.as_deref()?;
    let class = record.tclass.as_deref()?;
    let (Some(source), Some(target)) = (context(&record.scontext), context(&record.tcontext))
    else {
        return Some("the policy in force does not have its contexts".into());
    };
    let Some(number) = db.class(class) else {
        return Some(format!("the policy in force has no class `{class}`"));
    };
    let mut bits = 0;
    for name in denied.split_whitespace() {
        let Some(bit) = db.permission(number, name) else {
            return Some(format!("its class {class} has no permission `{name}`"));
        };
        bits |= bit;
    }
    if bits & !te.decider().access(&source, &target, number).allowed == 0 {
        return Some("the policy in force allows it by now".into());
    }
    let names = [&source, &target].map(|c| db.types[c.kind as usize - 1].name.as_str());
    let rule = format!("(allow {} {} ({class} ({denied})))", names[0], names[1]);
    let mut with = db.clone();
    with.rules.push(Rule {
        source: source.kind,
        target: target.kind,
        class: number,
        says: Says::Allow(bits),
    });
    let after = Decider::new(&with, &te.values()).access(&source, &target, number);
    Some(match bits & !after.allowed {
        0 => format!("of a map; the SELinux policy lacks {rule}"),
        _ => format!(
            "of a map; {rule} would not do, as a constraint or what bounds the type says no"
        ),
    })
}
