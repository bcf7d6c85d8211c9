//! The tagged stream that `apparmor_parser` writes: `Documentation/admin-guide/LSM/apparmor.rst`
//! and `security/apparmor/policy_unpack.c` of the kernel, which reads the same.
//!
//! An element is a byte that says its type and its content, little-endian; a name may stand
//! before it. What a profile has need not be there: a reader asks for an element by type and
//! name, and it either is the next one or is not.

use super::UnpackError;

/// The types of elements. There is a list and an offset, too, which no profile has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Code {
    U8 = 0,
    U32 = 2,
    U64 = 3,
    Name = 4,
    String = 5,
    Blob = 6,
    Struct = 7,
    StructEnd = 8,
    Array = 11,
    ArrayEnd = 12,
}

/// A stream, read so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream<'s> {
    all: &'s [u8],
    at: usize,
}

impl<'s> Stream<'s> {
    pub fn new(all: &'s [u8]) -> Self {
        Self { all, at: 0 }
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.all.len()
    }

    /// What is wrong here.
    pub fn error(&self, what: &'static str) -> UnpackError {
        UnpackError::Malformed {
            offset: self.at,
            what,
        }
    }

    /// Passes an element's head, if it is of that type and, if one is asked for, that name.
    pub fn head(&mut self, code: Code, name: Option<&str>) -> bool {
        let mut ahead = *self;
        let tag = match ahead.byte() {
            Some(byte) if byte == Code::Name as u8 => {
                let Some(tag) = ahead.counted() else {
                    return false;
                };
                let is_code = ahead.byte() == Some(code as u8);
                is_code.then_some(Some(tag))
            }
            Some(byte) if byte == code as u8 => Some(None),
            _ => None,
        };
        let found = match (tag, name) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(tag), Some(name)) => tag.and_then(text) == Some(name.as_bytes()),
        };
        if found {
            *self = ahead;
        }
        found
    }

    /// Passes an element's head, or says that `what` is not there.
    pub fn need(
        &mut self,
        code: Code,
        name: Option<&str>,
        what: &'static str,
    ) -> Result<(), UnpackError> {
        if self.head(code, name) {
            Ok(())
        } else {
            Err(self.error(what))
        }
    }

    pub fn u8(&mut self, what: &'static str) -> Result<u8, UnpackError> {
        self.need(Code::U8, None, what)?;
        self.byte().ok_or(self.error(what))
    }

    pub fn u32(&mut self, what: &'static str) -> Result<u32, UnpackError> {
        self.need(Code::U32, None, what)?;
        self.number().ok_or(self.error(what))
    }

    /// A number that may be left out, by name.
    pub fn u32_named(&mut self, name: &'static str) -> Result<Option<u32>, UnpackError> {
        if !self.head(Code::U32, Some(name)) {
            return Ok(None);
        }
        self.number().map(Some).ok_or(self.error(name))
    }

    pub fn u64(&mut self, what: &'static str) -> Result<u64, UnpackError> {
        self.need(Code::U64, None, what)?;
        let bytes = self.take(8).ok_or(self.error(what))?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight of them")))
    }

    /// How many elements an array has; its end has to be passed after them.
    pub fn array(&mut self, what: &'static str) -> Result<u16, UnpackError> {
        self.need(Code::Array, None, what)?;
        self.short().ok_or(self.error(what))
    }

    /// The end of an array, and of the structure that holds it.
    pub fn end_of_array(&mut self, what: &'static str) -> Result<(), UnpackError> {
        self.need(Code::ArrayEnd, None, what)?;
        self.need(Code::StructEnd, None, what)
    }

    /// A string without the NUL that ends it.
    pub fn string(&mut self, what: &'static str) -> Result<&'s [u8], UnpackError> {
        self.need(Code::String, None, what)?;
        self.rest_of_string(what)
    }

    /// A string that may be left out, by name.
    pub fn string_named(&mut self, name: &'static str) -> Result<Option<&'s [u8]>, UnpackError> {
        if !self.head(Code::String, Some(name)) {
            return Ok(None);
        }
        self.rest_of_string(name).map(Some)
    }

    /// A string that may be left out.
    pub fn string_if_any(&mut self, what: &'static str) -> Result<Option<&'s [u8]>, UnpackError> {
        if !self.head(Code::String, None) {
            return Ok(None);
        }
        self.rest_of_string(what).map(Some)
    }

    /// Bytes that may be left out; of any name, if none is asked for.
    pub fn blob(
        &mut self,
        name: Option<&'static str>,
        what: &'static str,
    ) -> Result<Option<&'s [u8]>, UnpackError> {
        if !self.head(Code::Blob, name) {
            return Ok(None);
        }
        let bytes = self.number().and_then(|size| self.take(size as usize));
        bytes.map(Some).ok_or(self.error(what))
    }

    fn rest_of_string(&mut self, what: &'static str) -> Result<&'s [u8], UnpackError> {
        let counted = self.counted().ok_or(self.error(what))?;
        text(counted).ok_or(self.error(what))
    }

    fn take(&mut self, bytes: usize) -> Option<&'s [u8]> {
        let taken = self.all[self.at..].get(..bytes)?;
        self.at += bytes;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn short(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_le_bytes(bytes.try_into().ok()?))
    }

    fn number(&mut self) -> Option<u32> {
        let bytes = self.take(4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    fn counted(&mut self) -> Option<&'s [u8]> {
        let size = self.short()?;
        self.take(size.into())
    }
}

/// What stands before the NUL that ends it.
fn text(counted: &[u8]) -> Option<&[u8]> {
    counted.strip_suffix(&[0])
}
