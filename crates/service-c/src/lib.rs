//! `libtidegate-service`: the client's and the service's end of [`tidegate_service`] for C. `include/tidegate/service.h` says what
//! each function does; what crosses the boundary is checked here, and no panic does.
// each is documented in the header, and as safe as that is kept to
#![allow(missing_docs, clippy::missing_safety_doc)]

mod failed;
mod message;

use std::ffi::{c_char, c_int};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr;

use tidegate_boundary::{Fault, last_error, put, text, there};
use tidegate_service::{Client, Connection, Reply, Request};

use crate::failed::{done, guarded};
use crate::message::{COperand, CReply, CRequest};

/// `struct tg_client`.
pub struct ClientHandle {
    client: Client,
    /// What C has a pointer into.
    reply: Reply,
}

/// `struct tg_connection`.
pub struct ConnectionHandle {
    connection: Connection,
    /// What C has pointers into.
    request: Request,
    operands: Vec<COperand>,
}

/// A handle that is used by this call alone.
///
/// # Safety
/// It is NULL, or points to such a thing that nobody else uses meanwhile.
unsafe fn own<'a, T>(handle: *mut T) -> Result<&'a mut T, Fault> {
    // SAFETY: as the caller has it.
    unsafe { handle.as_mut() }.ok_or(Fault::NULL)
}

/// A descriptor that C gives up.
fn given(fd: c_int) -> Result<OwnedFd, Fault> {
    if fd < 0 {
        return Err(Fault::invalid("a negative number is not a descriptor"));
    }
    // SAFETY: C has given it up, and does not use it any more.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Ends a handle.
///
/// # Safety
/// It is NULL, or came from here, and nobody uses it any more.
unsafe fn end<T>(handle: *mut T) {
    guarded((), || {
        if !handle.is_null() {
            // SAFETY: as the caller has it.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(())
    });
}

fn client(client: Client) -> *mut ClientHandle {
    let reply = Reply::default();
    Box::into_raw(Box::new(ClientHandle { client, reply }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_client_connect(path: *const c_char) -> *mut ClientHandle {
    guarded(ptr::null_mut(), || {
        // SAFETY: as the header has it.
        let path = Path::new(unsafe { text(path)? });
        Ok(client(Client::connect(path)?))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn tg_client_of(fd: c_int) -> *mut ClientHandle {
    guarded(ptr::null_mut(), || Ok(client(Client::of(given(fd)?)?)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_client_close(handle: *mut ClientHandle) {
    // SAFETY: as the header has it.
    unsafe { end(handle) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_client_accept_up_to(handle: *mut ClientHandle, bytes: usize) -> c_int {
    // SAFETY: as the header has it.
    done(|| unsafe {
        own(handle)?.client.accept_up_to(bytes);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_client_call(
    handle: *mut ClientHandle,
    request: *const CRequest,
    reply: *mut CReply,
) -> c_int {
    done(|| {
        // SAFETY: as the header has it.
        let (handle, request) = unsafe { (own(handle)?, there(request)?.read()?) };
        handle.reply = handle
            .client
            .call(request.operation, request.operands, request.payload)?;
        // SAFETY: as the header has it.
        unsafe { put(reply, CReply::of(&handle.reply)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_client_send(
    handle: *mut ClientHandle,
    request: *const CRequest,
    id: *mut u32,
) -> c_int {
    done(|| {
        // SAFETY: as the header has it.
        let (handle, request) = unsafe { (own(handle)?, there(request)?.read()?) };
        if id.is_null() {
            return Err(Fault::NULL.into());
        }
        let sent = handle
            .client
            .send(request.operation, request.operands, request.payload)?;
        // SAFETY: as the header has it.
        unsafe { put(id, sent) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_client_receive(handle: *mut ClientHandle, reply: *mut CReply) -> c_int {
    done(|| {
        // SAFETY: as the header has it.
        let handle = unsafe { own(handle)? };
        handle.reply = handle.client.receive()?;
        // SAFETY: as the header has it.
        unsafe { put(reply, CReply::of(&handle.reply)) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn tg_connection_of(fd: c_int) -> *mut ConnectionHandle {
    guarded(ptr::null_mut(), || {
        Ok(Box::into_raw(Box::new(ConnectionHandle {
            connection: Connection::of(given(fd)?)?,
            request: Request::default(),
            operands: Vec::new(),
        })))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_connection_close(handle: *mut ConnectionHandle) {
    // SAFETY: as the header has it.
    unsafe { end(handle) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_connection_accept_up_to(
    handle: *mut ConnectionHandle,
    bytes: usize,
) -> c_int {
    // SAFETY: as the header has it.
    done(|| unsafe {
        own(handle)?.connection.accept_up_to(bytes);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_connection_receive(
    handle: *mut ConnectionHandle,
    request: *mut CRequest,
) -> c_int {
    guarded(-1, || {
        // SAFETY: as the header has it.
        let handle = unsafe { own(handle)? };
        let Some(received) = handle.connection.receive()? else {
            return Ok(0);
        };
        handle.request = received;
        handle.operands = handle.request.operands.iter().map(COperand::of).collect();
        // SAFETY: as the header has it.
        unsafe { put::<_, Fault>(request, CRequest::of(&handle.request, &handle.operands))? };
        Ok(1)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_connection_reply(
    handle: *mut ConnectionHandle,
    reply: *const CReply,
) -> c_int {
    // SAFETY: as the header has it.
    done(|| unsafe { Ok(own(handle)?.connection.reply(&there(reply)?.read()?)?) })
}

#[unsafe(no_mangle)]
pub extern "C" fn tg_service_error() -> *const c_char {
    last_error()
}

#[cfg(test)]
mod tests {
    use std::os::fd::IntoRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn nothing_that_is_null_is_looked_at() {
        let (mut request, mut reply, mut id) = (CRequest::default(), CReply::default(), 0);
        let (here, _there) = UnixStream::pair().unwrap();
        let client = tg_client_of(here.into_raw_fd());
        // SAFETY: NULL is what is tested.
        unsafe {
            assert!(tg_client_connect(ptr::null()).is_null());
            assert!(tg_client_of(-1).is_null() && tg_connection_of(-1).is_null());
            let none = ptr::null_mut();
            assert_eq!(tg_client_call(none, &raw const request, &raw mut reply), -1);
            assert_eq!(tg_client_call(client, ptr::null(), &raw mut reply), -1);
            assert_eq!(
                tg_client_send(client, &raw const request, ptr::null_mut()),
                -1
            );
            assert_eq!(tg_client_send(none, &raw const request, &raw mut id), -1);
            assert_eq!(tg_client_receive(none, &raw mut reply), -1);
            let none = ptr::null_mut();
            assert_eq!(tg_connection_receive(none, &raw mut request), -1);
            assert_eq!(tg_connection_reply(none, &raw const reply), -1);
            tg_connection_close(none);
            tg_client_close(client);
        }
    }

    #[test]
    fn a_request_is_answered() {
        let (here, there) = UnixStream::pair().unwrap();
        let client = tg_client_of(here.into_raw_fd());
        let connection = tg_connection_of(there.into_raw_fd());
        let operands = [COperand::name(b"pub:a"), COperand::number(2)];
        let asked = CRequest {
            operation: 1,
            operands: operands.as_ptr(),
            operands_count: 2,
            payload: b"xyz".as_ptr(),
            payload_len: 3,
            ..CRequest::default()
        };
        let (mut request, mut reply, mut id) = (CRequest::default(), CReply::default(), 0);
        // SAFETY: all of it is there.
        unsafe {
            assert_eq!(tg_client_send(client, &raw const asked, &raw mut id), 0);
            assert_eq!(tg_connection_receive(connection, &raw mut request), 1);
            let known = request.read().unwrap();
            assert_eq!(known.payload, b"xyz");
            assert_eq!(known.operands, asked.read().unwrap().operands);
            let answer = CReply {
                id: request.id,
                change: 1,
                descriptor: 7,
                ..CReply::default()
            };
            assert_eq!(tg_connection_reply(connection, &raw const answer), 0);
            assert_eq!(tg_client_receive(client, &raw mut reply), 0);
            assert_eq!((reply.id, reply.change, reply.descriptor), (id, 1, 7));
            tg_client_close(client);
            assert_eq!(tg_connection_receive(connection, &raw mut request), 0);
            tg_connection_close(connection);
        }
    }
}
