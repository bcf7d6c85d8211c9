# Goes on where apparmor-source.sh ended: the programs of the regression tests, by the
# tests' own makefile, for the libapparmor that Debian has.
chroot "$1" make -s -C /usr/src/apparmor/tests/regression/apparmor USE_SYSTEM=1 all
rm -rf "$1/var/log/apt" "$1/var/log/dpkg.log" "$1/var/cache/debconf"/*-old
