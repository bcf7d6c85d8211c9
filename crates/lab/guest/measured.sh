set -eu
# Runs at the end of mmdebstrap, after lab.cil has been written to the tree, which is $1:
# the kernel's sources as far as a small kernel needs them, and SELinux's policy with the
# lab's module and the labels that it gives.
root=$1
# mke2fs would make lost+found itself, and it would have no label.
mkdir -m 700 "$root/lost+found"
mkdir -p "$root/payload" "$root/usr/lib/modules" "$root/srv/lab"
echo tidegate > "$root/etc/hostname"
printf '127.0.0.1 localhost tidegate\n::1 localhost\n' > "$root/etc/hosts"
: > "$root/etc/fstab"

# All that tinyconfig reads, and all that objects of init, kernel and lib are made from.
cd "$root/usr/src"
tar -xJf linux-source-*.tar.xz --wildcards --no-wildcards-match-slash --no-anchored \
	--exclude=include/dt-bindings --exclude=tools/testing \
	'linux-source-*/Makefile' 'linux-source-*/Kbuild' 'Kconfig*' \
	'linux-source-*/arch/x86' 'linux-source-*/include' 'linux-source-*/scripts' \
	'linux-source-*/kernel' 'linux-source-*/lib' 'linux-source-*/init' 'linux-source-*/mm' \
	'linux-source-*/tools/include' 'linux-source-*/tools/scripts' 'linux-source-*/tools/build'
rm linux-source-*.tar.xz
mv linux-source-* linux
chroot "$root" make -s -C /usr/src/linux tinyconfig prepare > /dev/null

mv "$root/lab.cil" "$root/usr/share/selinux/default/lab.cil"
chroot "$root" semodule --noreload --install=/usr/share/selinux/default/lab.cil

rm -rf "$root/var/log/apt" "$root/var/log/dpkg.log" "$root/var/cache/debconf"/*-old

# What each file's label is to be. Lines of the list that mmdebstrap leaves no file for
# count for nothing.
: > "$root/usr/lib/labels"
chroot "$root" sh -eu > "$root/labels" <<'LABELS'
for type in f:file d:dir l:lnk_file p:fifo_file s:sock_file; do
	find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp \) -prune \
		-o -type "${type%:*}" -print0 | LC_ALL=C sort -z | xargs -0r matchpathcon -m "${type#*:}"
done | grep -v '<<none>>$'
printf '%s\tsystem_u:object_r:%s:s0\n' /proc proc_t /sys sysfs_t /dev device_t /run var_run_t /tmp tmp_t
LABELS
mv "$root/labels" "$root/usr/lib/labels"
