//! What is asked about by more than an object's own label: messages by their types, descriptors by
//! the process that opened them.

use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;

use super::{Checks, REFUSED};
use crate::te_live::domain::Holder;
use crate::te_live::place;

/// TCP connects with the first message (MSG_FASTOPEN).
pub fn first_message(c: &mut Checks) {
    let _listener = TcpListener::bind("127.0.0.1:7001").expect("a port");
    let mut holder = Holder::new();
    c.same("allowed", holder.does("first-message 7001"), "ok".into());
    c.set(&["may_connect=off"]);
    c.same(
        "not allowed",
        holder.does("first-message 7001"),
        REFUSED.into(),
    );
    c.set(&["may_connect=on"]);
}

/// MPTCP does so with any message that has a name, after a connection that was put off and ended.
pub fn message_put_off(c: &mut Checks) {
    let _listener = TcpListener::bind("127.0.0.1:7001").expect("a port");
    let _other = TcpListener::bind("127.0.0.1:7002").expect("a port");
    let mut holder = Holder::new();
    let came = holder.does("message-put-off 7001");
    c.same("allowed", came, "ok".into());
    let came = holder.does("message-put-off 7002");
    c.same("another port", came, REFUSED.into());
}

/// What changes routes, and what reads them (RTM_DELROUTE, RTM_GETROUTE), by a socket that may send both.
pub fn messages(c: &mut Checks) {
    let mut holder = Holder::new();
    c.same("allowed", holder.does("message 25"), "ok".into());
    c.set(&["may_route=off"]);
    c.same("not allowed", holder.does("message 25"), REFUSED.into());
    c.same("what reads", holder.does("message 26"), "ok".into());
    c.set(&["may_route=on"]);
}

/// Descriptors that another domain has opened: of the program itself, which is mapped, and of what is left open.
pub fn opener(c: &mut Checks) {
    let mut holder = Holder::new();
    c.same("open", holder.does("open"), "ok".into());
    let read = "exec-read /payload/other-live";
    c.same("may be used, not read", holder.does(read), REFUSED.into());
    c.set(&["may_use=off"]);
    let came = holder.does(read);
    c.same(
        &format!("a program that its domain may not use does not start: {came}"),
        came.contains("signal: 11"),
        true,
    );
    c.set(&["may_use=on"]);
    c.same("given back", holder.does(read), REFUSED.into());
}

/// Messages sent by one call (sendmmsg(2)), of which socket_sendmsg is asked about the first to each name: where they go to, and what
/// they bring.
pub fn at_once(c: &mut Checks) {
    let mut holder = Holder::new();
    let name = place("datagrams");
    let _ = std::fs::remove_file(&name);
    let _other = UnixDatagram::bind(&name).expect("a socket");
    c.same("all", holder.does("send-at-once"), "3 sent".into());
    c.set(&["may_sendto=off"]);
    let came = holder.does("send-at-once");
    c.same("but to whom it may not", came, "2 sent".into());
    c.set(&["may_sendto=on"]);
    c.same("opened", holder.does("open"), "ok".into());
    c.same("sent", holder.does("pass-second"), "ok".into());
    c.set(&["may_read=off"]);
    let came = holder.does("take");
    c.same("it does not arrive", came, "nothing came".into());
    c.set(&["may_read=on"]);
}
