# Attacks that take sessions of several kinds, or what an outside of them has made: begins those, has them do things, and says of each attack
# on a line of its own `shut` if nothing got through, else what came of it. Each is a row of docs/dev/bypasses.md.
# System calls are x86-64's, by their numbers, as in attacks.pl.
use strict;
use warnings;
use Fcntl qw(:DEFAULT);
use Socket;

BEGIN { require '/payload/session.pl' }
our ($S, @held, @others, @pairs);

# What each can try for himself, as root and as another user.
for my $uid (0, 1000) {
	my $as = $uid ? '-by-a-user' : '';
	my $secret = unpack("H*", handle("$S/secret/deep/file"));
	my $over = unpack("H*", handle("$S/merged/secret"));
	# nothing connects what is opened by it to its filesystem's root any more
	open(my $drop, '>', '/proc/sys/vm/drop_caches') or die;
	syswrite($drop, "2\n");
	close($drop);
	my $s = Session->begin('one', $uid);
	my $outside = $$;
	if ($uid) {
		# somebody's of the same user
		push @others, $outside = fork();
		if (!$outside) { $) = "$uid $uid"; $( = $uid; $< = $> = $uid; exec('/usr/bin/sleep', '1000') }
	}

	attack "handle$as" => sub {
		$s->must("seen('$S/given/f')");
		$s->must("\$mount = opened('$S/given/f', O_RDONLY)");
		return map { $s->does($_) } "by_handle(\$mount, pack('H*', '$secret'))", "by_handle(opened('$S/merged/given', O_RDONLY), pack('H*', '$over'))",
			"by_handle(\$mount, handle('$S/secret/f'))";
	};
	attack "magic-links$as" => sub {
		return map { $s->does("seen('$_')") } "/proc/self/root$S/secret/f", "/proc/self/cwd/..$S/secret/f", "/proc/thread-self/root$S/secret/f",
			"/proc/$outside/root$S/given/f", "/proc/$outside/cwd", "/proc/$outside/exe", "/proc/$outside/fd/0", "/proc/self/fd/../root$S/secret/f";
	};
	attack "reopened-wider$as" => sub {
		$s->must("\$held = opened('$S/given/f', O_RDONLY); \$at = opened('$S/given/f', O_PATH); opened(\"/proc/self/fd/\$at\", O_RDONLY)");
		$s->must("\$other = opened('$S/secret/f', O_PATH)");
		return map { $s->does($_) } 'opened("/proc/self/fd/$held", O_RDWR)', 'opened("/proc/self/fd/$at", O_WRONLY)', 'opened("/dev/fd/$held", O_WRONLY | O_APPEND)',
			'opened("/proc/self/fd/$other", O_RDONLY)', 'sys(322, $other, "", 0, 0, AT_EMPTY_PATH)';
	};
	attack "truncated-when-opened$as" => sub {
		return map { $s->does($_) } "opened('$S/given/f', O_RDONLY | O_TRUNC)", "opened('$S/log', O_WRONLY | O_APPEND | O_TRUNC)", "sys(76, '$S/log', 0)",
			"sys(77, opened('$S/log', O_WRONLY | O_APPEND), 0)";
	};
	attack "without-a-name$as" => sub {
		return map { $s->does($_) } "opened('$S/given', O_TMPFILE | O_RDWR)", "opened('$S/secret', O_TMPFILE | O_RDWR)";
	};
	attack "exchanged$as" => sub {
		$s->must("opened('$S/own/x$uid', O_RDWR | O_CREAT)");
		# RENAME_EXCHANGE, RENAME_WHITEOUT, RENAME_NOREPLACE
		return map { $s->does("sys(316, AT_FDCWD, $_)") } "'$S/own/x$uid', AT_FDCWD, '$S/given/f', 2", "'$S/given/f', AT_FDCWD, '$S/own/x$uid', 2",
			"'$S/given/f', AT_FDCWD, '$S/own/y', 4", "'$S/secret/f', AT_FDCWD, '$S/own/y', 1", "'$S/own/x$uid', AT_FDCWD, '$S/secret/x', 0";
	};
	attack "linked-by-descriptor$as" => sub {
		$s->must("\$held = opened('$S/given/f', O_RDONLY); \$at = opened('$S/secret/f', O_PATH)");
		my @tried = map { $s->does($_) } 'sys(265, AT_FDCWD, "/proc/self/fd/$held", AT_FDCWD, "/srv/att/own/l", AT_SYMLINK_FOLLOW)',
			'sys(265, AT_FDCWD, "/proc/self/fd/$at", AT_FDCWD, "/srv/att/own/l", AT_SYMLINK_FOLLOW)';
		# a user that may not is told that there is nothing of that name
		return @tried, map { s/^ENOENT/EPERM/r } $s->does('sys(265, $at, "", AT_FDCWD, "/srv/att/own/l", AT_EMPTY_PATH)');
	};
	attack "another-place$as" => sub {
		# bound, over another filesystem and over itself, from outside
		$s->must("seen('$S/merged/given')");
		return map { $s->does($_) } "seen('$S/given/bound/f')", "seen('$S/merged/secret')", "seen('$S/lower/given')", "seen('$S/upper/given')", "opened('$S/merged/given', O_RDWR)";
	};
	attack "mounts$as" => sub {
		return map { $s->does("apart(sub { $_ })") } "sys(165, '$S/secret', '$S/own', '', 4096, 0)", "sys(165, 'x', '$S/own', 'tmpfs', 0, 0)", "sys(165, 'x', '/', '', 1 << 18, 0)",
			"sys(165, 'x', '/', '', 32 | 4096, 0)", "sys(166, '$S/merged', 2)", "sys(155, '/srv', '/srv')", "sys(161, '$S/own')", "sys(430, 'tmpfs', 0)", "sys(428, AT_FDCWD, '$S/own', 1)",
			"sys(433, AT_FDCWD, '/', 0)", "my \$a = pack('Q4', 1, 0, 0, 0); sys(442, AT_FDCWD, '/', 0, \$a, 32)", "sys(429, AT_FDCWD, '$S/own', AT_FDCWD, '$S/given', 0)";
	};
	attack "user-namespace$as" => sub {
		return map { $s->does("apart(sub { eval { sys(272, 0x10000000) }; $_ })") } "sys(272, 0x20000)", "sys(272, 0x40000000)", "sys(272, 0x20000000)", "sys(272, 0x4000000)", "sys(272, 0x8000000)", "sys(272, 0x2000000)",
			"sys(165, 'x', '$S/own', 'tmpfs', 0, 0)", "sys(430, 'tmpfs', 0)", "sys(428, AT_FDCWD, '$S/own', 1)", "sys(161, '$S/own')", "seen('$S/secret/f')", "sys(133, '$S/own/null', 020666, 0x103)",
			"my \$a = pack('Q11', 0x10020000, (0) x 3, 17, (0) x 6); my \$p = sys(435, \$a, 88); sys(231, 0) if !\$p";
	};
	attack "namespaces$as" => sub {
		return map { $s->does($_) } "sys(308, opened('/proc/$outside/ns/mnt', O_RDONLY), 0)", "sys(308, sys(434, $outside, 0), 0x20000)", "sys(308, opened('/proc/self/ns/mnt', O_RDONLY), 0)",
			"sys(308, opened('/proc/self/ns/net', O_RDONLY), 0)";
	};
	attack "executed-from-memory$as" => sub {
		$s->must("\$held = sys(319, 'program', 0); my \$from = opened('$S/given/program', O_RDONLY); 1 while sys(40, \$held, \$from, 0, 1 << 20)");
		return map { $s->does("apart(sub { $_ })") } 'sys(322, $held, "", 0, 0, AT_EMPTY_PATH)', 'sys(59, "/proc/self/fd/$held", 0, 0)', "sys(322, opened('$S/given/program', O_RDONLY), '', 0, 0, AT_EMPTY_PATH)",
			"sys(322, opened('$S/given/program', O_PATH), '', 0, 0, AT_EMPTY_PATH)", "sys(322, AT_FDCWD, '$S/given/program', 0, 0, 0)";
	};
	attack "executed-by-a-chain$as" => sub { return $s->does("apart(sub { sys(59, '$S/given/script', 0, 0) })") };
	attack "executed-by-the-loader$as" => sub {
		# it is given itself, and may not map what it is to load
		$s->must("system('$S/given/loader', '/usr/bin/perl', '-e', '1') == 0 or die 'loader'");
		my $ended = $s->does("system('$S/given/loader', '$S/given/program', 'x') >> 8");
		return $ended eq 'ok 127' ? 'EACCES' : $ended;
	};
	attack "read-by-its-interpreter$as" => sub {
		# which binfmt_misc gives a descriptor of the program (3: it was read)
		my $reads = unpack("H*", 'exit((grep { my $t = "\0" x 64; syscall(17, $_, $t, 64, 0) > 0 && $t =~ /^TGX1/ } 0 .. 60) ? 3 : 4)');
		my $runs = sub { "my \$pid = fork(); if (!\$pid) { chdir('$_[0]'); my \@a = ('-e', pack('H*', '$reads')); my \$v = pack('PPQ', \@a, 0); " .
			"eval { sys(59, '-e', \$v, 0) }; sys(231, \$@ =~ /^EACCES/ ? 5 : 6) } waitpid(\$pid, 0); \$? >> 8" };
		my $may = $s->must($runs->("$S/run/given"));
		failed("what it may read: $may") if $may ne '3';
		my $ended = $s->must($runs->("$S/run"));
		return $ended =~ /^[45]$/ ? 'EACCES' : "ok $ended";
	};
	attack "mapped-to-be-executed$as" => sub {
		# PROT_READ | PROT_EXEC, private; afterwards; PROT_WRITE of what is shared
		return map {
			my $file = $_;
			my $map = "my \$m = sys(9, 0, 4096, 1, 2, opened('$file', O_RDONLY), 0);";
			$s->must($map);
			map { $s->does($_) } "sys(9, 0, 4096, 5, 2, opened('$file', O_RDONLY), 0)", "$map sys(10, \$m, 4096, 5)", "$map sys(329, \$m, 4096, 5, -1)",
				"sys(135, 0x400000); my \$got = eval { $map 1 }; sys(135, 0); \$got or die 'EACCES'";
		} "$S/given/program", "$S/merged/given";
	};
	attack "others-processes$as" => sub {
		my $reads = "my \$text = 'x' x 8; my \$v = pack('PQ', \$text, 8); my \$w = pack('QQ', 0x1000, 8);";
		return map { $s->does($_) } "sys(101, 16, $outside, 0, 0)", "sys(101, 0x4206, $outside, 0, 0)", "$reads sys(310, $outside, \$v, 1, \$w, 1, 0)", "$reads sys(311, $outside, \$v, 1, \$w, 1, 0)",
			"opened('/proc/$outside/mem', O_RDWR)", "opened('/proc/$outside/environ', O_RDONLY)", "sys(438, sys(434, $outside, 0), 0, 0)", "sys(312, $outside, 0 + \$\$, 1, 0, 0)",
			"sys(424, sys(434, $outside, 0), 0, 0, 0)", "sys(62, $outside, 0)", "sys(200, $outside, 0)", "my \$l = pack('QQ', 1, 1); sys(302, $outside, 7, \$l, 0)", "sys(141, 0, $outside, 19)",
			"my \$m = pack('Q', 1); sys(203, $outside, 8, \$m)", "sys(251, 1, $outside, 3 << 13)", "my \$p = pack('l', 0); sys(144, $outside, 0, \$p)",
			"my \$n = pack('Q', 1); sys(256, $outside, 64, \$n, \$n)", "my \$v = pack('QQ', 0x1000, 4096); sys(440, sys(434, $outside, 0), \$v, 1, 20, 0)";
	};
	attack "asked-of-the-daemon$as" => sub {
		return map { $s->does("asks('$_')") } map { "{\"ask\":$_}" } '"status"', '"metrics"', '"why","of":"last"', '"sessions"', '"booleans"', '"stop"', '"reload","permissive":true',
			'"withdraw","what":{"subject":{"file":null,"name":"wide"}}', '"set-booleans","values":[]', "\"promote\",\"level\":null,\"path\":\"$S/own/x$uid\"", '"capabilities","subject":null,"now":true';
	};
	attack "told-to-the-daemon$as" => sub {
		my $now = '{"ask":"capabilities","subject":"small","now":true}';
		return ((map { $s->does("asks($_)") } "'garbage'", "''", '"\\0" x 64', '"\\xff" x 9000', '\'{"ask":\' x 300', '"[" x 4000',
			"'$now', opened('$S/given/f', O_RDONLY)", "'$now', opened('$S/own', O_RDONLY)", "'$now', opened('$S/given/program', O_PATH)", "'$now', (opened('$S/given/f', O_RDONLY)) x 9",
			# a bundle that may still change, and two at once
			"'$now', opened('$S/given/bundle', O_RDONLY)", "'$now', sealed('$S/given/bundle'), sealed('$S/given/bundle')"),
			# what never ends, and a client that does while it is answered
			$s->does("pipe(my \$r, my \$w); asks('$now', fileno \$r)"), $s->does("for (1 .. 20) { my \$pid = fork(); if (!\$pid) { put(daemon(), '$now' . \"\\n\", sealed('$S/given/bundle')); sys(231, 0) } kill('KILL', \$pid) if \$_ % 2; waitpid(\$pid, 0) } die 'EACCES'"),
			goes_on(system("$ENV{TIDEGATE} sessions >/dev/null") == 0, $s->does("seen('$S/given/f')") =~ /^ok/, $s->does("seen('$S/secret/f')") !~ /^ok/));
	};
	attack "the-kernel$as" => sub {
		my $b = "my \$b = pack('Q20', (0) x 20);";
		return map { s/^ENOKEY/EACCES/r } map { $s->does($_) } "sys(250, 0, -3, 1)", "my \$k = 'user'; my \$d = 'x'; sys(248, \$k, \$d, \$d, 1, -3)", "my \$k = 'user'; my \$d = 'x'; sys(249, \$k, \$d, 0, -3)",
			"my \$b = pack('LLQ14', 1, 128, (0) x 14); sys(298, \$b, 0, -1, -1, 0)", "$b sys(321, 0, \$b, 72)", "sys(323, 1)", "$b sys(425, 1, \$b)", "sys(300, 0, 0)", "my \$i = sys(300, 0x200, 0); sys(301, \$i, 1, 2, AT_FDCWD, '$S/secret')",
			"my \$i = sys(294, 0); sys(254, \$i, '$S/secret', 2)", "my \$i = sys(294, 0); sys(254, \$i, '$S/secret/f', 2)", "sys(167, '$S/own/x$uid', 0)", "sys(163, '$S/own/x$uid')", "sys(443, opened('$S/own/x$uid', O_RDONLY), 0x80000300, 0, 0)",
			"sys(246, 0, 0, 0, 0)", "$b sys(175, \$b, 8, '')", "sys(313, opened('$S/given/f', O_RDONLY), '', 0)", "my \$t = 'x' x 64; sys(103, 3, \$t, 64)", "sys(169, 0xfee1dead, 672274793, 0, 0)",
			"my \$t = pack('QQ', 1, 1); sys(164, \$t, 0)", "$b substr(\$b, 0, 4) = pack('L', 1); sys(159, \$b)", "sys(170, 'x', 1)", "sys(171, 'x', 1)", "sys(133, '$S/own/mem', 020666, 0x101)", "sys(172, 3)", "sys(153)",
			"opened('/dev/kmsg', O_WRONLY)", "opened('/dev/mem', O_RDONLY)", "opened('/proc/sys/kernel/core_pattern', O_WRONLY)", "opened('/sys/fs/cgroup/cgroup.procs', O_WRONLY)",
			"sys(41, 16, 3, 0)", "sys(41, 17, 3, 0)", "sys(41, 2, 3, 1)", "sys(41, 38, 5, 0)", "sys(41, 40, 1, 0)";
	};
	$s->end();
}
exit if @ARGV;

attack "mounted-elsewhere" => sub {
	# what only another namespace has has no name: a directory of it, held
	pipe(my $r, my $w) or die;
	push @others, my $pid = fork();
	if (!$pid) {
		sys(272, 0x20000);
		sys(165, 'x', '/', '', 1 << 18 | 16384, 0);
		sys(165, 'x', '/mnt', 'tmpfs', 0, 0);
		open(my $f, '>', '/mnt/f') or die;
		syswrite($w, "\n");
		sleep(1000);
	}
	readline($r);
	sysopen(my $dir, "/proc/$pid/root/mnt", O_RDONLY | O_DIRECTORY) or failed("mnt: $!");
	fcntl($dir, F_SETFD, 0);
	my $fd = fileno $dir;
	my $s = Session->begin('one', 0);
	my @said = map { $s->does($_) } "sys(257, $fd, 'f', O_RDONLY, 0)", "sys(257, $fd, 'new', O_WRONLY | O_CREAT, 0600)", "sys(257, $fd, '.', O_RDONLY, 0)", "sys(265, $fd, 'f', $fd, 'g', 0)", "sys(263, $fd, 'f', 0)";
	$s->end();
	return @said;
};

attack "terminal" => sub {
	# of the process that began it: what is typed there in its name
	open(my $ptmx, '+<', '/dev/ptmx') or failed("ptmx: $!");
	my $n = pack("i", 0);
	sys(16, fileno $ptmx, 0x40045431, $n);
	sys(16, fileno $ptmx, 0x80045430, $n);
	open(my $tty, '+<', '/dev/pts/' . unpack("i", $n)) or failed("pts: $!");
	fcntl($tty, F_SETFD, 0);
	my $fd = fileno $tty;
	my $s = Session->begin('one', 0);
	my @said = map { $s->does($_) } "my \$c = 'x'; sys(16, $fd, 0x5412, \$c)", "my \$c = pack('C', 3); sys(16, $fd, 0x541c, \$c)", "my \$c = pack('i', 1); sys(16, $fd, 0x8901, \$c)";
	$s->end();
	return @said;
};

attack "handed-as-opened" => sub {
	# an overlay's file is mapped by what is behind it
	my ($here, $there) = pair(SOCK_STREAM);
	my ($a, $b) = (Session->begin('wide', 0), Session->begin('one', 0));
	$a->must("\$held = opened('$_', O_RDWR); gives($here, \$held)"), $b->must("push \@held, taken($there)") for "$S/merged/given", "$S/given/f";
	my @said = map { my $m = "my \$m = sys(9, 0, 4096, 1, 1, \$held[$_], 0);";
		($b->does("written(\$held[$_])"), $b->does("sys(9, 0, 4096, 3, 1, \$held[$_], 0)"), $b->does("$m sys(10, \$m, 4096, 3)")) } 0, 1;
	$_->end() for $a, $b;
	return @said;
};

attack "still-mapped-behind-an-overlay" => sub {
	my $s = Session->begin('one', 0);
	$s->must("my \$fd = opened('$S/merged/mapped', O_RDONLY); \$at = sys(9, 0, 4096, 1, 1, \$fd, 0); shut(\$fd)");
	system("$ENV{TIDEGATE} revoke --object file:$S/merged/mapped >/dev/null");
	my $said = $s->does("1");
	$s->end();
	return $said eq 'no answer' ? 'EACCES' : $said;
};
attack "still-mapped-of-anothers" => sub {
	my ($here, $there) = pair(SOCK_STREAM);
	my ($a, $b) = (Session->begin('wide', 0), Session->begin('one', 0));
	$a->must("gives($here, opened('$S/merged/given', O_RDONLY))");
	my $mapped = $b->does("my \$fd = taken($there); \$at = sys(9, 0, 4096, 1, 1, \$fd, 0); shut(\$fd)");
	system("$ENV{TIDEGATE} revoke --subject att.caps:wide >/dev/null");
	my $said = $b->does("1");
	$_->end() for $a, $b;
	return $mapped !~ /^ok/ ? $mapped : $said eq 'no answer' ? 'EACCES' : $said;
};

attack "inherited" => sub {
	my $channel = Session->of();
	my $a = Session->begin('wide', 0, $channel->{there});
	$a->must("\$held = opened('$S/given/f', O_RDWR); \$at = opened('$S/secret/f', O_RDONLY); \$other = opened('$S/secret', O_TMPFILE | O_RDWR); written(\$other)");
	my ($fd, $secret, $nameless) = map { $a->must($_) } '$held', '$at', '$other';
	my $b = executed($a, "$S/perl", $channel);
	$b->must("content($fd)");
	my @said = map { $b->does($_) } "written($fd)", "content($secret)", "content($nameless)", "written($nameless)", "sys(9, 0, 4096, 1, 2, $secret, 0)", "sys(40, opened('$S/own/s', O_WRONLY | O_CREAT), $secret, 0, 64)",
		"opened('/proc/self/fd/$secret', O_RDONLY)", "sys(265, AT_FDCWD, '/proc/self/fd/$nameless', AT_FDCWD, '$S/own/named', AT_SYMLINK_FOLLOW); seen('$S/own/named')";
	$_->end() for $a, $b;
	return @said;
};

attack "hidden-behind-controls" => sub {
	my ($ab, $ba) = pair(SOCK_STREAM);
	my ($bc, $cb) = pair(SOCK_STREAM);
	my ($a, $b, $c) = (Session->begin('wide', 0), Session->begin('one', 0), Session->begin('wide', 0));
	$a->must("gives($ab, opened('$S/given/f', O_RDWR))");
	$b->must("\$held = taken($ba); content(\$held)");
	# SCM_CREDENTIALS, a hundred times
	$b->must("gives($bc, \$held, map { [1, 2, pack('i3', \$\$, 0, 0)] } 1 .. MANY)");
	$c->must("\$held = taken($cb); content(\$held)");
	my $said = $c->does('written($held)');
	$_->end() for $a, $b, $c;
	return $said;
};

attack "hidden-behind-a-message" => sub {
	my ($ab, $ba) = pair(SOCK_STREAM);
	my ($a, $b, $c) = (Session->begin('wide', 0), Session->begin('one', 0), Session->begin('wide', 0));
	$a->must("gives($ab, opened('$S/given/f', O_RDWR))");
	$b->must("\$held = taken($ba); content(\$held)");
	$c->must("\$at = sys(41, 1, 2, 0); my \$n = pack('S', 1) . '$S/own/socket'; sys(49, \$at, \$n, length \$n)");
	# to the same name, of which the second is not asked about
	my $sent = $b->does("my \$n = pack('S', 1) . '$S/own/socket'; many(sys(41, 1, 2, 0), message(\$n, 'x'), message(\$n, 'f', rights(\$held)))");
	my $taken = $c->does('eval { taken($at) }; $held = taken($at); content($held)');
	my $said = $taken =~ /^ok/ ? $c->does('written($held)') : $sent =~ /^ok/ ? $taken : 'EACCES';
	$_->end() for $a, $b, $c;
	return $said;
};

# one that is used, or read by one call (recvmmsg) for many messages
for my $use ('sent', 'received') {
	attack "many-$use-by-one-call" => sub {
		socket(my $server, PF_INET, SOCK_DGRAM, 0) or die;
		bind($server, pack_sockaddr_in(7301, inet_aton('127.0.0.1'))) or failed("bind: $!");
		my $s = Session->begin('counts', 0);
		$s->must("\$at = sys(41, 2, 2, 0); my \$n = pack('SnC4x8', 2, 7301, 127, 0, 0, 1); sys(42, \$at, \$n, 16); my \$t = 'x'; sys(1, \$at, \$t, 1)");
		my $from = recv($server, my $text, 9, 0);
		my $got = 0;
		if ($use eq 'sent') {
			$s->does("my \$n = pack('SnC4x8', 2, 7301, 127, 0, 0, 1); many(\$at, (message(\$n, 'x')) x 9)");
			$got++ while defined recv($server, $text, 9, 0x40);
		} else {
			send($server, 'x', 0, $from) for 1 .. 9;
			my $said = $s->does("my \@t = ('y') x 9; my \$all = join '', map { my \$v = pack('PQ', \$t[\$_], 1); push \@held, \\\$v; pack('QLx4PQQQLx4Lx4', 0, 0, \$v, 1, 0, 0, 0, 0) } 0 .. 8; sys(299, \$at, \$all, 9, 0x40, 0)");
			$got = $1 if $said =~ /^ok (\d+)/;
		}
		$s->end();
		# one use is gone, one is left
		return $got > 1 ? "ok $got messages" : 'EACCES';
	};
}

attack "source-routes" => sub {
	my $s = Session->begin('counts', 0);
	my $route = "my \$o = pack('C3N', 131, 7, 4, 0x7f000003) . \"\\0\"; my \$r = pack('C4x4N4', 0, 2, 4, 0, 0, 0, 0, 1); my \$n = pack('SnC4x8', 2, 7301, 127, 0, 0, 1); my \$u = sys(41, 2, 2, 0);";
	my @said = map { $s->does("$route $_") } "sys(54, \$u, 0, 4, \$o, 8)", "sys(54, sys(41, 2, 1, 0), 0, 4, \$o, 8)", "sys(54, sys(41, 10, 2, 0), 41, 57, \$r, 24)", "sys(54, sys(41, 10, 1, 0), 41, 57, \$r, 24)",
		"my \$m = message(\$n, 'x', [0, 7, \$o]); sys(46, \$u, \$m, 0)";
	$s->end();
	return @said;
};

attack "routes-behind-a-message" => sub {
	my $s = Session->begin('one', 0);
	my $to = "my \$n = pack('SnC4x8', 2, 7305, 127, 0, 0, 1); my \$u = sys(41, 2, 2, 0);";
	# by IP_RETOPTS, of a message to the same name, about which nobody is asked
	my $route = "[0, 7, pack('C3N', 131, 7, 4, 0x7f000001) . \"\\0\"]";
	$s->must("$to many(\$u, message(\$n, 'x'))");
	my $said = $s->does("$to many(\$u, message(\$n, 'x'), message(\$n, 'x', $route))");
	$s->end();
	return $said;
};

attack "taken-by-pidfd" => sub {
	my $channel = Session->of();
	my $a = Session->begin('wide', 0, $channel->{there});
	my $b = executed($a, "$S/perl", $channel);
	my $pid = $b->must('$$');
	my ($few, $brief) = ($b->must("opened('$S/few', O_RDONLY)"), $b->must("opened('$S/brief', O_RDONLY)"));
	# uses, of which one is left, and time
	$b->must("content($few)");
	$a->must("my \$p = sys(434, $pid, 0); \$held = sys(438, \$p, $few, 0); \$at = sys(438, \$p, $brief, 0)");
	$a->must('content($held)');
	my @said = $a->does('content($held)');
	# it ends with the other's, at the latest 3 s after that has opened it
	for (1 .. 600) {
		my $brief_says = $a->does('content($at)');
		if ($brief_says !~ /^ok/) { push @said, $brief_says; last }
		select(undef, undef, undef, 0.1);
	}
	push @said, 'ok' if @said < 2;
	# and is not to be had any more
	push @said, map { $a->does("content(sys(438, sys(434, $pid, 0), $_, 0))") } $few, $brief;
	$_->end() for $a, $b;
	return @said;
};

attack "socket-without-rights" => sub {
	# kept by what an execution brings, and handed on
	my $channel = Session->of();
	my ($here, $there) = pair(SOCK_STREAM);
	socket(my $server, PF_INET, SOCK_STREAM, 0) or die;
	bind($server, pack_sockaddr_in(7302, inet_aton('127.0.0.1'))) && listen($server, 5) or failed("listen: $!");
	my ($a, $c) = (Session->begin('wide', 0, $channel->{there}), Session->begin('wide', 0));
	my $fd = $a->must("\$at = sys(41, 2, 1, 0); my \$n = pack('SnC4x8', 2, 7302, 127, 0, 0, 1); sys(42, \$at, \$n, 16); \$at");
	my $b = executed($a, "$S/perl", $channel);
	my @said = ($b->does("written($fd)"), $b->does("my \$t = 'x'; sys(0, $fd, \$t, 1)"));
	my $sent = $b->does("gives($here, $fd)");
	my $taken = $c->does("\$held = taken($there)");
	push @said, $taken =~ /^ok/ ? $c->does('written($held)') : $taken =~ /^EAGAIN/ ? $sent : $taken;
	$_->end() for $a, $b, $c;
	return @said;
};

attack "accepted-after-its-end" => sub {
	my ($here, $there) = pair(SOCK_STREAM);
	my ($a, $b) = (Session->begin('wide', 0), Session->begin('one', 0));
	$a->must("\$at = sys(41, 2, 1, 0); my \$n = pack('SnC4x8', 2, 7303, 127, 0, 0, 1); sys(49, \$at, \$n, 16); sys(50, \$at, 5); gives($here, \$at)");
	$b->must("\$at = taken($there)");
	my $connects = sub { socket(my $c, PF_INET, SOCK_STREAM, 0) or die; connect($c, pack_sockaddr_in(7303, inet_aton('127.0.0.1'))) or failed("connect: $!"); push @pairs, $c };
	$connects->();
	$b->must('sys(43, $at, 0, 0)');
	$connects->();
	system("$ENV{TIDEGATE} revoke --caps-session " . session_of($a) . " >/dev/null");
	my @said = $b->does('sys(43, $at, 0, 0)');
	$_->end() for $a, $b;
	# by time
	$a = Session->begin('brief', 0);
	$b = Session->begin('one', 0);
	$a->must("\$at = sys(41, 2, 1, 0); my \$n = pack('SnC4x8', 2, 7304, 127, 0, 0, 1); sys(49, \$at, \$n, 16); sys(50, \$at, 5); gives($here, \$at)");
	$b->must("\$at = taken($there); sys(72, \$at, 4, 2048)");
	my $last = 'ok';
	for (1 .. 600) {
		$last = $b->does('sys(43, $at, 0, 0)');
		last if $last !~ /^(ok|EAGAIN)/;
		select(undef, undef, undef, 0.1);
	}
	$_->end() for $a, $b;
	return @said, $last;
};

attack "connections-to-the-daemon" => sub {
	# of root within a session; half a question by each
	my $s = Session->begin('one', 0);
	my $made = $s->must('my $made = 0; for (1 .. 60) { eval { push @held, put(daemon(), "{"); $made++ } } $made');
	failed("$made connections") if $made < 16;
	my @said = goes_on(map { system("$ENV{TIDEGATE} sessions >/dev/null") == 0 } 1 .. 2);
	$s->end();
	return @said;
};

attack "number-of-who-asked" => sub {
	# the client, with the same descriptors (CLONE_FILES), ends; and another process, which nothing limits, has its number
	my $s = Session->begin('one', 0);
	my ($pid, $same);
	# a thread of the daemon's may have taken the number by then: another one asks in that case
	for (1 .. 10) {
		$pid = $s->must('my $pid = sys(56, 0x400 | 17, 0, 0, 0, 0); if (!$pid) { sys(231, daemon()) } waitpid($pid, 0); $held = $? >> 8; $pid');
		for (1 .. 20) {
			open(my $last, '>', '/proc/sys/kernel/ns_last_pid') or failed("ns_last_pid: $!");
			syswrite($last, $pid - 1);
			close($last);
			push @others, $same = fork();
			if (!$same) { exec('/usr/bin/sleep', '1000') }
			last if $same == $pid;
		}
		last if $same == $pid;
	}
	failed("$pid is not to be had") if $same != $pid;
	my $said = $s->does('answer(put($held, "{\"ask\":\"sessions\"}\n"))');
	$s->end();
	return $said;
};

attack "number-of-who-is-limited" => sub {
	# the process that asks shares its descriptors, so that the daemon tries again for a while; it ends meanwhile, and another process has its number
	my ($pid, $same, $socket);
	my $sessions = sub { my $all = `$ENV{TIDEGATE} sessions`; return scalar(() = $all =~ /^ *\d+ /mg) };
	my $answered = sub { my $ready = ''; vec($ready, $socket, 1) = 1; return select($ready, undef, undef, 0) };
	# a thread of the daemon's may have taken the number by then
	for (1 .. 10) {
		my ($bundle, $before) = (sealed("$S/given/bundle"), $sessions->());
		$socket = sys(41, 1, 1, 0);
		$pid = sys(56, 0x400 | 17, 0, 0, 0, 0);
		if (!$pid) {
			eval { put(reaches($socket), '{"ask":"capabilities","subject":"one","now":true}' . "\n", $bundle); sleep(1000) };
			sys(231, 1);
		}
		# a session is held for it, or it was told already that it gets none
		1 until $sessions->() > $before || $answered->();
		kill('KILL', $pid);
		waitpid($pid, 0);
		for (1 .. 20) {
			open(my $last, '>', '/proc/sys/kernel/ns_last_pid') or failed("ns_last_pid: $!");
			syswrite($last, $pid - 1);
			close($last);
			push @others, $same = fork();
			if (!$same) { exec('/usr/bin/sleep', '1000') or sys(231, 1) }
			last if $same == $pid;
		}
		last if $same == $pid;
		shut($socket);
	}
	failed("$pid is not to be had") if $same != $pid;
	my $said = outcome(sub { answer($socket) });
	# it could not have executed its program, or would be seen to be limited
	return ($said, goes_on(waitpid($same, 1) == 0, `$ENV{TIDEGATE} ps --caps` !~ /^ *$same /m));
};

attack "narrowed-before-an-execution" => sub {
	# one layer is to come with the next execution, and then another at once: the program that is executed has both
	my $s = Session->begin('wide', 0);
	my $asks = sub { my ($subject, $now) = @_; $s->must("asks('{\"ask\":\"capabilities\",\"subject\":\"$subject\",\"now\":$now}', sealed('$S/given/bundle'))") };
	$asks->('one', 'false');
	$asks->('counts', 'true');
	my $again = q{open(my $c, "+<&=", $ARGV[1]) or die; syswrite($c, "ok\n"); do "/payload/sessions.pl"};
	$s->must("my \$fd = \$ARGV[1] + 0; sys(72, \$fd, 2, 0); exec('/usr/bin/perl', '-e', q{$again}, 'within', \$fd)");
	my @said = map { $s->does($_) } "seen('$S/given/f')", "seen('$S/secret/f')";
	push @said, goes_on($s->does("seen('/payload/sessions.pl')") =~ /^ok/);
	$s->end();
	return @said;
};

attack "narrowed-by-two-at-once" => sub {
	my $s = Session->begin('wide', 0);
	$s->must("opened('$S/given/f', O_RDWR)");
	my $ask = join ' ', map { "my \$$_ = put(daemon(), '{\"ask\":\"capabilities\",\"subject\":\"$_\",\"now\":true}' . \"\\n\", sealed('$S/given/bundle'));" } 'one', 'small';
	$s->must("$ask answer(\$one); answer(\$small)");
	my @said = map { $s->does($_) } "opened('$S/given/f', O_RDWR)", "seen('$S/few')", "seen('$S/merged/given')", "seen('$S/secret/f')";
	push @said, goes_on($s->does("seen('$S/given/f')") =~ /^ok/);
	$s->end();
	return @said;
};

attack "filled-with-files" => sub {
	# by another user, in many sessions
	my $other = Session->begin('wide', 0);
	my @all = map { Session->begin('one', 1000) } 1 .. 6;
	for my $s (@all) {
		my $full = $s->must("my \$path = '$S/given/f'; 1 while syscall(2, \$path, O_RDONLY) >= 0; outcome(sub { opened(\$path, O_RDONLY) })");
		failed($full) if $full !~ /ENOMEM/;
	}
	my $later = Session->begin('wide', 0);
	my @said = goes_on($other->does("seen('$S/given/f')") =~ /^ok/, $later->does("seen('$S/given/f')") =~ /^ok/, eval { seen("$S/given/f"); 1 });
	$_->end() for @all;
	push @said, goes_on($other->does("seen('$S/given/f')") =~ /^ok/);
	$_->end() for $other, $later;
	return @said;
};

attack "place-used-again" => sub {
	# what a session that has ended handed on goes while another has its place
	my ($here, $there) = pair(SOCK_STREAM);
	my ($a, $b) = (Session->begin('wide', 0), Session->begin('one', 0));
	$a->must("for (1 .. 9) { gives($here, opened('$S/given/f', O_RDONLY)) }");
	$b->must("\@held = map { taken($there) } 1 .. 9");
	$a->end();
	my @later = map { Session->begin('one', 0) } 1 .. 3;
	my @said = map { $b->does("content(\$held[$_])") =~ /^ok/ } 0;
	$b->must('shut($_) for @held');
	@said = goes_on(@said, map { $_->does("seen('$S/given/f')") =~ /^ok/ } @later);
	$_->end() for $b, @later;
	return @said;
};

attack "owner-within" => sub {
	# in a PID namespace, another process has the number there that the session's own process has outside
	my $own = opened('/proc/self/ns/pid', O_RDONLY);
	socketpair(my $here, my $there, AF_UNIX, SOCK_STREAM, 0) or die;
	sys(272, 0x20000000);
	# its first process, with which all others there end. It ends with its channel, and only once all others have been waited for: the session
	# is another one, which is waited for before.
	my $first = fork();
	if (defined $first && !$first) {
		close($here);
		my $is = eval {
			my $wanted = readline($there) // die;
			open(my $last, '>', '/proc/sys/kernel/ns_last_pid') or die;
			syswrite($last, $wanted - 1);
			close($last);
			my $pid = fork() // die;
			if (!$pid) { sleep; sys(231, 0) }
			$pid;
		};
		syswrite($there, ($is // 0) . "\n");
		readline($there);
		sys(231, 0);
	}
	close($there);
	my $s = eval { Session->begin('one', 0) };
	my $why = $@;
	sys(308, $own, 0x20000000);
	shut($own);
	failed("no session: $why") if !$s;
	syswrite($here, "$s->{pid}\n");
	my $number = (readline($here) // 0) + 0;
	failed("$number instead of $s->{pid}") if $number != $s->{pid};
	$s->must("my \$p = \"\\0\" x 8; sys(53, 1, 1, 0, \$p); (\$at) = unpack('ii', \$p)");
	my @said = ($s->does("sys(72, \$at, 8, $number)"), goes_on($s->does("sys(72, \$at, 8, sys(39))") =~ /^ok/));
	$s->end();
	close($here);
	waitpid($first, 0);
	return @said;
};

# so many executions of a program that brings a layer, each with some of what the session holds
sub runs { my ($times, $closes) = @_; return "for (1 .. $times) { my \$pid = fork(); if (!\$pid) { $closes; eval { sys(59, '$S/brief-program', 0, 0) }; sys(231, 1) } waitpid(\$pid, 0); die \"ended by \$?\" if \$? }" }

attack "executed-many-times" => sub {
	# what each execution inherits is bound once more; more often than a session may have anything
	my $s = Session->begin('wide', 0);
	$s->must("push \@held, opened('$S/given/f', O_RDONLY) for 1 .. 300");
	my @said = goes_on(map { $_ =~ /^ok/ } $s->does(runs(60, '1')), $s->does("seen('$S/given/f')"), $s->does('content($held[299])'));
	# of those that run at once each has its own
	push @said, goes_on($s->does("my \@all = map { my \$pid = fork(); if (!\$pid) { eval { sys(59, '$S/brief-program', 0, 0) }; sys(231, 1) } \$pid } 1 .. 4; for (\@all) { waitpid(\$_, 0); die \"ended by \$?\" if \$? }") =~ /^ok/);
	$s->end();
	return @said;
};

attack "uses-given-again" => sub {
	# a program that brings a layer is executed again: it has its uses anew, and a process that it handed the file to has none
	my ($here, $there) = pair(SOCK_STREAM);
	my ($a, $b, $c) = map { Session->begin('wide', 0) } 1 .. 3;
	my ($few, $handed) = map { $_->must("\$held = opened('$S/few', O_RDONLY)") } $a, $b;
	my $runs = sub {
		my ($s, $code) = @_;
		my $all = "require '/payload/session.pl'; eval { $code }; sys(231, \$@ ? 1 : 0)";
		return $s->does("my \$pid = fork(); if (!\$pid) { exec('$S/perl', '-e', q{$all}) } waitpid(\$pid, 0); die \"EACCES\\n\" if \$?");
	};
	my @said = goes_on(map { $runs->($a, "content($few) for 1 .. 2") =~ /^ok/ } 1, 2);
	push @said, $runs->($a, "content($few) for 1 .. 3");
	$runs->($b, "gives($here, $handed)") =~ /^ok/ or failed('it is not handed over');
	$c->must("\$at = taken($there); content(\$at) for 1 .. 2");
	push @said, $c->does('content($at)'), goes_on($runs->($b, "content($handed)") =~ /^ok/), $c->does('content($at)');
	$_->end() for $a, $b, $c;
	return @said;
};

attack "half-made" => sub {
	# a domain is given up, as it would have a layer too many; what is to have the layers that it has by then is checked at each use
	local $Session::file = '/srv/many.caps';
	my ($fifteen, $full, $again) = map { Session->of() } 1 .. 3;
	my $s = Session->begin('first', 0, map { $_->{there} } $fifteen, $full, $again);
	my @fds = map { fileno $_->{there} } $full, $again;
	my $p = executed($s, "$S/perl15", $fifteen);
	$s->must("shut($_)") for @fds;
	my $one = executed($p, "$S/perl16", $full);
	# from fifteen it has room
	my @said = (goes_on($p->does(runs(1, '1')) =~ /^ok/), $one->does("sys(59, '$S/brief-program', 0, 0)"));
	my $two = executed($p, "$S/perl16", $again);
	$two->must("\$held = opened('$S/few', O_RDONLY); content(\$held) for 1 .. 2");
	push @said, $two->does('content($held)');
	$_->end() for $two, $one, $p, $s;
	return @said;
};
