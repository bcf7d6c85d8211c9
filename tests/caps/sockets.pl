# Attacks by sockets: by calls that the kernel refuses only after its security modules were asked, and by names that it chooses itself. Each attack
# is as in sessions.pl. Beside what is tried stands what honest programs do in the same way, which must go on.
use strict;
use warnings;
use Socket;

BEGIN { require '/payload/session.pl' }
our $S;

# a server outside of any session
sub server {
	my ($port, $type) = @_;
	socket(my $socket, PF_INET, $type // SOCK_STREAM, 0) or die;
	setsockopt($socket, SOL_SOCKET, SO_REUSEADDR, 1);
	bind($socket, pack_sockaddr_in($port, inet_aton('127.0.0.1'))) or failed("bind: $!");
	listen($socket, 9) if ($type // SOCK_STREAM) == SOCK_STREAM;
	return $socket;
}
sub client {
	my ($port) = @_;
	socket(my $socket, PF_INET, SOCK_STREAM, 0) or die;
	connect($socket, pack_sockaddr_in($port, inet_aton('127.0.0.1'))) or failed("connect: $!");
	return $socket;
}
sub revoked { system("$ENV{TIDEGATE} revoke --object $_[0] >/dev/null") == 0 or failed("revoke $_[0]") }
# what the kernel itself refuses
sub or_by_the_kernel { return map { s/^(EISCONN|EALREADY|EINVAL|EADDRNOTAVAIL)/EACCES/r } @_ }
my ($tcp, $udp) = ('sys(41, 2, 1, 0)', 'sys(41, 2, 2, 0)');

attack "connected-again" => sub {
	my ($one, $two, $first, $second) = (server(7306), server(7307), server(7306, SOCK_DGRAM), server(7307, SOCK_DGRAM));
	my $s = Session->begin('sockets', 0);
	$s->must("\$held = $tcp; connects(\$held, inet(7306)); written(\$held)");
	$s->must("\$at = $udp; connects(\$at, inet(7306)); written(\$at)");
	send($first, 'secret', 0, recv($first, my $text, 9, 0) // failed("recv: $!"));
	my @said = $s->does('connects($held, inet(7307))');
	revoked("$_:127.0.0.1:7306") for 'tcp', 'udp';
	push @said, map { $s->does($_) } map { ("connects($_, inet(7307))", "written($_)", "my \$t = 'x'; sys(45, $_, \$t, 1, 0x40, 0, 0)") } '$held', '$at';
	push @said, $s->does('my $t = "x"; my $n = inet(7307); sys(44, $held, $t, 1, 0x20000000, $n, 16)'), $s->does('written($held)');
	$s->end();
	return or_by_the_kernel(@said);
};

attack "connected-without-rights" => sub {
	# kept by what an execution brings, which may connect elsewhere
	my $channel = Session->of();
	my ($server, $other) = (server(7302), server(7306));
	my $a = Session->begin('wide', 0, $channel->{there});
	my $fd = $a->must("\$at = $tcp; connects(\$at, inet(7302)); \$at");
	my $b = executed($a, "$S/perl", $channel);
	my @said = map { $b->does($_) } "connects($fd, inet(7306))", "written($fd)", "connects($fd, nowhere())", "connects($fd, inet(7306))", "written($fd)";
	push @said, goes_on(map { $_ =~ /^ok/ } $a->does('written($at)'), $b->does("my \$s = $tcp; connects(\$s, inet(7306)); written(\$s)"));
	$_->end() for $a, $b;
	return or_by_the_kernel(@said);
};

attack "uses-filled-up-again" => sub {
	my $server = server(7301, SOCK_DGRAM);
	my $s = Session->begin('counts', 0);
	$s->must("\$at = $udp; connects(\$at, inet(7301)); written(\$at); connects(\$at, inet(7301)); written(\$at)");
	my @said = map { $s->does($_) } 'connects($at, inet(7301))', 'written($at)';
	$s->end();
	return @said;
};

attack "bound-again" => sub {
	# 7303 is still taken by what sessions.pl has had connected
	my $s = Session->begin('one', 0);
	$s->must("\$at = $tcp; binds(\$at, inet(7304)); sys(50, \$at, 5)");
	my @clients = client(7304);
	$s->must('sys(43, $at, 0, 0)');
	my @said = $s->does('binds($at, inet(7303))');
	revoked('tcp:127.0.0.1:7304');
	push @clients, client(7304);
	push @said, map { $s->does($_) } 'binds($at, inet(7303))', 'sys(43, $at, 0, 0)';
	# the kernel has chosen the port
	my $t = Session->begin('sockets', 0);
	my $port = $t->must("\$at = $tcp; binds(\$at, inet(0)); sys(50, \$at, 5); port_of(\$at)");
	push @clients, client($port);
	push @said, goes_on($t->does('written(sys(43, $at, 0, 0))') =~ /^ok/);
	revoked("tcp:127.0.0.1:$port");
	push @clients, client($port);
	push @said, $t->does('sys(43, $at, 0, 0)');
	$_->end() for $s, $t;
	return or_by_the_kernel(@said);
};

attack "listens-unnamed" => sub {
	my $s = Session->begin('sockets', 0);
	# nobody listens at 7308; the other address is no own one
	my @said = map { $s->does($_) } "sys(50, $tcp, 5)", "my \$s = $tcp; eval { connects(\$s, inet(7308)) }; sys(50, \$s, 5)",
		"my \$s = $tcp; eval { binds(\$s, inet(80, '198.51.100.9')) }; sys(50, \$s, 5)",
		"my \$p = \"\\0\" x 8; sys(53, 1, 1, 0, \$p); my (\$x, \$y) = unpack('ii', \$p); gives(\$x, $tcp); sys(50, taken(\$y), 5)",
		"my \$s = sys(41, 1, 1, 0); my \$n = pack('S', 1); sys(49, \$s, \$n, 2); sys(50, \$s, 5)";
	push @said, goes_on(map { $s->does($_) =~ /^ok/ } "my \$s = $tcp; binds(\$s, inet(0)); sys(50, \$s, 5)",
		"my \$s = sys(41, 1, 1, 0); my \$n = pack('S', 1) . \"\\0own\"; sys(49, \$s, \$n, length \$n); sys(50, \$s, 5)");
	$s->end();
	return @said;
};

attack "port-for-nothing" => sub {
	my $server = server(7305, SOCK_DGRAM);
	my $s = Session->begin('one', 0);
	my @said = map { my $made = $_; map { $s->does("my \$s = $made; my \$t = 'x'; eval { $_ }; port_of(\$s)") =~ s/^ok 0$/EACCES/r }
		'sys(44, $s, $t, 1, 0, 0, 0)', 'sys(1, $s, $t, 1)', 'my $m = message(undef, "x"); sys(46, $s, $m, 0)' } $udp, 'sys(41, 10, 2, 0)';
	# a resolver's way: it sends without connecting, and hears the answer
	$s->must("\$at = $udp; my \$t = 'x'; my \$n = inet(7305); sys(44, \$at, \$t, 1, 0, \$n, 16)");
	send($server, 'answer', 0, recv($server, my $text, 9, 0) // failed("recv: $!"));
	# of a sender that it knows: what is received from anybody lowers its reader
	push @said, goes_on($s->does('connects($at, inet(7305)); my $t = "\0" x 9; sys(0, $at, $t, 9); $t') =~ /^ok answer/);
	$s->end();
	return @said;
};

attack "unspecified-address" => sub {
	my ($server, $datagrams) = (server(7310), server(7310, SOCK_DGRAM));
	my $s = Session->begin('sockets', 0);
	# of IPv6, and of IPv4 as IPv6 writes it
	my @names = ('inet(7310, "0.0.0.0")', 'inet6(7310, "")', 'inet6(7310, "ffff00000000")');
	my @said = map { my ($name, $family) = ($names[$_], $_ ? 10 : 2); map { $s->does("my \$n = $name; my \$t = 'x'; $_") }
		"connects(sys(41, $family, 1, 0), \$n)", "connects(sys(41, $family, 2, 0), \$n)", "sys(44, sys(41, $family, 2, 0), \$t, 1, 0, \$n, length \$n)",
		"sys(44, sys(41, $family, 1, 0), \$t, 1, 0x20000000, \$n, length \$n)" } 0 .. $#names;
	push @said, goes_on(map { $s->does("connects($_)") =~ /^ok/ } "$tcp, inet(7310)", "$udp, inet(7310)", "sys(41, 10, 2, 0), inet6(7310, 'ffff7f000001')");
	$s->end();
	return @said;
};

attack "client-handed-over" => sub {
	my ($here, $there) = pair(SOCK_STREAM);
	my ($server, $named) = (server(7306), server(7311));
	my ($a, $b) = (Session->begin('sockets', 0), Session->begin('serves', 0));
	# by somebody governed, from a port of its choice as well, and by nobody governed
	$a->must("my \$s = $tcp; $_; connects(\$s, inet(7306)); gives($here, \$s)") for '1', 'binds($s, inet(7312))';
	my @said = map { $b->does("written(taken($there))") } 1 .. 2;
	my @clients = map { client($_) } 7306, 7311;
	gives($here, fileno $clients[0]);
	push @said, $b->does("written(taken($there))");
	# a connection that was accepted is had by its own address
	accept(my $accepted, $named) or failed("accept: $!");
	gives($here, fileno $accepted);
	push @said, goes_on($b->does("written(taken($there))") =~ /^ok/);
	$_->end() for $a, $b;
	return @said;
};

attack "message-put-off" => sub {
	my ($server, $other) = (server(7306), server(7309));
	my $s = Session->begin('sockets', 0);
	# MPTCP, a connection of which is put off (TCP_FASTOPEN_CONNECT, TCP_FASTOPEN_NO_COOKIE), and ended
	my $ended = 'my $s = sys(41, 2, 1, 262); my $on = pack("L", 1); sys(54, $s, 6, $_, $on, 4) for 30, 34; connects($s, inet(7306)); connects($s, nowhere())';
	my @said = $s->does("$ended; my (\$t, \$n) = ('x', inet(7309)); sys(44, \$s, \$t, 1, 0, \$n, 16)");
	push @said, goes_on(map { $s->does("my \$s = sys(41, 2, 1, 262); my (\$t, \$n) = ('x', inet(7306)); $_") =~ /^ok/ }
		'connects($s, $n); written($s); sys(44, $s, $t, 1, 0, $n, 16)', 'sys(44, $s, $t, 1, 0x20000000, $n, 16)');
	$s->end();
	return @said;
};

attack "unix-client-handed-over" => sub {
	my ($here, $there) = pair(SOCK_STREAM);
	my ($unix, $any) = ('my $s = sys(41, 1, 1, 0); my $n = pack("S", 1) . "\0attacked";', 'my $none = pack("S", 1); sys(49, $s, $none, 2);');
	my $listens = sub { my $s = sys(41, 1, 1, 0); my $n = pack('S', 1) . "\0$_[0]"; binds($s, $n); sys(50, $s, 9); return $s };
	my $client = sub { my ($name, $named) = @_; my $s = sys(41, 1, 1, 0); binds($s, pack('S', 1)) if $named; connects($s, pack('S', 1) . "\0$name"); return $s };
	my ($server, $own) = map { $listens->($_) } 'attacked', 'own';
	my ($a, $b) = (Session->begin('sockets', 0), Session->begin('serves', 0));
	# by somebody governed, and by nobody governed, with a name of the kernel's choice and without
	$a->must("$unix $_ connects(\$s, \$n); gives($here, \$s)") for '', $any;
	gives($here, $client->('attacked', $_)) for 0, 1;
	my @said = map { $b->does("written(taken($there))") } 1 .. 4;
	# what was accepted is had by its own name, and by that alone once nobody listens
	my @clients = map { $client->('own', $_) } 1, 0, 0;
	my @accepted = map { sys(43, $own, 0, 0) } @clients;
	gives($here, $_) for @accepted[0, 1];
	my $uses = "my \$s = taken($there); written(\$s); shut(\$s)";
	push @said, goes_on(map { $b->does($uses) =~ /^ok/ } 1, 2);
	shut($_) for $own, @accepted[0, 1], @clients[0, 1];
	gives($here, $accepted[2]);
	push @said, goes_on($b->does($uses) =~ /^ok/);
	$_->end() for $a, $b;
	shut($_) for $server, $clients[2], $accepted[2];
	return @said;
};

attack "sockets-go-on" => sub {
	my @servers = (server(7306), server(7307), server(7306, SOCK_DGRAM), server(7307, SOCK_DGRAM));
	my $s = Session->begin('sockets', 0);
	# whoever does not wait asks again how far it is, or tries the next address by the same socket
	my $asked = $s->must('my $s = sys(41, 2, 2049, 0); join ",", map { outcome(sub { connects($s, inet(7306)) }) } 1 .. 3');
	my @said = goes_on($asked =~ /^EINPROGRESS ?,(ok 0|EALREADY ?|EISCONN ?),EISCONN/, map { $s->does($_) =~ /^ok/ }
		"my \$s = $tcp; eval { connects(\$s, inet(7308)) }; connects(\$s, inet(7306)); written(\$s)",
		"my \$s = $tcp; connects(\$s, inet(7306)); connects(\$s, nowhere()); connects(\$s, inet(7307)); written(\$s)",
		"my \$s = $udp; connects(\$s, inet(7306)); connects(\$s, inet(7307)); connects(\$s, nowhere()); connects(\$s, inet(7306)); written(\$s)",
		"my \$s = $tcp; eval { binds(\$s, inet(80, '198.51.100.9')) }; binds(\$s, inet(7313)); sys(50, \$s, 5)");
	$s->end();
	return @said;
};
