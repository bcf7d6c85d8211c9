/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager of the `capability` model: sockets. To connect one, or to take an address for it, is a bind operation; what is read and written by
 * it then goes by the active capability that leaves. An address in a message names its object each time.
 */
#ifndef TIDEGATE_CAPS_NET_H
#define TIDEGATE_CAPS_NET_H

#include "lib/arch.h"
#include "caps/address.h"
#include "caps/transfer.h"

/* Only those kinds whose addresses capabilities are for. */
SEC("lsm/socket_create")
int BPF_PROG(caps_socket_create, int family, int type, int protocol, int kern)
{
	bool inet = family == AF_INET || family == AF_INET6;

	if (kern || !caps_me() || family == AF_UNIX)
		return 0;
	type &= 0xf;
	if (inet && type == SOCK_STREAM &&
	    (!protocol || protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP))
		return 0;
	if (inet && type == SOCK_DGRAM && (!protocol || protocol == IPPROTO_UDP))
		return 0;
	return caps_deny(CAPS_NOBODYS, TG_OP_SOCKET, TG_C_SOCKET);
}

/* Leaves an active capability on a socket, by which it may be read and written. */
static __noinline int caps_sock_bound(u64 file, u32 kind, struct caps_question *q)
{
	struct caps_active *a = file ? caps_active_made(file, q->domain, kind) : NULL;

	if (!a)
		return -ENOMEM;
	caps_active_fill(a, q);
	a->rights |= CAPS_READ | CAPS_WRITE;
	return 0;
}

/* An abstract name. */
__noinline int caps_ask_abstract(u64 text, u32 len, struct caps_question *q __arg_nonnull)
{
	struct caps_domain *d = caps_domain_at(q->domain);
	u32 k, automaton, state;

	q->object = caps_object_id(CAPS_ID_ABSTRACT, text, len);
	USES_ARENA();
	bpf_for(k, 0, d->count) {
		automaton = caps_automaton(d->layers[BOUND(k, CAPS_LAYERS)], CAPS_UNIX);
		q->answers[BOUND(k, CAPS_LAYERS)] = 0;
		if (!automaton)
			continue;
		state = automaton_step(automaton, ARENA_PTR(struct tg_automaton, automaton)->start,
				       '@');
		q->answers[BOUND(k, CAPS_LAYERS)] = caps_answer_of(
			automaton, automaton_feed(automaton, state, text, len & 127));
	}
	return caps_judge(q);
}

/* About what a Unix socket is bound to; one that has no name may be used. */
static __always_inline int caps_ask_unix(u64 sk, struct caps_question *q)
{
	struct unix_sock *u = CAST(struct unix_sock, sk);
	u64 addr = address(u->addr), text, dentry;

	q->asked.given = q->asked.wanted;
	q->why = 0;
	if (!addr)
		return 0;
	text = unix_text(addr);
	if (!(u8)read_kernel_u64(text))
		return caps_ask_abstract(text + 1, CAST(struct unix_address, addr)->len - 3, q);
	q->why = CAPS_NO_NAME;
	q->asked.given = 0;
	dentry = address(u->path.dentry);
	return dentry ? caps_ask_path(dentry, q) : -EACCES;
}

/* The same, and the record of a refusal. */
static __noinline int caps_unix_asked(u64 sk, struct caps_question *q, u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_UNIX };
	int err = caps_ask_unix(sk, q);

	if (err == -EAGAIN)
		return -EAGAIN;
	n.dentry = address(CAST(struct unix_sock, sk)->path.dentry);
	return !err && q->asked.given == q->asked.wanted ? 0 : verdict_of(caps_refuse(q, &n));
}

/*
 * A socket that a domain has not made becomes one of its: what it is connected to it may connect to, or it may have its address; else it is not
 * to be had, or with no rights where `keeps`. One that is neither connected nor bound is anybody's.
 */
__noinline int caps_hand_socket(u64 file, u32 domain, u32 had, bool keeps)
{
	u64 sock = address(CAST(struct file, file)->private_data),
	    sk = address(CAST(struct socket, sock)->sk);
	struct caps_question q = { .domain = domain };
	struct caps_active *a = caps_active_at(file, domain, CAPS_OPENED);
	struct sock *k = CAST(struct sock, sk);
	int err = 0;

	if (!a)
		return -ENOMEM;
	q.class = sk ? caps_class_of_sock(k) : CAPS_CLASSES;
	q.asked.wanted = CAPS_CONNECT;
	if (q.class == CAPS_UNIX) {
		u64 peer = address(CAST(struct unix_sock, sk)->peer);

		/* a client has no name of its own */
		if (CAST(struct unix_sock, sk)->addr || !peer) {
			q.asked.wanted = CAPS_BIND;
			peer = sk;
		}
		err = caps_ask_unix(peer, &q);
	} else if (q.class != CAPS_CLASSES) {
		q.asked.given = q.asked.wanted;
		if (k->__sk_common.skc_dport)
			caps_ask_sock(k, true, &q);
		if (k->__sk_common.skc_num && (!k->__sk_common.skc_dport || !q.asked.given)) {
			/* it has an address of its own, or somebody else has connected it */
			q.asked.wanted = CAPS_BIND;
			caps_ask_sock(k, false, &q);
		}
	}
	if (err == -EAGAIN && keeps)
		return -EAGAIN;
	caps_active_fill(a, &q);
	had &= CAPS_READ | CAPS_WRITE;
	if (q.asked.given)
		a->rights |= had;
	if (q.asked.given && had == (CAPS_READ | CAPS_WRITE))
		return CAPS_HANDED;
	/* what it may not do by it is the guard's to refuse */
	return (q.asked.given && had) || keeps ? CAPS_HANDED_PART : -EACCES;
}

SEC("lsm/socket_bind")
int BPF_PROG(caps_socket_bind, struct socket *sock, struct sockaddr *at, int len)
{
	struct tg_note n = { .op = TG_OP_SOCKET, .class = TG_C_UNIX };
	struct caps_question q = {};
	struct sock *sk = sock->sk;
	u64 text = address(at) + 2;
	int err;

	if (!sk || !caps_begin(&q, caps_class_of_sock(sk), CAPS_BIND, 0))
		return 0;
	if (q.class == CAPS_UNIX) {
		/* a path is asked about where the name is made; the kernel's own choice is nobody's */
		if (len <= 2 || (u8)read_kernel_u64(text))
			return 0;
		caps_ask_abstract(text + 1, len - 3, &q);
		err = q.asked.given ? 0 : verdict_of(caps_refuse(&q, &n));
	} else {
		err = caps_inet_asked(sk, address(at), len, &q, TG_OP_SOCKET);
	}
	return err ? err : caps_sock_bound(address(sock->file), CAPS_ADDRESSED, &q);
}

SEC("lsm/socket_connect")
int BPF_PROG(caps_socket_connect, struct socket *sock, struct sockaddr *at, int len)
{
	struct caps_question q = {};
	struct sock *sk = sock->sk;
	int err;

	if (!sk || !caps_begin(&q, caps_class_of_sock(sk), CAPS_CONNECT, 0))
		return 0;
	/* Unix sockets are asked about by what was found for the name; AF_UNSPEC ends a connection */
	if (q.class == CAPS_UNIX || !(u16)read_kernel_u64(address(at)))
		return 0;
	err = caps_inet_asked(sk, address(at), len, &q, TG_OP_CONNECT);
	return err ? err : caps_sock_bound(address(sock->file), CAPS_OPENED, &q);
}

/* Who narrows itself further asks the daemon to, whom everybody may reach. */
static __always_inline bool caps_is_daemon(u64 sk)
{
	struct sock *s = CAST(struct sock, sk);
	struct pid *pid = CAST(struct pid, address(s->sk_peer_pid));

	return policy.daemon && pid && pid->numbers[0].nr == policy.daemon;
}

/*
 * What a revocation took of a Unix socket's own name, which leaves nothing bound when it is made; or, where nothing is bound at all, of
 * what somebody who is not governed has connected it to.
 */
static __noinline bool caps_name_is_taken(u64 sk, u32 domain, bool bound)
{
	struct caps_question q = { .domain = domain, .class = CAPS_UNIX };
	u64 peer = address(CAST(struct unix_sock, sk)->peer);

	q.asked.wanted = CAPS_BIND;
	if (!CAST(struct unix_sock, sk)->addr && peer) {
		if (bound || caps_is_daemon(sk))
			return false;
		q.asked.wanted = CAPS_CONNECT;
		sk = peer;
	}
	caps_ask_unix(sk, &q);
	return q.why == CAPS_REVOKED;
}

/* The same of an address that nobody governed has connected it to, or bound. */
static __noinline bool caps_address_is_taken(u64 sk, u32 domain)
{
	struct sock *k = CAST(struct sock, sk);
	struct caps_question q = { .domain = domain, .class = caps_class_of_sock(k) };
	bool peer = k->__sk_common.skc_dport;

	if (q.class == CAPS_CLASSES || (!peer && !k->__sk_common.skc_num))
		return false;
	q.asked.wanted = peer ? CAPS_CONNECT : CAPS_BIND;
	caps_ask_sock(k, peer, &q);
	return q.why == CAPS_REVOKED;
}

static __always_inline struct pt_regs *caps_regs(void)
{
	return call_regs(bpf_get_current_task_btf());
}

static __always_inline u32 caps_call(void)
{
	return CALL_NUMBER(caps_regs());
}

/*
 * Of the messages that sendmmsg(2) sends to one name, and of those that recvmmsg(2) receives, the first alone is asked about. Is it a
 * 64-bit call that sends, or receives, one by a socket's own hook?
 */
static __always_inline bool caps_sends_one(void)
{
	u32 call = caps_call();

	return call == NR_sendto || call == NR_sendmsg ||
	       (call == NR_sendmmsg && (u32)CALL_THIRD(caps_regs()) <= 1);
}

static __always_inline bool caps_receives_one(void)
{
	u32 call = caps_call();

	return call == NR_read || call == NR_readv || call == NR_recvfrom || call == NR_recvmsg ||
	       call == NR_preadv2;
}

#define CAPS_MANY (1u << 31) /* further messages may follow, which nobody is asked about */

/* A use of it that is refused. Of its own: with its record beside them, names of sockets would find no room on the stack. */
static __noinline int caps_sock_refused(u32 class, u32 right, u32 why, u8 op)
{
	struct tg_note n = { .op = op, .class = TG_C_SOCKET };
	struct caps_question q = {};

	caps_begin(&q, class, right, 0);
	q.why = why;
	return verdict_of(caps_refuse(&q, &n));
}

/*
 * A use of what was bound for a socket: as long as it is good for anything. Who is not governed may. `counted`: what of it is counted,
 * where uses are; with CAPS_MANY, nothing that is limited may be.
 */
static __noinline int caps_sock_used(u64 sock, u32 right, u32 counted, u8 op)
{
	struct caps_task *t = caps_tasks_current();
	u64 file = address(CAST(struct socket, sock)->file),
	    sk = address(CAST(struct socket, sock)->sk);
	u32 domain = t ? t->domain : 0, kind, taken, why;
	struct caps_active *a;
	bool bound = false;

	if (!domain || !file || !sk)
		return 0;
	for (kind = CAPS_OPENED; kind <= CAPS_ADDRESSED; kind++) {
		a = caps_active_of(file, domain, kind);
		if (!a)
			continue;
		bound = true;
		if (right & ~a->rights || (counted & CAPS_MANY && counted & a->counted &&
					   (a->limited || a->ancestors[0])))
			why = CAPS_NOT_BOUND;
		else if (caps_is_shut_for(a, domain))
			why = CAPS_REVOKED;
		else
			why = caps_ended_with(a, file, counted & a->counted);
		if (why)
			return caps_sock_refused(a->class, right, why, op);
	}
	taken = caps_session_at(caps_domain_at(domain)->session)->taken;
	if (!taken)
		return 0;
	if (taken & 1 << CAPS_TAKEN_ALL ||
	    (CAST(struct sock, sk)->__sk_common.skc_family == AF_UNIX ?
		     caps_name_is_taken(sk, domain, bound) :
		     !bound && caps_address_is_taken(sk, domain)))
		return caps_sock_refused(CAPS_UNIX, right, CAPS_REVOKED, op);
	return 0;
}

static __always_inline int caps_sock_use(struct socket *sock, u32 right, u8 op)
{
	return caps_sock_used(address(sock), right, right, op);
}

static __always_inline int caps_message_use(struct socket *sock, u32 right, bool many, u8 op)
{
	return caps_sock_used(address(sock), right, right | (many ? CAPS_MANY : 0), op);
}

/* read(2) and readv(2): those of 32-bit calls are counted twice */
#define CAPS_IS_READ(call) ((call) == NR_read || (call) == NR_readv)

/*
 * A socket is read as a file: by splice(2) and sendfile(2) past the socket's own hook, which counts the others. The guard, as nothing
 * has to be looked at where nothing is counted, ends or was taken back.
 */
SEC("lsm/file_permission")
int BPF_PROG(caps_guard_socket_permission, struct file *file, int mask)
{
	if (!(mask & MAY_READ) || !caps_me() || file->f_inode->i_sb->s_magic != SOCKFS_MAGIC)
		return 0;
	return caps_sock_used(address(file->private_data), CAPS_READ,
			      CAPS_IS_READ(caps_call()) ? 0 : CAPS_READ, TG_OP_RECEIVE);
}

/* Who has no address yet gets one when it listens. */
SEC("lsm/socket_listen")
int BPF_PROG(caps_socket_listen, struct socket *sock)
{
	struct tg_note n = { .op = TG_OP_SOCKET, .class = TG_C_SOCKET };
	struct caps_question q = {};
	struct sock *sk = sock->sk;
	u64 file = address(sock->file);

	if (!sk || !caps_begin(&q, caps_class_of_sock(sk), CAPS_BIND, 0) || q.class == CAPS_UNIX)
		return 0;
	if (caps_active_of(file, q.domain, CAPS_ADDRESSED) ||
	    caps_active_of(file, q.domain, CAPS_OPENED))
		return 0;
	caps_ask_sock(CAST(struct sock, address(sk)), false, &q);
	if (!q.asked.given)
		return verdict_of(caps_refuse(&q, &n));
	return caps_sock_bound(file, CAPS_ADDRESSED, &q);
}

SEC("lsm/socket_accept")
int BPF_PROG(caps_socket_accept, struct socket *sock, struct socket *newsock)
{
	/* no question of its own: with it those that follow would have no room on the stack */
	struct caps_task *t = caps_tasks_current();
	struct caps_active *from, *a;
	u64 file = address(newsock->file);
	u32 domain = t ? t->domain : 0, why;

	if (!domain)
		return 0;
	from = caps_active_of(address(sock->file), domain, CAPS_ADDRESSED);
	if (!from)
		/* it was handed over, maybe */
		from = caps_active_of(address(sock->file), domain, CAPS_OPENED);
	if (!from)
		return caps_sock_use(sock, CAPS_READ, TG_OP_ACCEPT);
	why = caps_is_shut_for(from, domain) ? CAPS_REVOKED :
					       caps_ended_with(from, address(sock->file), false);
	if (why)
		return caps_deny(why, TG_OP_ACCEPT, TG_C_SOCKET);
	/* whose the address is, which layers that came later did not give */
	a = caps_active_made(file, from->domain, CAPS_ADDRESSED);
	if (!a)
		return -ENOMEM;
	caps_active_like(a, from);
	return 0;
}

/* The guard of sockets, as that of files (file.h). */
SEC("lsm/socket_sendmsg")
int BPF_PROG(caps_guard_socket_sendmsg, struct socket *sock, struct msghdr *msg)
{
	return caps_message_use(sock, CAPS_WRITE, msg->msg_name && !caps_sends_one(), TG_OP_SEND);
}

SEC("lsm/socket_recvmsg")
int BPF_PROG(caps_guard_socket_recvmsg, struct socket *sock)
{
	return caps_message_use(sock, CAPS_READ, !caps_receives_one(), TG_OP_RECEIVE);
}

SEC("lsm/unix_stream_connect")
int BPF_PROG(caps_unix_stream_connect, struct sock *sock, struct sock *other, struct sock *newsk)
{
	struct caps_question q = {};
	u64 file = address(
		CAST(struct socket, address(CAST(struct sock, address(sock))->sk_socket))->file);
	int err;

	if (!caps_begin(&q, CAPS_UNIX, CAPS_CONNECT, 0) || caps_is_daemon(address(other)))
		return 0;
	err = caps_unix_asked(address(other), &q, TG_OP_CONNECT);
	if (err || !CAST(struct unix_sock, address(other))->addr)
		return err;
	return caps_sock_bound(file, CAPS_OPENED, &q);
}

SEC("lsm/unix_may_send")
int BPF_PROG(caps_unix_may_send, struct socket *sock, struct socket *other)
{
	struct caps_question q = {};

	if (!other->sk || !caps_begin(&q, CAPS_UNIX, CAPS_CONNECT, 0))
		return 0;
	return caps_unix_asked(address(other->sk), &q, TG_OP_SEND);
}

#endif
