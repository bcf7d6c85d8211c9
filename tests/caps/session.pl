# What attacks of sessions.pl and sockets.pl have in common: sessions that are begun, and told what to do; and what a session's side has for that.
# System calls are x86-64's, by their numbers, as in attacks.pl.
use strict;
use warnings;
use Errno;
use Fcntl qw(:DEFAULT :mode);
use Socket;

$| = 1;
use constant {
	AT_FDCWD => -100,
	AT_EMPTY_PATH => 0x1000,
	AT_SYMLINK_FOLLOW => 0x400,
	O_PATH => 010000000,
	O_TMPFILE => 020200000,
	MANY => 100,
};
our ($held, @held, $mount, $child, $at, $link, $other);

# A system call, by its number: what it returns. Of one that fails the errno's name is thrown.
sub sys {
	# what the kernel writes to is the caller's, unless that is a constant
	my @at = map { Internals::SvREADONLY($_) ? \(my $copy = $_) : \$_ } @_, (0) x (7 - @_);
	my $result = syscall(${$at[0]}, ${$at[1]}, ${$at[2]}, ${$at[3]}, ${$at[4]}, ${$at[5]}, ${$at[6]});
	if ($result == -1) {
		my ($name) = grep { $!{$_} } sort keys %!;
		die "$name\n";
	}
	return $result;
}
sub opened { my ($path, $flags) = @_; return sys(2, $path, $flags | 0, 0666) }
sub shut { sys(3, $_[0]) }
sub content { my ($fd) = @_; my $text = "\0" x 64; my $n = sys(17, $fd, $text, 64, 0); return substr($text, 0, $n) =~ s/\n//r }
sub written { my ($fd) = @_; my $text = "written"; return sys(1, $fd, $text, 7) }
# what a path leads to
sub seen { my $fd = opened($_[0], O_RDONLY); return content($fd) }

# struct file_handle; of a path, and what is opened by one
sub handle { my $h = pack("Ll", 128, 0) . "\0" x 128; my $id = pack("q", 0); sys(303, AT_FDCWD, $_[0], $h, $id, 0); return $h }
sub by_handle { my ($mount, $handle) = @_; return content(sys(304, $mount, $handle, O_RDONLY)) }

# In another process, as what is tried may change the one that does it.
sub apart {
	my ($code) = @_;
	pipe(my $r, my $w) or die;
	my $pid = fork();
	if (!$pid) {
		syswrite($w, outcome($code));
		sys(231, 0);
	}
	close($w);
	my $outcome = readline($r);
	waitpid($pid, 0);
	die "$outcome\n" if $outcome !~ /^ok/;
	return $outcome;
}
sub outcome {
	my ($code) = @_;
	my $value = eval { $code->() };
	return "ok " . (defined $value ? $value : "") if !$@;
	return $@ =~ s/\n/ /gr;
}

# Messages: struct msghdr with a name, content, and control messages, each of a level, a type and data.
sub message {
	my ($name, $content, @controls) = @_;
	my $control = join "", map { my ($level, $type, $data) = @$_; my $part = pack("QLL", 16 + length $data, $level, $type) . $data; $part . "\0" x (-length($part) % 8) } @controls;
	my @parts = ($name, $content, $control);
	my $vector = pack("PQ", $parts[1], length $content);
	push @held, [\@parts, \$vector];
	$parts[0] = "\0" if !defined $name;
	return pack(defined $name ? "P" : "Q", defined $name ? $parts[0] : 0) . pack("Lx4", length($name // "")) . pack("PQ", $vector, 1) .
		($control ne "" ? pack("P", $parts[2]) : pack("Q", 0)) . pack("QLx4", length $control, 0);
}
sub rights { return [1, 1, pack("i*", @_)] }
sub gives { my ($socket, $fd, @before) = @_; my $m = message(undef, "f", @before, rights($fd)); return sys(46, $socket, $m, 0) }
# a descriptor that came by a socket
sub taken {
	my ($socket) = @_;
	my ($content, $control) = ("\0" x 8, "\0" x 64);
	my $vector = pack("PQ", $content, 8);
	my $m = pack("QLx4PQPQLx4", 0, 0, $vector, 1, $control, 64, 0);
	# MSG_DONTWAIT: whoever sent it has been waited for
	sys(47, $socket, $m, 0x40);
	my ($len, $level, $type, $fd) = unpack("QLLi", $control);
	die "EACCES\n" if $len < 20;
	return $fd;
}
# addresses of IPv4, of IPv6 by the last bytes, and none, which ends a connection
sub inet { my ($port, $host) = @_; return pack('SnC4x8', 2, $port, split(/\./, $host // '127.0.0.1')) }
sub inet6 { my ($port, $host) = @_; return pack('SnLH32L', 10, $port, 0, substr('0' x 32 . $host, -32), 0) }
sub nowhere { return "\0" x 16 }
sub connects { my ($fd, $name) = @_; return sys(42, $fd, $name, length $name) }
sub binds { my ($fd, $name) = @_; return sys(49, $fd, $name, length $name) }
sub port_of { my ($fd) = @_; my ($name, $len) = ("\0" x 28, pack('L', 28)); sys(51, $fd, $name, $len); return unpack('x2n', $name) }
# several messages by one call (sendmmsg); how many were sent
sub many { my ($socket, @messages) = @_; my $all = join "", map { $_ . pack("Lx4", 0) } @messages; return sys(307, $socket, $all, scalar @messages, 0) }

# a connection to the daemon, which everybody may reach; a question, with a descriptor maybe; and the answer, if that gives something
sub daemon { return reaches(sys(41, 1, 1, 0)) }
sub reaches { my ($s) = @_; my $name = pack('S', 1) . "/run/tidegate/tidegate.sock\0"; sys(42, $s, $name, length $name); my $patience = pack("q2", 60, 0); sys(54, $s, 1, 20, $patience, 16); return $s }
# a client that is not heard finds the connection closed
sub put { my ($s, $question, @fds) = @_; my $m = message(undef, $question, map { rights($_) } @fds); eval { sys(46, $s, $m, 0x4000) } || $@ =~ /^EPIPE/ || die $@; return $s }
sub answer {
	my ($s) = @_;
	my ($all, $part) = ('', "\0" x 4096);
	while ($all !~ /\n/) { my $n = eval { sys(0, $s, $part, 4096) } or last; $all .= substr($part, 0, $n) }
	die "no answer\n" if $@ =~ /^EAGAIN/;
	shut($s);
	die "EACCES\n" if $all eq '' || $all =~ /^\{"error"/;
	return $all;
}
# a file's content in memory that nobody changes any more, as the daemon takes it: memfd_create, F_ADD_SEALS
sub sealed {
	my ($path) = @_;
	my ($file, $name, $part) = (opened($path, O_RDONLY), "bundle", "\0" x 65536);
	my $memory = sys(319, $name, 2);
	while (my $n = sys(0, $file, $part, length $part)) { sys(1, $memory, $part, $n) }
	shut($file);
	sys(72, $memory, 1033, 15);
	return $memory;
}
sub asks { return answer(put(daemon(), $_[0] . "\n", @_[1 .. $#_])) }

# A session's side of it: what comes as a line is evaluated here.
if (@ARGV && $ARGV[0] eq 'within') {
	open(my $channel, '+<&=', $ARGV[1]) or die "channel: $!";
	while (1) {
		my $line = '';
		while ($line !~ /\n$/) { sysread($channel, $line, 1 << 16, length $line) or exit }
		my $code = pack("H*", $line =~ s/\n//r);
		no strict 'vars';
		my $sub = eval "sub { $code }" or die $@;
		my $said = outcome($sub);
		syswrite($channel, $said =~ s/\n/ /gr . "\n");
	}
}

package Session {
	use Socket;
	our $file = '/srv/att.caps';
	# as a subject of the file, with descriptors beside
	sub begin {
		my ($class, $subject, $uid, @fds) = @_;
		my $self = $class->of(@fds);
		$self->{pid} = fork();
		if (!$self->{pid}) {
			open(STDIN, '<', '/dev/null');
			if ($uid) { $) = "$uid $uid"; $( = $uid; $< = $> = $uid }
			exec($ENV{TIDEGATE}, 'run', '--caps', $file, '--caps-subject', $subject, '--', '/usr/bin/perl', '/payload/session.pl', 'within', fileno $self->{there}) or die;
		}
		close($self->{there});
		# it begins, or ends the channel
		$self->must('1');
		return $self;
	}
	sub of {
		my ($class, @fds) = @_;
		socketpair(my $here, my $there, AF_UNIX, SOCK_STREAM, 0) or die;
		fcntl($_, Fcntl::F_SETFD, 0) for $there, @fds;
		fcntl($here, Fcntl::F_SETFD, 1);
		return bless { here => $here, there => $there }, $class;
	}
	# what came of code: `ok VALUE`, or an errno's name
	sub does {
		my ($self, $code) = @_;
		syswrite($self->{here}, unpack("H*", $code) . "\n");
		my $line = '';
		while ($line !~ /\n$/) { sysread($self->{here}, $line, 1 << 16, length $line) or return 'no answer' }
		chomp $line;
		return $line;
	}
	# the value of what has to be possible, for an attack to be one
	sub must {
		my ($self, $code) = @_;
		my $said = $self->does($code);
		main::failed("$code: $said") if $said !~ s/^ok ?//;
		return $said;
	}
	sub end { my ($self) = @_; close($self->{here}); waitpid($self->{pid}, 0) if $self->{pid} }
}

our @others;
END { kill('KILL', @others) }

sub failed { die "failed: $_[0]\n" }

# A program that brings a layer, executed by a session with what that holds: it has a channel of its own, that was given to the session
# and ends with the program.
sub executed {
	my ($session, $program, $channel) = @_;
	my $fd = fileno $channel->{there};
	$session->must("my \$pid = fork(); if (!\$pid) { no warnings; exec('$program', '/payload/session.pl', 'within', $fd); sys(231, 1) } shut($fd); \$pid");
	close($channel->{there});
	my $made = bless { here => $channel->{here} }, 'Session';
	$made->must('1');
	return $made;
}

# what must go on meanwhile
sub goes_on { return map { $_[$_] ? 'EACCES' : 'harm (' . ($_ + 1) . ')' } 0 .. $#_ }

# an attack, and what it tried: `shut` if all was refused
sub attack {
	my ($name, $code) = @_;
	my @said = eval { $code->() };
	my $word = $@ ? $@ =~ s/\n/ /gr : !@said ? 'failed: nothing was tried' : '';
	my @through = map { $said[$_] =~ /^(EACCES|EPERM)/ ? () : "$said[$_] (" . ($_ + 1) . ')' } 0 .. $#said;
	print "$name ", $word || (@through ? 'open ' . join(', ', @through) : 'shut'), "\n";
	@held = ();
}

our $S = '/srv/att';
our @pairs;
# both ends of a pair of sockets, as numbers, which sessions begun later have, too
sub pair {
	my ($type) = @_;
	socketpair(my $a, my $b, AF_UNIX, $type, 0) or die;
	fcntl($_, F_SETFD, 0) for $a, $b;
	push @pairs, $a, $b;
	return (fileno $a, fileno $b);
}
sub session_of { my ($s) = @_; my $all = `$ENV{TIDEGATE} ps --caps --json`; return $1 if $all =~ /"pid":$s->{pid},[^\n]*?"session":(\d+)/; failed("session: $all") }

1;
