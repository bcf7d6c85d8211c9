//! What a SELinux policy has, as sesearch(1) and seinfo(1) of setools list it.

mod args;
mod info;
mod search;

use tidegate_bundle::te::db::{Level, PolicyDb, Range};

pub use args::{Seinfo, Sesearch};
pub use info::list;
pub use search::Search;

/// A range as setools write it: with a space on both sides of the dash.
fn range_text(db: &PolicyDb, range: &Range) -> String {
    let [low, high] = [&range.low, &range.high].map(|level| level_text(db, level));
    match low == high {
        true => low,
        false => format!("{low} - {high}"),
    }
}

/// A level as setools write it: two categories that follow each other are a run, too, where the kernel lists them.
fn level_text(db: &PolicyDb, level: &Level) -> String {
    let mut text = db.sensitivities[level.sensitivity as usize - 1]
        .name
        .clone();
    let has = |at: usize| level.categories.contains(at);
    let firsts = level
        .categories
        .ones()
        .filter(|&at| at == 0 || !has(at - 1));
    for (number, first) in firsts.enumerate() {
        let last = (first..).take_while(|&at| has(at)).last().unwrap_or(first);
        text.push(if number == 0 { ':' } else { ',' });
        text += &db.categories[first].name;
        if last > first {
            text.push('.');
            text += &db.categories[last].name;
        }
    }
    text
}
