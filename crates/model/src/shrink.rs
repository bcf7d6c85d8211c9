//! The shortest sequence that still shows what a long one showed.

use crate::Op;

/// Leaves out operations for as long as what is left still `fails`, at most
/// `tries` times asked. An operation that makes no sense without another that
/// was left out is for `fails` to skip.
pub fn shrink(ops: &[Op], tries: u32, mut fails: impl FnMut(&[Op]) -> bool) -> Vec<Op> {
    let mut best = ops.to_vec();
    let mut left = tries;
    let mut part = best.len().div_ceil(2);
    while part > 0 {
        let mut at = 0;
        let mut shorter = false;
        while at < best.len() {
            if left == 0 {
                return best;
            }
            left -= 1;
            let mut fewer = best.clone();
            fewer.drain(at..(at + part).min(best.len()));
            if fails(&fewer) {
                best = fewer;
                shorter = true;
            } else {
                at += part;
            }
        }
        if part > 1 {
            part = part.div_ceil(2);
        } else if !shorter {
            part = 0;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Act;

    #[test]
    fn keeps_what_is_needed_and_nothing_else() {
        let ops: Vec<Op> = (0..40)
            .map(|slot| Op {
                who: 0,
                second: false,
                act: Act::Close { slot },
            })
            .collect();
        let needed = [&ops[7], &ops[23]];
        let found = shrink(&ops, 500, |some| needed.iter().all(|op| some.contains(op)));
        assert_eq!(found, [ops[7].clone(), ops[23].clone()]);
    }
}
