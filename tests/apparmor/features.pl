#!/usr/bin/perl
# The features of apparmor_parser's --kernel-features, in one file, as the kernel's tree of them.
#   features.pl FILE DIR
use strict;
use warnings;

my ($file, $dir) = @ARGV;
open(my $in, '<', $file) or die "$file: $!";
my $text = do { local $/; <$in> };
my @at = ($dir);
mkdir $dir or die "$dir: $!";
# `name {` begins what is a directory if others begin in it, and a file if not
while ($text =~ /\G\s*(?:(\w+) \{|\}|(\S[^{}]*))/gc) {
	if (defined $1) {
		my $above = $at[-1];
		-d $above or mkdir $above or die "$above: $!";
		push @at, "$above/$1";
	} elsif (defined $2) {
		open(my $out, '>', $at[-1]) or die "$at[-1]: $!";
		print $out $2;
	} else {
		pop @at;
	}
}
