# A daemon that does what it is told over a socket: reads a file, or makes one. It is there before any policy is.
use strict;
use warnings;
use IO::Socket::UNIX;
my ($path) = @ARGV;
my $listens = IO::Socket::UNIX->new(Type => SOCK_STREAM, Local => $path, Listen => 8) or die "$path: $!";
while (my $one = $listens->accept) {
	my ($what, $file) = split ' ', <$one> // '';
	my $done = $what eq 'read' ? open(my $in, '<', $file) : open(my $out, '>', $file);
	print $one $done ? "done\n" : "$!\n";
	close $one;
}
print "accept: $!\n";
