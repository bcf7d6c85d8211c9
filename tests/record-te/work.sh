#!/bin/bash
# The work that is recorded, and then done in the domain. As root, in /root/te.
#   work.sh OUTSIDE     OUTSIDE: a process that is in no domain
set -u
outside=$1
cd /root/te || exit 1

cat plain >copy
cat secret/file                        # may not be read
echo more >>log                        # may be appended to
echo new >log                          # and not written
cat log                                # nor read
echo x >kept/new                       # no names come there,
rm -f kept/old                         # or go
mv kept/other moved                    # this keeps the label of where it was
cat moved
mv copy carried                        # and this that of here
ln plain linked
ln kept/stays linked2
ln -s plain symbolic
readlink symbolic
mkdir fresh
mv fresh renamed                       # directories may not be renamed
rmdir renamed fresh
echo made >made                        # by a transition by name
cat made
chmod 600 data
truncate -s 1 data
truncate -s 1 plain
./tool true                            # without a domain of its own
./helper plain secret/file made        # in another
cat /proc/version /proc/uptime
kill -CONT "$outside"
renice -n 1 -p "$outside"
perl -MSocket -e 'socket my $s, AF_INET, SOCK_STREAM, 0; connect $s, sockaddr_in(7001, INADDR_LOOPBACK);
	socket $s, AF_INET, SOCK_STREAM, 0; connect $s, sockaddr_in(7002, INADDR_LOOPBACK)'
perl -MSocket -e 'socket my $s, AF_UNIX, SOCK_STREAM, 0; connect $s, sockaddr_un("/root/te/socket") or print "$!\n"'
python3 - <<'END'
import mmap, os
for path in "/root/te/data", "/root/te/plain":
    file = os.open(path, os.O_RDONLY)
    mmap.mmap(file, 1, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
END
exit 0
