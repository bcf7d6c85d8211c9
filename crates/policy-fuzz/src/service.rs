//! Requests to services, and replies.

use tidegate_service::{Change, Operand, Reply, Request};

/// Reads any bytes.
///
/// # Panics
///
/// If a message that is read is not the same again when it is written.
pub fn read(bytes: &[u8]) {
    if let Ok(request) = Request::decode(bytes) {
        assert_eq!(request.encode().as_deref(), Ok(bytes));
    }
    if let Ok(reply) = Reply::decode(bytes) {
        assert_eq!(reply.encode().as_deref(), Ok(bytes));
    }
}

/// A request with each kind of operand.
///
/// # Panics
///
/// If it cannot be written.
pub fn good() -> Vec<u8> {
    let request = Request {
        operation: 1,
        id: 2,
        operands: vec![
            Operand::Name(b"pub:plans".to_vec()),
            Operand::Number(3),
            Operand::Descriptor(4),
        ],
        payload: b"payload".to_vec(),
    };
    request.encode().expect("it is one")
}

/// A reply that gives a descriptor.
///
/// # Panics
///
/// If it cannot be written.
pub fn good_reply() -> Vec<u8> {
    let reply = Reply {
        id: 2,
        status: 3,
        change: Some(Change::Bound(4)),
        payload: b"payload".to_vec(),
    };
    reply.encode().expect("it is one")
}

/// The message with changes: each pair of input bytes is a place and the byte to put there. Its length is right again.
pub fn changed(good: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut message = good.to_vec();
    for pair in changes.chunks_exact(2) {
        let at = usize::from(pair[0]) % message.len();
        message[at] = pair[1];
    }
    let length = message.len() as u32;
    message[..4].copy_from_slice(&length.to_le_bytes());
    message
}
