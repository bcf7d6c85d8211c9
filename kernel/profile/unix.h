/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object manager of the profile model: unix sockets. What has an abstract name or none is decided by the
 * rules of `unix`, what has a path by those on files: security/apparmor/af_unix.c, since 6.17.
 *
 * A connection is asked about when it is made, a datagram each time, on both sides: the sender's
 * profile, by the name of the profile that the other end belongs to, and that one by the sender's.
 * So it has to be known whose an end is. Invariant: an end that somebody else can reach (it has an
 * address, or a peer) has a label if the task that gave it that was confined, and the label does
 * not change any more. Where it could not be stored the operation is refused.
 */
#ifndef TIDEGATE_PROFILE_UNIX_H
#define TIDEGATE_PROFILE_UNIX_H

#include "lib/sockaddr.h"
#include "profile/capable.h"
#include "profile/file.h"

/* What is kept of a unix socket that a confined task has bound, paired or connected, or sent by. */
struct tg_unix_label {
	u64 profile; /* whose it is, by the profile's id, 0: no confined task's */
	u64 other;   /* and whose the other end was when they were connected */
	/* the newest datagram that was simply allowed: */
	u64 cookie; /* where it went, */
	u64 to;     /* by which address, */
	/* and from which; an address is never changed, and lives as long as its socket */
	u64 from;
	u32 number;  /* the policy, */
	u32 sender;  /* and in it the sender's struct tg_profile, 0: not confined */
	u32 version; /* odd while this is written */
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tg_unix_label);
} profile_unix_labels SEC(".maps");

/* What of a socket the rule's last part is about: af_unix.c, CMD_*. */
enum tg_unix_command {
	UNIX_LOCAL,
	UNIX_PEER = 1,
	UNIX_LISTEN = 2,
	UNIX_OPTION = 4,
};

/* What is asked of a profile about a socket. */
struct tg_unix {
	u64 sk;
	union {
		u64 peer; /* the other end, 0: it is not about two; */
		u64 name; /* or the text of the address that it is to have */
	};
	union {
		u32 other; /* the profile of the other end, 0: not confined */
		u32 name_len;
	};
	u32 request;
	u32 number;  /* of the policy */
	u32 profile; /* that decides: struct tg_profile */
	u16 detail;  /* the option, or the length of the queue */
	u8 command;  /* enum tg_unix_command */
	u8 naming;   /* it is about the address that it is to have */
	u8 op;
	u8 learning;
	u8 plain; /* every profile asked so far simply allows it, and none wants a record */
	u8 pad;
};

/* A policy came meanwhile. */
#define UNIX_AGAIN 1

/* NET_FS_PERMS: of these the rules on files decide, where a socket has a path. */
#define UNIX_PATH_PERMS                                                                     \
	(MAY_WRITE_ | MAY_READ_ | MAY_CREATE_ | MAY_DELETE_ | MAY_CONNECT_ | MAY_SETATTR_ | \
	 MAY_GETATTR_ | MAY_CHMOD_ | MAY_CHOWN_ | MAY_LOCK_)

static __always_inline u64 unix_address_of(u64 sk)
{
	return address(CAST(struct unix_sock, sk)->addr);
}

static __always_inline bool unix_has_path(u64 sk)
{
	u64 addr = unix_address_of(sk);

	return addr && (u8)read_kernel_u64(unix_text(addr));
}

/* The state after an address, and the 0 behind it. */
static __always_inline u32 unix_feed(u32 table, u32 state, u64 text, u32 len)
{
	return profile_step(table, name_feed(table, state, text, len), 0);
}

static __always_inline u32 unix_feed_socket(u32 table, u32 state, u64 sk)
{
	u64 addr = unix_address_of(sk);

	if (!addr)
		return profile_step(table, profile_step(table, state, 1), 0);
	return unix_feed(table, state, unix_text(addr), CAST(struct unix_address, addr)->len - 2);
}

static __always_inline u32 feed_u16(u32 table, u32 state, u16 word)
{
	return profile_step(table, profile_step(table, state, word >> 8), word);
}

/* The state of what the rules say of a socket, from the class's on. */
static __always_inline u32 unix_state(struct tg_unix *u, u32 table, u32 state)
{
	struct sock *sk = CAST(struct sock, u->sk);

	state = feed_u16(table, state, AF_UNIX);
	state = feed_u16(table, state, sk->sk_type);
	state = feed_u16(table, state, sk->sk_protocol);
	if (u->naming)
		state = unix_feed(table, state, u->name, u->name_len);
	else
		state = unix_feed_socket(table, state, u->sk);
	/* no rule says anything of its own label */
	state = profile_step(table, state, 0);
	if (u->command == UNIX_LOCAL)
		return state;
	state = profile_step(table, state, u->command);
	if (u->command != UNIX_PEER)
		return feed_u16(table, state, u->detail);
	return profile_named(table, unix_feed_socket(table, state, u->peer), u->other);
}

/* What a state's permissions come to; takes `plain` back where that is not simply allowed. */
static __always_inline int unix_decide(struct tg_unix *u, struct tg_perms perms, u32 request,
				       struct tg_note *n)
{
	struct tg_profile __arena *p = ARENA_PTR(struct tg_profile, u->profile);

	if (u->learning && p->mode == TG_MODE_COMPLAIN)
		perms = (struct tg_perms){};
	if (!is_plain(p, perms.allow, perms.deny, perms.audit, request))
		u->plain = 0;
	return profile_says(u->profile, perms, request, -EACCES, n);
}

/* The end that has a path, by which then the rules on files decide: the other one first; 0: none. */
static __always_inline u64 unix_pathed(struct tg_unix *u)
{
	if (u->naming)
		return 0;
	if (u->peer && unix_has_path(u->peer))
		return u->peer;
	return unix_has_path(u->sk) ? u->sk : 0;
}

/* The state that a socket's path leads to, or an enum tg_name_error. */
__noinline long unix_path_state(struct tg_unix *u, u64 dentry, u64 mnt)
{
	struct tg_who who = {};
	struct tg_text *t;
	long state;

	if (!u)
		return NAME_LATER;
	t = text_get();
	if (!t)
		return NAME_LATER;
	who.number = u->number;
	who.profile = u->profile;
	name_for(&t->name, &who, dentry, mnt, false);
	state = name_find(&t->name);
	text_put(t);
	return state;
}

/* What that state comes to. */
__noinline int unix_path_judge(struct tg_unix *u, u64 dentry, u64 mnt, long state)
{
	struct inode *inode = CAST(struct inode, CAST(struct dentry, dentry)->d_inode);
	struct tg_note note = { .class = TG_C_FILE };
	struct tg_who who = {};
	u32 request;

	if (!u)
		return -EACCES;
	note.op = u->op;
	note.dentry = dentry;
	note.inode = address(inode);
	who.profile = u->profile;
	request = u->request & UNIX_PATH_PERMS;
	if (is_gone(&who, dentry))
		return profile_refuse(request, TG_R_DISCONNECTED, -ENOENT, &note);
	if (state < 0)
		return name_refuse(state, request, &note);
	return unix_decide(u,
			   perms_by(ARENA_PTR(struct tg_profile, u->profile)->file.table, state,
				    owner_by(inode->i_uid.val, mnt)),
			   request, &note);
}

/* What a profile's rules on files say of a socket's path. */
static __always_inline int unix_path_says(struct tg_unix *u, u64 sk)
{
	struct path *path = &CAST(struct unix_sock, sk)->path;
	u64 dentry = address(path->dentry), mnt = address(path->mnt);
	long state;

	u->plain = 0;
	/* it is being closed */
	if (!dentry)
		return 0;
	state = unix_path_state(u, dentry, mnt);
	return policy_seqno() == u->number ? unix_path_judge(u, dentry, mnt, state) : UNIX_AGAIN;
}

/* What its rules on unix sockets say. */
__noinline int unix_rules_say(struct tg_unix *u)
{
	struct tg_note note = { .class = TG_C_SOCKET, .port = AF_UNIX };
	struct tg_perms perms;
	u32 table;

	if (!u)
		return -EACCES;
	table = ARENA_PTR(struct tg_profile, u->profile)->policy.table;
	perms = perms_of(profile_perms(
		table, unix_state(u, table, class_state(u->profile, PROFILE_CLASS_NET)), false));
	if (policy_seqno() != u->number)
		return UNIX_AGAIN;
	note.op = u->op;
	note.detail = CAST(struct sock, u->sk)->sk_type;
	return unix_decide(u, perms, u->request, &note);
}

/* What a profile says; UNIX_AGAIN: that it cannot be asked any more. */
static __always_inline int unix_says(struct tg_unix *u)
{
	u64 pathed;

	if (!confines(u->profile) || !class_state(u->profile, PROFILE_CLASS_NET))
		return 0;
	pathed = unix_pathed(u);
	return pathed ? unix_path_says(u, pathed) : unix_rules_say(u);
}

static __always_inline int unix_busy(struct tg_unix *u)
{
	struct tg_note note = { .op = u->op, .class = TG_C_SOCKET, .port = AF_UNIX };

	return profile_refuse(u->request, TG_R_BUSY, -EAGAIN, &note);
}

/* May the current task, which c confines, do this with a socket of its own? */
__noinline int unix_asked(struct tg_confined *c, struct tg_unix *u)
{
	u32 try;

	if (!c || !u)
		return -EACCES;
	for (try = 0; try < PROFILE_TRIES; try++) {
		struct tg_who who = who_of(c);
		int err;

		if (!who.profile)
			return 0;
		u->number = who.number;
		u->profile = who.profile;
		u->learning = c->learning;
		err = unix_says(u);
		if (err != UNIX_AGAIN)
			return err;
	}
	return unix_busy(u);
}

/*
 * The same of a connection: what the current task asks, and what the other end's profile has to let
 * be done by it. Of a connection to a path only the connecting end is asked.
 */
__noinline int unix_both_say(struct tg_unix *u, u64 other, u32 suffered)
{
	u32 side, request;
	int err = 0, tries;
	u64 sk, peer;

	if (!u)
		return -EACCES;
	sk = u->sk;
	peer = u->peer;
	request = u->request;
	for (tries = 0; tries < PROFILE_TRIES; tries++) {
		u->number = policy_seqno();
		u->plain = 1;
		for (side = 0; side < 2; side++) {
			struct tg_confined *c = profile_subjects_current();
			u32 me = c ? confined_at(c, u->number) : 0;
			u32 it = other ? profile_by_id(u->number, other) : 0;

			u->sk = side ? peer : sk;
			u->peer = side ? sk : peer;
			u->profile = side ? it : me;
			u->other = side ? me : it;
			u->learning = side || !c ? 0 : c->learning;
			u->request = side ? suffered : request;
			err = unix_says(u);
			if (err || (u->op == TG_OP_CONNECT && unix_has_path(peer)))
				break;
		}
		u->sk = sk;
		u->peer = peer;
		u->request = request;
		if (err != UNIX_AGAIN)
			return err;
	}
	return unix_busy(u);
}

/*
 * A socket that nobody else can reach yet becomes the current task's. What has an address, or a peer, is whose it was
 * when it got that.
 */
static __always_inline int unix_take(struct sock *sk, struct tg_confined *c)
{
	struct tg_unix_label *l;

	if (!c->profile || unix_address_of(address(sk)) ||
	    CAST(struct unix_sock, address(sk))->peer)
		return 0;
	l = SOCK_STORAGE_MADE(&profile_unix_labels, sk);
	if (!l)
		return -ENOMEM;
	if (!l->profile)
		l->profile = c->profile;
	return 0;
}

/* bind(); a name in the filesystem is asked about when it is made. */
static __always_inline int unix_binds(struct sock *sk, struct tg_confined *c, u64 name, int len)
{
	struct tg_unix u = {
		.sk = address(sk), .request = MAY_BIND_, .op = TG_OP_SOCKET, .naming = 1
	};
	int err = unix_take(sk, c);

	/* the kernel refuses other lengths by itself */
	if (err || len < 2 || len > sizeof(struct sockaddr_un))
		return err;
	u.name = name + 2;
	u.name_len = len - 2;
	if (u.name_len && (u8)read_kernel_u64(u.name))
		return 0;
	return verdict_of(unix_asked(c, &u));
}

/* An end comes to belong to somebody, and the other end to somebody else; both by their profiles' ids. */
static __always_inline int unix_becomes(struct sock *sk, u64 id, u64 other)
{
	struct tg_unix_label *l;

	if (!id && !other)
		return 0;
	l = SOCK_STORAGE_MADE(&profile_unix_labels, sk);
	if (!l)
		return -ENOMEM;
	if (!l->profile)
		l->profile = id;
	l->other = other;
	return 0;
}

SEC("lsm/unix_stream_connect")
int BPF_PROG(profile_unix_stream_connect, struct sock *sock, struct sock *other, struct sock *newsk)
{
	struct tg_confined *c = profile_subjects_current();
	struct tg_unix_label *l = bpf_sk_storage_get(&profile_unix_labels, other, 0, 0);
	u64 mine = c ? c->profile : 0, theirs = l ? l->profile : 0;
	struct tg_unix u = { .command = UNIX_PEER, .op = TG_OP_CONNECT };
	int err;

	if (!mine && !theirs)
		return 0;
	u.sk = address(sock);
	u.peer = address(other);
	u.request = MAY_CONNECT_ | MAY_WRITE_ | MAY_READ_;
	err = verdict_of(unix_both_say(&u, theirs, MAY_ACCEPT_ | MAY_WRITE_ | MAY_READ_));
	if (err)
		return err;
	/* the end that is accepted is whose the listening socket is */
	err = unix_becomes(newsk, theirs, mine);
	return err ? err : unix_becomes(sock, unix_address_of(u.sk) ? 0 : mine, theirs);
}

SEC("lsm/socket_socketpair")
int BPF_PROG(profile_socket_socketpair, struct socket *a, struct socket *b)
{
	struct tg_confined *c = profile_subjects_current();
	struct sock *one = a->sk, *two = b->sk;
	int err;

	if (!c || !one || !two || one->__sk_common.skc_family != AF_UNIX)
		return 0;
	err = unix_becomes(one, c->profile, c->profile);
	return err ? err : unix_becomes(two, c->profile, c->profile);
}

/* Was the newest datagram of this socket allowed, and did it go from here to there? */
static __always_inline bool unix_is_remembered(struct tg_unix_label *l, u32 number, u32 sender,
					       u64 sk, u64 peer)
{
	u64 cookie = CAST(struct sock, peer)->__sk_common.skc_cookie.counter;
	u32 version = entry_version(&l->version);

	return cookie && l->cookie == cookie && l->number == number && l->sender == sender &&
	       l->from == unix_address_of(sk) && l->to == unix_address_of(peer) &&
	       entry_is_whole(&l->version, version);
}

/* Of two who write at once one does not: a datagram that was allowed may not be joined from two. */
static __always_inline void unix_remember(struct tg_unix_label *l, struct tg_unix *u, u32 sender,
					  u64 cookie)
{
	if (!entry_begin(&l->version))
		return;
	l->cookie = cookie;
	l->number = u->number;
	l->sender = sender;
	l->from = unix_address_of(u->sk);
	l->to = unix_address_of(u->peer);
	entry_end(&l->version);
}

/* A datagram, or a connection that datagrams are to be sent by. */
static __always_inline int unix_sends(struct sock *sk, struct sock *peer)
{
	struct tg_confined *c = profile_subjects_current();
	struct tg_unix_label *mine = bpf_sk_storage_get(&profile_unix_labels, sk, 0, 0), *theirs;
	struct tg_unix u = { .command = UNIX_PEER, .op = TG_OP_SEND };
	u32 number = policy_seqno(), sender = 0;
	u64 other, connected;
	int err;

	if (c && !c->learning)
		sender = confined_at(c, number);
	u.sk = address(sk);
	u.peer = address(peer);
	if (mine && (!c || sender) && unix_is_remembered(mine, number, sender, u.sk, u.peer))
		return 0;
	theirs = bpf_sk_storage_get(&profile_unix_labels, peer, 0, 0);
	other = theirs ? theirs->profile : 0;
	if (!other && !(c && c->profile))
		return 0;
	u.request = MAY_WRITE_;
	err = verdict_of(unix_both_say(&u, other, MAY_READ_));
	if (err)
		return err;
	mine = SOCK_STORAGE_MADE(&profile_unix_labels, sk);
	if (!mine)
		return -ENOMEM;
	connected = address(CAST(struct unix_sock, u.sk)->peer);
	if (!connected || connected == u.peer)
		mine->other = other;
	if (u.plain && u.number == number && (!c || sender))
		unix_remember(mine, &u, sender, bpf_get_socket_cookie(peer));
	return 0;
}

SEC("lsm/unix_may_send")
int BPF_PROG(profile_unix_may_send, struct socket *sock, struct socket *other)
{
	struct sock *sk = sock->sk, *peer = other->sk;

	return sk && peer ? unix_sends(sk, peer) : 0;
}

/*
 * A socket that somebody sends: may this one talk to the other end, and that one to him? What nobody who was confined
 * has made a connection of is handed on freely, as in AppArmor.
 */
static __always_inline int unix_received(struct sock *sk, struct tg_confined *c, u32 request)
{
	struct tg_unix_label *l = bpf_sk_storage_get(&profile_unix_labels, sk, 0, 0);
	struct tg_unix u = { .command = UNIX_PEER, .op = TG_OP_RECEIVE_FD };

	if (!l || !l->profile)
		return 0;
	u.sk = address(sk);
	u.peer = address(CAST(struct unix_sock, u.sk)->peer);
	if (!u.peer || !request)
		return 0;
	u.request = request;
	if (unix_has_path(u.sk) || unix_has_path(u.peer)) {
		if (unix_has_path(u.sk))
			u.peer = 0;
		return verdict_of(unix_asked(c, &u));
	}
	return verdict_of(unix_both_say(&u, l->other, request));
}

#endif
