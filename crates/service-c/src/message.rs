//! Requests and replies as C has them.

use std::slice;

use tidegate_boundary::Fault;
use tidegate_service::{Change, MAX_NAME, MAX_OPERANDS, Operand, Reply, Request};

/// `enum tg_operand_kind`.
const NUMBER: u32 = 1;
const NAME: u32 = 2;
const DESCRIPTOR: u32 = 3;

/// `enum tg_change`.
const NONE: u32 = 0;
const BOUND: u32 = 1;
const DROPPED: u32 = 2;

/// `struct tg_operand`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct COperand {
    kind: u32,
    name_len: u32,
    name: *const u8,
    value: u64,
}

/// `struct tg_request`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CRequest {
    pub operation: u32,
    pub id: u32,
    pub operands: *const COperand,
    pub operands_count: usize,
    pub payload: *const u8,
    pub payload_len: usize,
}

/// `struct tg_reply`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CReply {
    pub id: u32,
    pub status: u32,
    pub change: u32,
    pub descriptor: u64,
    pub payload: *const u8,
    pub payload_len: usize,
}

impl Default for CRequest {
    fn default() -> CRequest {
        CRequest::of(&Request::default(), &[])
    }
}

impl Default for CReply {
    fn default() -> CReply {
        CReply::of(&Reply::default())
    }
}

/// Bytes of C's.
///
/// # Safety
/// There are so many, or none.
unsafe fn bytes(at: *const u8, len: usize) -> Result<Vec<u8>, Fault> {
    match len {
        0 => Ok(Vec::new()),
        _ if at.is_null() => Err(Fault::NULL),
        _ if len > isize::MAX as usize => Err(Fault::invalid("more bytes than there can be")),
        // SAFETY: as the caller has it.
        _ => Ok(unsafe { slice::from_raw_parts(at, len) }.to_vec()),
    }
}

impl COperand {
    pub fn number(value: u64) -> COperand {
        COperand::of(&Operand::Number(value))
    }

    pub fn name(name: &[u8]) -> COperand {
        COperand {
            kind: NAME,
            name_len: name.len() as u32,
            name: name.as_ptr(),
            value: 0,
        }
    }

    /// As C has it, as long as the other lives.
    pub fn of(operand: &Operand) -> COperand {
        let plain = |kind, value| COperand {
            kind,
            name_len: 0,
            name: std::ptr::null(),
            value,
        };
        match operand {
            Operand::Number(value) => plain(NUMBER, *value),
            Operand::Descriptor(value) => plain(DESCRIPTOR, *value),
            Operand::Name(name) => COperand::name(name),
        }
    }

    /// # Safety
    /// Its name is there.
    unsafe fn read(&self) -> Result<Operand, Fault> {
        let len = self.name_len as usize;
        match self.kind {
            NUMBER => Ok(Operand::Number(self.value)),
            DESCRIPTOR => Ok(Operand::Descriptor(self.value)),
            NAME if len > MAX_NAME => Err(Fault::invalid("a name has 255 bytes at most")),
            // SAFETY: as the caller has it.
            NAME => Ok(Operand::Name(unsafe { bytes(self.name, len)? })),
            _ => Err(Fault::invalid("an operand is of no known kind")),
        }
    }
}

impl CRequest {
    /// As C has it, as long as the others live.
    pub fn of(request: &Request, operands: &[COperand]) -> CRequest {
        CRequest {
            operation: request.operation,
            id: request.id,
            operands: operands.as_ptr(),
            operands_count: operands.len(),
            payload: request.payload.as_ptr(),
            payload_len: request.payload.len(),
        }
    }

    /// # Safety
    /// What it points to is there.
    pub unsafe fn read(&self) -> Result<Request, Fault> {
        if self.operands_count > MAX_OPERANDS {
            return Err(Fault::invalid("a request has 8 operands at most"));
        }
        let operands = match self.operands_count {
            0 => &[],
            _ if self.operands.is_null() => return Err(Fault::NULL),
            // SAFETY: as the caller has it.
            count => unsafe { slice::from_raw_parts(self.operands, count) },
        };
        Ok(Request {
            operation: self.operation,
            id: self.id,
            operands: operands
                .iter()
                // SAFETY: as the caller has it.
                .map(|operand| unsafe { operand.read() })
                .collect::<Result<_, _>>()?,
            // SAFETY: as the caller has it.
            payload: unsafe { bytes(self.payload, self.payload_len)? },
        })
    }
}

impl CReply {
    /// As C has it, as long as the other lives.
    pub fn of(reply: &Reply) -> CReply {
        let (change, descriptor) = match reply.change {
            None => (NONE, 0),
            Some(Change::Bound(descriptor)) => (BOUND, descriptor),
            Some(Change::Dropped(descriptor)) => (DROPPED, descriptor),
        };
        CReply {
            id: reply.id,
            status: reply.status,
            change,
            descriptor,
            payload: reply.payload.as_ptr(),
            payload_len: reply.payload.len(),
        }
    }

    /// # Safety
    /// What it points to is there.
    pub unsafe fn read(&self) -> Result<Reply, Fault> {
        let change = match self.change {
            NONE => None,
            BOUND => Some(Change::Bound(self.descriptor)),
            DROPPED => Some(Change::Dropped(self.descriptor)),
            _ => return Err(Fault::invalid("a change that is none")),
        };
        Ok(Reply {
            id: self.id,
            status: self.status,
            change,
            // SAFETY: as the caller has it.
            payload: unsafe { bytes(self.payload, self.payload_len)? },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_none_is_refused() {
        let name = [b'a'; 256];
        let wrong = |operand: COperand| {
            let request = CRequest {
                operands: &raw const operand,
                operands_count: 1,
                ..CRequest::default()
            };
            // SAFETY: it is all there, or NULL.
            unsafe { request.read() }.is_err()
        };
        assert!(!wrong(COperand::name(&name[..255])));
        assert!(wrong(COperand::name(&name)));
        assert!(wrong(COperand {
            kind: 4,
            ..COperand::number(1)
        }));
        assert!(wrong(COperand {
            name: std::ptr::null(),
            ..COperand::name(b"a")
        }));
        let many = CRequest {
            operands_count: 9,
            ..CRequest::default()
        };
        let payload = CRequest {
            payload: std::ptr::null(),
            payload_len: 1,
            ..CRequest::default()
        };
        let change = CReply {
            change: 3,
            ..CReply::default()
        };
        // SAFETY: nothing of it is looked at.
        unsafe {
            assert!(many.read().is_err() && payload.read().is_err() && change.read().is_err());
        }
    }
}
