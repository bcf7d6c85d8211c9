//! Lists within what is read as a whole: how long they are is checked before they are read.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// Reads a list of so many elements at most, for `deserialize_with`. Room is made for as many as there are said to be.
///
/// # Errors
///
/// There are said to be more, or one cannot be read.
pub(crate) fn list<'de, const MAX: usize, T, D>(from: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    from.deserialize_seq(List::<MAX, T>(PhantomData))
}

struct List<const MAX: usize, T>(PhantomData<T>);

impl<'de, const MAX: usize, T: Deserialize<'de>> Visitor<'de> for List<MAX, T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of {MAX} at most")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Vec<T>, A::Error> {
        let count = all.size_hint().unwrap_or(usize::MAX);
        if count > MAX {
            return Err(A::Error::invalid_length(count, &self));
        }
        let mut list = Vec::with_capacity(count);
        while let Some(one) = all.next_element()? {
            list.push(one);
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, Serialize, Deserialize)]
    struct Few {
        #[serde(deserialize_with = "super::list::<3, _, _>")]
        names: Vec<String>,
    }

    #[test]
    fn a_list_is_as_long_as_it_may_be() {
        let few = |count| Few {
            names: vec![String::new(); count],
        };
        let read = |bytes: &[u8]| postcard::from_bytes::<Few>(bytes).map(|few| few.names);
        for count in 0..=3 {
            let bytes = postcard::to_allocvec(&few(count)).unwrap();
            let names = read(&bytes).unwrap();
            assert_eq!((names.len(), names.capacity()), (count, count));
        }
        assert!(read(&postcard::to_allocvec(&few(4)).unwrap()).is_err());
        // what is said to be there, and is not
        assert!(read(&[3, 0]).is_err());
    }
}
