//! A shorter sequence that fails, too.

/// Leaves out parts, halves first and single ones last, for as long as what is left fails. `tries`: how often it may be played.
pub fn shortest<T: Clone>(all: &[T], tries: usize, mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut left = all.to_vec();
    let mut size = left.len().div_ceil(2);
    let mut played = 0;
    while size > 0 {
        let (before, mut at) = (left.len(), 0);
        while at < left.len() {
            if played == tries {
                return left;
            }
            played += 1;
            let end = left.len().min(at + size);
            let without = [&left[..at], &left[end..]].concat();
            match fails(&without) {
                true => left = without,
                false => at = end,
            }
        }
        // single ones again, for as long as one goes
        if size > 1 || left.len() == before {
            size /= 2;
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_to_fail_stays() {
        let all: Vec<u32> = (0..70).collect();
        let fails = |some: &[u32]| some.contains(&3) && some.contains(&41) && some.contains(&42);
        assert_eq!(shortest(&all, 1000, fails), [3, 41, 42]);
        // one that goes only once another has gone
        let fails = |some: &[u32]| some.contains(&8) || !some.contains(&7);
        assert_eq!(shortest(&[7, 8], 1000, fails), Vec::<u32>::new());
        assert_eq!(shortest(&all, 1000, |_| true), Vec::<u32>::new());
    }

    #[test]
    fn it_is_played_so_often_and_no_more() {
        let all: Vec<u32> = (0..70).collect();
        let mut played = 0;
        let left = shortest(&all, 5, |some| {
            played += 1;
            some.contains(&69)
        });
        assert_eq!(played, 5);
        assert!(left.contains(&69) && left.len() < 40);
    }
}
