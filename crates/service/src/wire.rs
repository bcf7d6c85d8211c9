//! The form of messages: `kernel/abi/caps_wire.h`.

use crate::error::Malformed;

/// Operands of a request at most.
pub const MAX_OPERANDS: usize = 8;
/// Bytes of a name at most.
pub const MAX_NAME: usize = 255;

pub(crate) const REQUEST_HEAD: usize = 16;
pub(crate) const REPLY_HEAD: usize = 24;
const OPERAND_HEAD: usize = 8;

const NUMBER: u8 = 1;
const NAME: u8 = 2;
const DESCRIPTOR: u8 = 3;

const BOUND: u32 = 1;
const DROPPED: u32 = 2;

/// An operand of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand {
    /// A number.
    Number(u64),
    /// The name of an object of the service's: 1 to 255 bytes, none of them 0.
    Name(Vec<u8>),
    /// A descriptor that a reply has given on this connection.
    Descriptor(u64),
}

/// A request to a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The operation's number, as the capability file has it.
    pub operation: u32,
    /// By which it is answered; the client's choice.
    pub id: u32,
    /// What is authorised, and what says for what: [`MAX_OPERANDS`] at most.
    pub operands: Vec<Operand>,
    /// What the service knows the meaning of. Nobody authorises it.
    pub payload: Vec<u8>,
}

/// What a reply makes of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It stands for the object that the request named first.
    Bound(u64),
    /// It stands for nothing any more.
    Dropped(u64),
}

/// A reply to a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// The request's.
    pub id: u32,
    /// The service's own.
    pub status: u32,
    /// A descriptor that is given or taken.
    pub change: Option<Change>,
    /// What the client knows the meaning of.
    pub payload: Vec<u8>,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes(word.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let word = bytes.get(at..at + 2)?;
    Some(u16::from_le_bytes(word.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(word.try_into().ok()?))
}

/// Bytes of a message that begins so, as its head says; none: there is not all of a head yet.
pub(crate) fn length(bytes: &[u8], head: usize) -> Option<Result<usize, Malformed>> {
    bytes.get(..head)?;
    let length = u32_at(bytes, 0)? as usize;
    Some(match length < head {
        true => Err(Malformed::Length),
        false => Ok(length),
    })
}

impl Operand {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let mut put = |kind: u8, content: &[u8]| {
            out.extend([kind, 0]);
            out.extend((content.len() as u16).to_le_bytes());
            out.extend([0; 4]);
            out.extend(content);
            out.resize(out.len().next_multiple_of(8), 0);
        };
        match self {
            Operand::Number(value) => put(NUMBER, &value.to_le_bytes()),
            Operand::Descriptor(value) => put(DESCRIPTOR, &value.to_le_bytes()),
            Operand::Name(name) if is_name(name) => put(NAME, name),
            Operand::Name(_) => return Err(Malformed::Name),
        }
        Ok(())
    }

    /// The first operand of some bytes, and what is behind it.
    fn decode(bytes: &[u8]) -> Result<(Operand, &[u8]), Malformed> {
        let (head, rest) = bytes
            .split_at_checked(OPERAND_HEAD)
            .ok_or(Malformed::Operands)?;
        let len = usize::from(u16_at(head, 2).ok_or(Malformed::Operands)?);
        let (padded, rest) = rest
            .split_at_checked(len.next_multiple_of(8))
            .ok_or(Malformed::Operands)?;
        let (content, padding) = padded.split_at(len);
        if head[1] != 0 || head[4..].iter().chain(padding).any(|&byte| byte != 0) {
            return Err(Malformed::Zero);
        }
        let operand = match (head[0], u64_at(content, 0)) {
            (NAME, _) if is_name(content) => Operand::Name(content.to_vec()),
            (NAME, _) => return Err(Malformed::Name),
            (NUMBER, Some(value)) if len == 8 => Operand::Number(value),
            (DESCRIPTOR, Some(value)) if len == 8 => Operand::Descriptor(value),
            (NUMBER | DESCRIPTOR, _) => return Err(Malformed::Operands),
            _ => return Err(Malformed::Kind),
        };
        Ok((operand, rest))
    }
}

fn is_name(name: &[u8]) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && !name.contains(&0)
}

/// A message's length in its first bytes.
fn seal(mut message: Vec<u8>) -> Result<Vec<u8>, Malformed> {
    let length = u32::try_from(message.len()).map_err(|_| Malformed::Length)?;
    message[..4].copy_from_slice(&length.to_le_bytes());
    Ok(message)
}

impl Request {
    /// The message.
    ///
    /// # Errors
    ///
    /// If there is no such message: too many operands, a name that is none, more than 4 GiB.
    pub fn encode(&self) -> Result<Vec<u8>, Malformed> {
        if self.operands.len() > MAX_OPERANDS {
            return Err(Malformed::Operands);
        }
        let mut out = vec![0; 4];
        out.extend(self.operation.to_le_bytes());
        out.extend(self.id.to_le_bytes());
        out.extend((self.operands.len() as u16).to_le_bytes());
        out.extend([0; 2]);
        for operand in &self.operands {
            operand.encode(&mut out)?;
        }
        let operands = (out.len() - REQUEST_HEAD) as u16;
        out[14..16].copy_from_slice(&operands.to_le_bytes());
        out.extend(&self.payload);
        seal(out)
    }

    /// Reads a whole message.
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn decode(message: &[u8]) -> Result<Request, Malformed> {
        if length(message, REQUEST_HEAD) != Some(Ok(message.len())) {
            return Err(Malformed::Length);
        }
        let word = |at| u32_at(message, at).ok_or(Malformed::Length);
        let half = |at| u16_at(message, at).ok_or(Malformed::Length);
        let (count, len) = (usize::from(half(12)?), usize::from(half(14)?));
        let (mut rest, payload) = message[REQUEST_HEAD..]
            .split_at_checked(len)
            .ok_or(Malformed::Length)?;
        if count > MAX_OPERANDS || len % 8 != 0 {
            return Err(Malformed::Operands);
        }
        let mut operands = Vec::with_capacity(count);
        for _ in 0..count {
            let (operand, behind) = Operand::decode(rest)?;
            operands.push(operand);
            rest = behind;
        }
        if !rest.is_empty() {
            return Err(Malformed::Operands);
        }
        Ok(Request {
            operation: word(4)?,
            id: word(8)?,
            operands,
            payload: payload.to_vec(),
        })
    }
}

impl Reply {
    /// An empty reply to a request.
    pub fn to(request: &Request) -> Reply {
        Reply {
            id: request.id,
            ..Reply::default()
        }
    }

    /// The message.
    ///
    /// # Errors
    ///
    /// If it has more than 4 GiB.
    pub fn encode(&self) -> Result<Vec<u8>, Malformed> {
        let (flags, descriptor) = match self.change {
            None => (0, 0),
            Some(Change::Bound(descriptor)) => (BOUND, descriptor),
            Some(Change::Dropped(descriptor)) => (DROPPED, descriptor),
        };
        let mut out = vec![0; 4];
        for word in [self.id, self.status, flags] {
            out.extend(word.to_le_bytes());
        }
        out.extend(descriptor.to_le_bytes());
        out.extend(&self.payload);
        seal(out)
    }

    /// Reads a whole message.
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn decode(message: &[u8]) -> Result<Reply, Malformed> {
        if length(message, REPLY_HEAD) != Some(Ok(message.len())) {
            return Err(Malformed::Length);
        }
        let word = |at| u32_at(message, at).ok_or(Malformed::Length);
        let descriptor = u64_at(message, 16).ok_or(Malformed::Length)?;
        let change = match word(12)? {
            0 if descriptor == 0 => None,
            BOUND => Some(Change::Bound(descriptor)),
            DROPPED => Some(Change::Dropped(descriptor)),
            _ => return Err(Malformed::Zero),
        };
        Ok(Reply {
            id: word(4)?,
            status: word(8)?,
            change,
            payload: message[REPLY_HEAD..].to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn operand() -> impl Strategy<Value = Operand> {
        prop_oneof![
            any::<u64>().prop_map(Operand::Number),
            any::<u64>().prop_map(Operand::Descriptor),
            vec(1..=255u8, 1..=MAX_NAME).prop_map(Operand::Name),
        ]
    }

    fn request() -> impl Strategy<Value = Request> {
        let words = (any::<u32>(), any::<u32>());
        (words, vec(operand(), 0..=8), vec(any::<u8>(), 0..100)).prop_map(
            |((operation, id), operands, payload)| Request {
                operation,
                id,
                operands,
                payload,
            },
        )
    }

    proptest! {
        #[test]
        fn requests_come_back(request in request()) {
            let message = request.encode().unwrap();
            prop_assert_eq!(Request::decode(&message), Ok(request));
        }

        #[test]
        fn there_is_one_form_of_each(request in request(), at in any::<prop::sample::Index>(), byte: u8) {
            let mut message = request.encode().unwrap();
            let at = at.index(message.len());
            message[at] = byte;
            if let Ok(other) = Request::decode(&message) {
                prop_assert_eq!(other.encode().unwrap(), message);
            }
        }

        #[test]
        fn replies_come_back(id: u32, status: u32, flags in 0..3, descriptor: u64, payload in vec(any::<u8>(), 0..100)) {
            let change = match flags {
                0 => None,
                1 => Some(Change::Bound(descriptor)),
                _ => Some(Change::Dropped(descriptor)),
            };
            let reply = Reply { id, status, change, payload };
            prop_assert_eq!(Reply::decode(&reply.encode().unwrap()), Ok(reply));
        }
    }

    #[test]
    fn a_request_is_laid_out_as_written_down() {
        let request = Request {
            operation: 1,
            id: 2,
            operands: vec![Operand::Name(b"ab".to_vec()), Operand::Descriptor(0x0102)],
            payload: b"xyz".to_vec(),
        };
        let mut bytes = vec![51, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 0, 32, 0];
        bytes.extend([2, 0, 2, 0, 0, 0, 0, 0, b'a', b'b', 0, 0, 0, 0, 0, 0]);
        bytes.extend([3, 0, 8, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
        bytes.extend(b"xyz");
        assert_eq!(request.encode(), Ok(bytes));
    }

    #[test]
    fn what_is_none_says_why() {
        let name = |name: &[u8]| Request {
            operands: vec![Operand::Name(name.to_vec())],
            ..Request::default()
        };
        assert_eq!(name(b"").encode(), Err(Malformed::Name));
        assert_eq!(name(b"a\0").encode(), Err(Malformed::Name));
        assert_eq!(name(&[b'a'; 256]).encode(), Err(Malformed::Name));
        let good = name(b"a").encode().unwrap();
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            Request::decode(&bytes)
        };
        assert_eq!(with(0, 31), Err(Malformed::Length));
        assert_eq!(with(12, 2), Err(Malformed::Operands));
        assert_eq!(with(12, 9), Err(Malformed::Operands));
        assert_eq!(with(14, 8), Err(Malformed::Operands));
        assert_eq!(with(16, 4), Err(Malformed::Kind));
        assert_eq!(with(16, 1), Err(Malformed::Operands));
        assert_eq!(with(17, 1), Err(Malformed::Zero));
        assert_eq!(with(31, 1), Err(Malformed::Zero));
    }
}
