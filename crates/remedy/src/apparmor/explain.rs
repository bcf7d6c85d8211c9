//! A profile's refusal, explained.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidegate_audit::{Record, printable};
use tidegate_bundle::Policy;
use tidegate_bundle::profile::ProfileSet;

use super::bench::{Added, Bench};
use super::gather::look;
use super::need::{Known, Need, Object};
use super::plan::by;
use super::rule::Rule;
use super::verdict::{Verdict, verdict};
use crate::explanation::{Explain, Explanation, Shown};

/// Which profile refused, why, and the rule that would allow it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amendment {
    /// The profile.
    pub profile: String,
    /// The class of rules that decided: `file`, `capability`, `network`, …
    pub class: String,
    /// How the subject came to be confined by it, as far as its program tells.
    pub how: String,
    /// What refused it.
    pub because: String,
    /// The rule that would allow it, if there is no `deny`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The file that it belongs in, if the profiles' files were named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What the record does not tell, so that the rule does not ask for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Explain for Amendment {
    fn explain(chain: &[Record], policy: &Arc<Policy>) -> Option<Explanation<Amendment>> {
        explain(chain.first()?, &policy.profiles)
    }

    fn lines(&self, _shown: &Shown<'_>) -> Vec<String> {
        let profile = printable(&self.profile);
        let mut lines = vec![
            format!(
                "profile: {profile} ({}): {}",
                self.class,
                printable(&self.because)
            ),
            format!("    how: {}", printable(&self.how)),
        ];
        let Some(rule) = &self.rule else {
            lines.push("fix: no rule: what a `deny` refuses, no other rule allows".into());
            return lines;
        };
        let place = match &self.file {
            Some(file) => format!("in {}, tried", printable(file)),
            None => format!("in profile {profile}; `tidegate learn --profile` puts it there"),
        };
        lines.push(format!("fix: {}   ({place})", printable(rule)));
        lines.extend(self.notes.iter().map(|note| format!("    note: {note}")));
        lines
    }
}

/// What there is to say of a record under a policy's profiles; `None`: it is no profile's refusal.
pub fn explain(record: &Record, set: &ProfileSet) -> Option<Explanation<Amendment>> {
    if !record.is_denial() || !Need::is_told_by(record) {
        return None;
    }
    let advice = Explanation::Advice;
    let need = match Need::of(record, Known::default()) {
        Ok(need) => need,
        Err(why) => return Some(advice(why.text().into())),
    };
    let denied = match verdict(set, &need) {
        Verdict::NoProfile => {
            let text = format!("there is no profile `{}` any more", need.profile);
            return Some(advice(text));
        }
        Verdict::Allowed => {
            return Some(advice("it would not be refused now".into()));
        }
        Verdict::Denied => true,
        Verdict::Refused => false,
    };
    let rule = Rule::new(&need, set);
    let amendment = Amendment {
        class: class(&need.object).into(),
        how: how(record, &need, set),
        because: match denied {
            true => "a `deny` refuses it".into(),
            false => "no rule allows it, or a `deny` refuses it".into(),
        },
        rule: (!denied).then_some(rule.text),
        file: None,
        notes: rule.notes.iter().map(|note| (*note).to_owned()).collect(),
        profile: need.profile,
    };
    Some(Explanation::Refused(amendment))
}

/// The same where the profiles' files can be read: by which `deny`, or that the rule was tried.
pub fn explain_by(record: &Record, bench: &Bench) -> Option<Explanation<Amendment>> {
    let mut amendment = match explain(record, &bench.set)? {
        Explanation::Refused(amendment) => amendment,
        advice => return Some(advice),
    };
    let Ok(mut need) = Need::of(record, Known::default()) else {
        return Some(Explanation::Refused(amendment));
    };
    look(&mut need, record);
    if let Some(deny) = bench.denies(&need) {
        amendment.because = by(deny);
        amendment.rule = None;
        return Some(Explanation::Refused(amendment));
    }
    amendment.because = "no rule allows it".into();
    let file = bench.file_for(&need.profile);
    amendment.file = file.map(|file| file.display().to_string());
    let rule = Rule::new(&need, &bench.set);
    let added = Added::from([(need.profile.clone(), vec![rule.text.clone()])]);
    let allowed = |set| verdict(&set, &need) == Verdict::Allowed;
    let helps = bench.with(&added).map(allowed);
    match helps {
        Ok(true) => {
            amendment.rule = Some(rule.text);
            amendment.notes = rule.notes.iter().map(|note| (*note).to_owned()).collect();
        }
        Ok(false) => amendment.rule = None,
        Err(why) => {
            amendment.rule = None;
            amendment.because = format!("no rule allows it; {why}");
        }
    }
    Some(Explanation::Refused(amendment))
}

/// No record tells of a profile's beginning; whether the profile is for the program says something.
fn how(record: &Record, need: &Need, set: &ProfileSet) -> String {
    let subject = record.subject.as_ref();
    // it may have been the other process's
    let subject = subject.filter(|s| s.profile.as_ref() == Some(&need.profile));
    let Some(program) = subject.and_then(|s| s.exe.as_deref()) else {
        return "its program was gone before it could be asked for its file".into();
    };
    let found = set.attached(program.as_bytes(), None);
    match found.is_some_and(|at| set.profiles[at].name == need.profile) {
        true => format!("the profile is for its program, {program}"),
        false => format!(
            "the profile is not for its program, {program}: it was executed by a rule of a profile, \
             in complain mode, as an interpreter, or by `tidegate run`"
        ),
    }
}

fn class(object: &Object) -> &'static str {
    match object {
        Object::File(_) => "file",
        Object::Link(..) => "link",
        Object::Capability(_) => "capability",
        Object::Network(..) => "network",
        Object::Signal(..) => "signal",
        Object::Ptrace(_) => "ptrace",
        Object::Mount(_) => "mount",
        Object::Umount(_) => "umount",
        Object::Pivot(_) => "pivot_root",
        Object::Userns => "userns",
        Object::ChangeProfile(_) => "change_profile",
    }
}
