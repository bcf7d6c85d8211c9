# Attacks from within a session, each by its name: `open` if it got through, `shut` if not. Each is a row of docs/dev/bypasses.md.
# System calls are x86-64's, by their numbers: the machine has no library for some of them.
use strict;
use warnings;
use Errno qw(EACCES EPERM);
use Fcntl;
use Socket;

$| = 1;
my ($name, $number) = @ARGV;

sub try { my $result = syscall($_[0], @_[1 .. $#_]); return $result < 0 ? 0 : 1 }

# the kernel takes whatever flags it is called with; 0x20 is that of an execution
sub queue { my $text = "attack"; return try(240, $text, O_RDWR | O_CREAT | $_[0], 0600, 0) }

sub appends { sysopen(my $log, "/srv/log", O_WRONLY | O_APPEND) or die "open: $!"; return $log }

sub overwrite {
	my $log = appends();
	my $text = "gone";
	my $part = pack("PQ", $text, 4);
	# RWF_NOAPPEND
	return try(328, fileno($log), $part, 1, 0, 0, 0x20);
}

# FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
sub clear { my $log = appends(); return try(285, fileno($log), 3, 0, 4096) }

sub append { my $log = appends(); return syswrite($log, "x") ? 1 : 0 }

# MAP_PRIVATE; PROT_WRITE is 2
sub map_it { return syscall(9, 0, 4096, $_[1], 2, fileno($_[0]), 0) }

sub map_to_write { return map_it($_[0], 2) != -1 }

# a tracer reads memory that its owner may not: PTRACE_TRACEME, PTRACE_PEEKDATA
sub map_for_nothing {
	my $at = map_it($_[0], 0);
	return 0 if $at == -1;
	my $child = fork();
	if (!$child) {
		syscall(101, 0, 0, 0, 0);
		kill('STOP', $$);
		exit(0);
	}
	waitpid($child, 2);
	my $word = "\0" x 8;
	my $is_read = try(101, 1, $child, $at, $word);
	kill('KILL', $child);
	return $is_read;
}

# SPLICE_F_NONBLOCK
sub splice_it { pipe(my $r, my $w) or die; return try(275, fileno($_[0]), 0, fileno($w), 0, 1, 2) }

sub file { sysopen(my $file, "/srv/in/f", O_RDONLY) or die "open: $!"; return $file }

sub connection {
	socket(my $socket, PF_INET, SOCK_STREAM, 0) or die "socket: $!";
	connect($socket, pack_sockaddr_in(7300, inet_aton("127.0.0.1"))) or die "connect: $!";
	# until there is something
	my $set = '';
	vec($set, fileno($socket), 1) = 1;
	select($set, undef, undef, 60);
	return $socket;
}

# TCP_ZEROCOPY_RECEIVE, which copies what is no whole page
sub read_by_option {
	my $text = "\0" x 64;
	my $option = pack("QLLLlPlLQQLL", 0, 0, 0, 0, 0, $text, 64, 0, 0, 0, 0, 0);
	my $len = pack("L", length $option);
	return try(55, fileno($_[0]), 6, 35, $option, $len) && $text =~ /^many/;
}

sub used_up { my $socket = connection(); splice_it($socket) && splice_it($socket) or die "splice: $!"; return $socket }

my %without = (
	'queue' => sub { queue(0) },
	'queue-as-if-executed' => sub { queue(0x20) },
	'neither-read-nor-write' => sub { sysopen(my $file, "/srv/other/secret", 3) },
	'overwrite-appended' => \&overwrite,
	'clear-appended' => \&clear,
	'append' => \&append,
	'shared-memory' => sub { try(29, 0, 4096, 01600) },
	# IPC_RMID
	'others-shared-memory' => sub { try(31, $number + 0, 0, 0) },
);
# what has a descriptor first, says so, and tries once it hears a line
my %with = (
	'map-to-write' => [\&file, \&map_to_write],
	'map-for-nothing' => [\&file, \&map_for_nothing],
	'splice-a-socket' => [\&connection, \&splice_it],
	'read-by-an-option' => [\&connection, \&read_by_option],
	'splice-a-used-up-socket' => [\&used_up, \&splice_it],
);

my $got;
if (my $attempt = $without{$name}) {
	$got = $attempt->();
} else {
	my ($first, $then) = @{$with{$name}};
	my $held = $first->();
	print "ready\n";
	readline(STDIN);
	$got = $then->($held);
}
my $errno = $! + 0;
print $got ? "open\n" : $errno == EACCES || $errno == EPERM ? "shut\n" : "failed $!\n";
