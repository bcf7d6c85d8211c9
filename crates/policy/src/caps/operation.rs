//! Operation authorizations: what a service's operations need.

use tidegate_bundle::limits::{MAX_OPERANDS, MAX_VECTOR};

use super::CapsProblem as Problem;
use super::syntax::{Fault, Words, bad_number, name, number, twice, unknown};
use crate::words::Spanned;

/// `operation NUMBER NAME …`.
#[derive(Debug)]
pub(super) struct OperationStatement<'s> {
    pub number: Spanned<u32>,
    pub name: Spanned<&'s str>,
    pub kind: KindStatement<'s>,
}

/// What it needs.
#[derive(Debug)]
pub(super) enum KindStatement<'s> {
    Free,
    Bind(Vec<NeedStatement<'s>>),
    Active(Vec<NeedStatement<'s>>),
}

/// `operand I PERMISSION…` or `operand I by operand J { VALUE PERMISSION… … }`.
#[derive(Debug)]
pub(super) struct NeedStatement<'s> {
    pub operand: u8,
    pub rights: RightsStatement<'s>,
}

#[derive(Debug)]
pub(super) enum RightsStatement<'s> {
    Fixed(Vec<Spanned<&'s str>>),
    By { operand: u8, vector: Vector<'s> },
}

/// Values and the permissions that each stands for.
type Vector<'s> = Vec<(u64, Vec<Spanned<&'s str>>)>;

const KINDS: [&str; 3] = ["bind", "active", "free"];
const FORM: &str = "write `operand 1 read`, or `operand 1 by operand 2 { 0 read  1 write }`, counting operands from 1";

/// Reads an operation, whose first word is taken.
pub(super) fn statement<'s>(mut words: Words<'_, 's>) -> Result<OperationStatement<'s>, Fault> {
    let word = words.word("an operation's number", "as it stands in a request")?;
    let Some(value) = number(word.value) else {
        return Err(bad_number(
            &word,
            "operation's number",
            "write 0 to 4294967295",
        ));
    };
    let number = word.with(value);
    let name = name(&mut words, "an operation's name")?;
    let kind = words.word("`bind`, `active` or `free`", "say what the operation needs")?;
    let kind = match kind.value {
        "free" => KindStatement::Free,
        "bind" => KindStatement::Bind(needs(&mut words)?),
        "active" => KindStatement::Active(needs(&mut words)?),
        _ => return Err(unknown(&kind, "type of operation", "the types are", KINDS)),
    };
    words.finish(OperationStatement { number, name, kind })
}

fn needs<'s>(words: &mut Words<'_, 's>) -> Result<Vec<NeedStatement<'s>>, Fault> {
    let mut needs: Vec<NeedStatement<'_>> = Vec::new();
    while needs.is_empty() || words.peek().is_some() {
        let word = operand(words)?;
        if needs.iter().any(|need| need.operand == word.1) {
            return Err(twice(&word.0, "the operand"));
        }
        if needs.len() == MAX_OPERANDS {
            return Err(word.0.with(Problem::OPERANDS));
        }
        let rights = match words.take("by") {
            false => RightsStatement::Fixed(permissions(words)?),
            true => RightsStatement::By {
                operand: operand(words)?.1,
                vector: vector(words)?,
            },
        };
        let operand = word.1;
        needs.push(NeedStatement { operand, rights });
    }
    Ok(needs)
}

fn operand<'s>(words: &mut Words<'_, 's>) -> Result<(Spanned<&'s str>, u8), Fault> {
    if !words.take("operand") {
        let next = words.next();
        return Err(words.expected(next, "`operand`", FORM));
    }
    let word = words.word("an operand's number", FORM)?;
    match number(word.value).filter(|number| (1..=MAX_OPERANDS).contains(number)) {
        Some(number) => Ok((word, number as u8)),
        None => Err(bad_number(&word, "operand's number", "operands are 1 to 8")),
    }
}

/// Permissions up to what cannot be one; one at least.
fn permissions<'s>(words: &mut Words<'_, 's>) -> Result<Vec<Spanned<&'s str>>, Fault> {
    let mut all = Vec::new();
    loop {
        let is_end = words.peek().is_none_or(|token| {
            token.is("operand")
                || token.is("}")
                || token.text.starts_with(|c: char| c.is_ascii_digit())
        });
        if is_end && !all.is_empty() {
            return Ok(all);
        }
        if is_end {
            let next = words.next();
            return Err(words.expected(next, "a permission of the service", FORM));
        }
        all.push(words.word("a permission of the service", FORM)?);
    }
}

fn vector<'s>(words: &mut Words<'_, 's>) -> Result<Vector<'s>, Fault> {
    if !words.take("{") {
        let next = words.next();
        return Err(words.expected(next, "`{`", FORM));
    }
    let mut vector = Vec::new();
    while vector.is_empty() || !words.take("}") {
        let word = words.word("a value of the operand", FORM)?;
        let Some(value) = number(word.value) else {
            return Err(bad_number(
                &word,
                "value of an operand",
                "values are whole numbers of 64 bits",
            ));
        };
        if vector.iter().any(|&(known, _)| known == value) {
            return Err(twice(&word, "the value"));
        }
        if vector.len() == MAX_VECTOR {
            return Err(word.with(Problem::VECTOR));
        }
        vector.push((value, permissions(words)?));
    }
    Ok(vector)
}
