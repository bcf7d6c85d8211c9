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

/* Is what was bound for a socket good for this? 0, or enum caps_why. */
static __noinline u32 caps_sock_ended(struct caps_active *a, u64 file, u32 domain, u32 right,
				      bool counts)
{
	if (right & ~a->rights)
		return CAPS_NOT_BOUND;
	if (caps_is_shut_for(a, domain))
		return CAPS_REVOKED;
	return caps_ended_with(a, file, counts);
}

/*
 * Leaves an active capability on a socket, by which it may be read and written. The hook does not know whether the kernel will do what was
 * asked for, and what a socket has taken in stays there. So one that has ended, or that was kept without rights, is not made good again.
 */
static __noinline int caps_sock_bound(u64 file, u32 kind, struct caps_question *q)
{
	struct caps_active *a = file ? caps_active_of(file, q->domain, kind) : NULL;
	u32 why = a ? caps_sock_ended(a, file, q->domain, CAPS_READ | CAPS_WRITE, false) : 0;

	if (why)
		return caps_deny(why, kind == CAPS_OPENED ? TG_OP_CONNECT : TG_OP_SOCKET,
				 q->class == CAPS_UNIX ? TG_C_UNIX : TG_C_SOCKET);
	if (!a && file)
		a = caps_active_made(file, q->domain, kind);
	if (!a)
		return -ENOMEM;
	caps_active_fill(a, q);
	a->rights |= CAPS_READ | CAPS_WRITE;
	/* the next life of the domain would inherit a socket whose address has ended */
	if (a->until || a->limited)
		caps_domain_at(q->domain)->spent = 1;
	return 0;
}

/* A socket's own address was asked about: it is bound, or refused. */
static __always_inline int caps_own_answered(struct socket *sock, struct caps_question *q, u8 op)
{
	struct tg_note n = { .op = op, .class = q->class == CAPS_UNIX ? TG_C_UNIX : TG_C_SOCKET };

	return q->asked.given ? caps_sock_bound(address(sock->file), CAPS_ADDRESSED, q) :
				verdict_of(caps_refuse(q, &n));
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

/* Asks about what a Unix socket is bound to, with the record of a refusal. */
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
 * A socket that a domain has not made becomes one of its: what it is connected to it may connect to, or, if that was accepted, it may have its
 * address; else it is not to be had, or with no rights where `keeps`. One that is neither connected nor bound is anybody's.
 */
__noinline int caps_hand_socket(u64 file, u32 domain, u32 had, bool keeps)
{
	u64 sock = address(CAST(struct file, file)->private_data),
	    sk = address(CAST(struct socket, sock)->sk);
	struct caps_question q = { .domain = domain };
	struct caps_active *a = caps_active_at(file, domain, CAPS_OPENED);
	struct sock *k = CAST(struct sock, sk);
	u32 names;
	int err = 0;

	if (!a)
		return -ENOMEM;
	names = a->wanted; /* by those who had it before */
	q.class = sk ? caps_class_of_sock(k) : CAPS_CLASSES;
	q.asked.wanted = CAPS_CONNECT;
	if (q.class == CAPS_UNIX) {
		bool client = caps_is_unix_client(sk);

		if (!client)
			q.asked.wanted = CAPS_BIND;
		err = caps_ask_unix(client ? address(CAST(struct unix_sock, sk)->peer) : sk, &q);
	} else if (q.class != CAPS_CLASSES) {
		q.asked.given = q.asked.wanted;
		if (k->__sk_common.skc_dport)
			caps_ask_sock(sk, true, &q);
		/* a client's own port is not what it is had by */
		if (k->__sk_common.skc_num &&
		    (!k->__sk_common.skc_dport || (!q.asked.given && !(names & CAPS_CONNECT) &&
						   (names & CAPS_BIND || caps_came_in(sk))))) {
			q.asked.wanted = CAPS_BIND;
			caps_ask_sock(sk, false, &q);
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
	struct caps_question q = {};
	struct sock *sk = sock->sk;
	u64 text = address(at) + 2;
	int err;

	if (!sk || !caps_begin(&q, caps_class_of_sock(sk), CAPS_BIND, 0))
		return 0;
	if (q.class == CAPS_CLASSES)
		return caps_deny(CAPS_NOBODYS, TG_OP_SOCKET, TG_C_SOCKET);
	if (q.class == CAPS_UNIX) {
		/* a path is asked about where the name is made; the kernel's own choice once it listens by it */
		if (len <= 2 || (u8)read_kernel_u64(text))
			return 0;
		if (address(CAST(struct unix_sock, address(sk))->addr))
			return -EINVAL;
		caps_ask_abstract(text + 1, len - 3, &q);
		return caps_own_answered(sock, &q, TG_OP_SOCKET);
	}
	/* as the kernel will say */
	if (sk->__sk_common.skc_num || sk->__sk_common.skc_state != TCP_CLOSE)
		return -EINVAL;
	err = caps_inet_asked(sk, address(at), len, &q, TG_OP_SOCKET);
	return err ? err : caps_sock_bound(address(sock->file), CAPS_ADDRESSED, &q);
}

/* An inet socket is connected to an address. */
static __noinline int caps_inet_connects(struct socket *sock, u64 at, int len,
					 struct caps_question *q, u8 op)
{
	struct sock *sk = sock->sk;
	u32 state;
	int err;

	if (!sk)
		return 0;
	err = caps_inet_asked(sk, at, len, q, op);
	if (err)
		return err;
	/* a connection that there is, or that is on its way, goes on whatever the address; a task that asks how far it is says the same */
	state = sk->__sk_common.skc_state;
	if (q->class == CAPS_TCP && state != TCP_CLOSE && !caps_peer_is(address(sk), q->object))
		return state == TCP_SYN_SENT ? -EALREADY : -EISCONN;
	return caps_sock_bound(address(sock->file), CAPS_OPENED, q);
}

/*
 * A connection is ended, by AF_UNSPEC: not by a domain that kept it without rights. A socket for datagrams whose port was named has that still, and
 * receives from everybody.
 */
static __noinline int caps_inet_disconnects(struct socket *sock, struct caps_question *q)
{
	u64 file = address(sock->file), sk = address(sock->sk);
	struct caps_active *a;
	u32 kind, names = 0;

	bpf_for(kind, CAPS_OPENED, CAPS_ADDRESSED + 1) {
		a = caps_active_of(file, q->domain, kind);
		if (!a)
			continue;
		if (~a->rights & (CAPS_READ | CAPS_WRITE))
			return caps_deny(CAPS_NOT_BOUND, TG_OP_CONNECT, TG_C_SOCKET);
		names |= a->wanted;
	}
	if (q->class != CAPS_UDP || !names || names & CAPS_BIND || !caps_port_is_named(sk))
		return 0;
	q->asked.wanted = CAPS_BIND;
	caps_ask_sock(sk, false, q);
	return caps_own_answered(sock, q, TG_OP_CONNECT);
}

SEC("lsm/socket_connect")
int BPF_PROG(caps_socket_connect, struct socket *sock, struct sockaddr *at, int len)
{
	struct caps_question q = {};
	struct sock *sk = sock->sk;

	/* Unix sockets are asked about by what was found for the name */
	if (!sk || !caps_begin(&q, caps_class_of_sock(sk), CAPS_CONNECT, 0) || q.class == CAPS_UNIX)
		return 0;
	if (q.class == CAPS_CLASSES)
		return caps_deny(CAPS_NOBODYS, TG_OP_CONNECT, TG_C_SOCKET);
	return (u16)read_kernel_u64(address(at)) ?
		       caps_inet_connects(sock, address(at), len, &q, TG_OP_CONNECT) :
		       caps_inet_disconnects(sock, &q);
}

/* A task that narrows itself further asks the daemon to, and every task may reach that. */
static __always_inline bool caps_is_daemon(u64 sk)
{
	struct sock *s = CAST(struct sock, sk);
	struct pid *pid = CAST(struct pid, address(s->sk_peer_pid));

	return policy.daemon && pid && pid->numbers[0].nr == policy.daemon;
}

/*
 * What a revocation took of a Unix socket's own name, which leaves nothing bound when it is made;
 * or, where nothing is bound at all, of what a task that is not governed has connected it to.
 */
static __noinline bool caps_name_is_taken(u64 sk, u32 domain, bool bound)
{
	struct caps_question q = { .domain = domain, .class = CAPS_UNIX };

	q.asked.wanted = CAPS_BIND;
	caps_ask_unix(sk, &q);
	if (q.why != CAPS_REVOKED && !bound && caps_is_unix_client(sk) && !caps_is_daemon(sk)) {
		q.asked.wanted = CAPS_CONNECT;
		caps_ask_unix(address(CAST(struct unix_sock, sk)->peer), &q);
	}
	return q.why == CAPS_REVOKED;
}

/* The same of an inet socket's peer, or of its own address. */
static __noinline bool caps_address_is_taken(u64 sk, u32 domain, bool peer)
{
	struct sock *k = CAST(struct sock, sk);
	struct caps_question q = { .domain = domain, .class = caps_class_of_sock(k) };

	if (q.class == CAPS_CLASSES || !(peer ? k->__sk_common.skc_dport : k->__sk_common.skc_num))
		return false;
	q.asked.wanted = peer ? CAPS_CONNECT : CAPS_BIND;
	caps_ask_sock(sk, peer, &q);
	return q.why == CAPS_REVOKED;
}

/*
 * What was taken of a socket's names, as it has them: those that were bound, by `names`, of which the kernel may have chosen the port; or,
 * where nothing is bound, what nobody governed has connected it to, or bound.
 */
static __always_inline bool caps_names_are_taken(u64 sk, u32 domain, bool bound, u32 names)
{
	struct sock *k = CAST(struct sock, sk);

	if (k->__sk_common.skc_family == AF_UNIX)
		return caps_name_is_taken(sk, domain, bound);
	if (!bound)
		names = k->__sk_common.skc_dport ? CAPS_CONNECT : CAPS_BIND;
	return (names & CAPS_CONNECT && caps_address_is_taken(sk, domain, true)) ||
	       (names & CAPS_BIND && caps_address_is_taken(sk, domain, false));
}

/* Is a socket connected to something else than was bound? By another task at the same moment, or another domain that has it. */
static __always_inline bool caps_is_elsewhere(struct caps_active *a, u64 sk, u32 kind)
{
	struct sock *k = CAST(struct sock, sk);

	return kind == CAPS_OPENED && a->wanted & CAPS_CONNECT &&
	       k->__sk_common.skc_family != AF_UNIX && k->__sk_common.skc_dport &&
	       !caps_peer_is(sk, a->object);
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
 * A use of what was bound for a socket: as long as it is good for anything. A task that is not
 * governed may. `counted`: what of it is counted, where uses are; with CAPS_MANY, nothing that is
 * limited may be.
 */
static __noinline int caps_sock_used(u64 sock, u32 right, u32 counted, u8 op)
{
	struct caps_task *t = caps_tasks_current();
	u64 file = address(CAST(struct socket, sock)->file),
	    sk = address(CAST(struct socket, sock)->sk);
	u32 domain = t ? t->domain : 0, kind, taken, why, names = 0;
	struct caps_active *a;
	bool bound = false;

	if (!domain || !file || !sk)
		return 0;
	for (kind = CAPS_OPENED; kind <= CAPS_ADDRESSED; kind++) {
		a = caps_active_of(file, domain, kind);
		if (!a)
			continue;
		bound = true;
		names |= a->wanted;
		if ((counted & CAPS_MANY && counted & a->counted &&
		     (a->limited || a->ancestors[0])) ||
		    caps_is_elsewhere(a, sk, kind))
			why = CAPS_NOT_BOUND;
		else
			why = caps_sock_ended(a, file, domain, right, counted & a->counted);
		if (why)
			return caps_sock_refused(a->class, right, why, op);
	}
	taken = caps_session_at(caps_domain_at(domain)->session)->taken;
	if (!taken)
		return 0;
	if (taken & 1 << CAPS_TAKEN_ALL || caps_names_are_taken(sk, domain, bound, names))
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

/* What gave a domain the address that a socket has, `object`, or, 0, an inet socket's; NULL: nothing. */
static __noinline struct caps_active *caps_own_of(u64 file, u64 sk, u32 domain, u64 object)
{
	struct caps_active *a = NULL;
	u32 kind;

	for_each_index(kind, CAPS_ADDRESSED + 1) {
		a = caps_active_of(file, domain, kind);
		if (a && a->wanted & CAPS_BIND &&
		    (object ? a->object == object : caps_own_is(sk, a->object)))
			break;
		a = NULL;
	}
	return a;
}

/* An own address that nothing gave is asked for: the kernel chooses one where there is none yet, or somebody else has named it. */
static __noinline int caps_own_asked(struct socket *sock, u8 op)
{
	u64 file = address(sock->file), sk = address(sock->sk);
	struct caps_question q = {};

	if (!caps_begin(&q, CAPS_TCP, CAPS_BIND, 0) || caps_own_of(file, sk, q.domain, 0))
		return 0;
	caps_ask_sock(sk, false, &q);
	return caps_own_answered(sock, &q, op);
}

/* The same of a Unix socket's abstract name. */
static __noinline int caps_abstract_asked(struct socket *sock)
{
	struct caps_question q = {};
	u64 addr = address(CAST(struct unix_sock, address(sock->sk))->addr);

	if (!addr || (u8)read_kernel_u64(unix_text(addr)) ||
	    !caps_begin(&q, CAPS_UNIX, CAPS_BIND, 0))
		return 0;
	caps_ask_abstract(unix_text(addr) + 1, CAST(struct unix_address, addr)->len - 3, &q);
	return caps_own_of(address(sock->file), address(sock->sk), q.domain, q.object) ?
		       0 :
		       caps_own_answered(sock, &q, TG_OP_SOCKET);
}

SEC("lsm/socket_listen")
int BPF_PROG(caps_socket_listen, struct socket *sock)
{
	struct sock *sk = sock->sk;
	int err;

	if (!sk || !caps_me())
		return 0;
	switch (caps_class_of_sock(sk)) {
	case CAPS_UNIX:
		return caps_abstract_asked(sock);
	case CAPS_TCP:
		/* as the kernel will say: the address of a connection that ends meanwhile would be another one */
		if (sk->__sk_common.skc_dport)
			return -EINVAL;
		err = caps_sock_used(address(sock), CAPS_READ, 0, TG_OP_SOCKET);
		return err ? err : caps_own_asked(sock, TG_OP_SOCKET);
	case CAPS_UDP:
		return 0;
	}
	return caps_deny(CAPS_NOBODYS, TG_OP_SOCKET, TG_C_SOCKET);
}

SEC("lsm/socket_accept")
int BPF_PROG(caps_socket_accept, struct socket *sock, struct socket *newsock)
{
	/* no question of its own: with it those that follow would have no room on the stack */
	struct caps_task *t = caps_tasks_current();
	u64 file = address(sock->file), sk = address(sock->sk);
	u32 domain = t ? t->domain : 0;
	struct caps_active *from, *own, *a;
	int err;

	if (!domain || !sk)
		return 0;
	err = caps_sock_used(address(sock), CAPS_READ, 0, TG_OP_ACCEPT);
	if (err)
		return err;
	from = caps_active_of(file, domain, CAPS_ADDRESSED);
	if (!from)
		/* it was handed over, maybe */
		from = caps_active_of(file, domain, CAPS_OPENED);
	if (!from)
		return 0;
	if (caps_class_of_sock(CAST(struct sock, sk)) == CAPS_TCP) {
		err = caps_own_asked(sock, TG_OP_ACCEPT);
		if (err)
			return err;
		own = caps_own_of(file, sk, domain, 0);
		if (own)
			from = own;
	}
	/* whose the address is, which layers that came later did not give */
	a = caps_active_made(address(newsock->file), from->domain, CAPS_ADDRESSED);
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

/* TCP gives a connection's data by an option, too. */
SEC("lsm/socket_getsockopt")
int BPF_PROG(caps_guard_socket_getsockopt, struct socket *sock, int level, int option)
{
	return level == IPPROTO_TCP && option == TCP_ZEROCOPY_RECEIVE ?
		       caps_sock_use(sock, CAPS_READ, TG_OP_RECEIVE) :
		       0;
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
