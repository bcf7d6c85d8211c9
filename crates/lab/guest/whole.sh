set -eu
# Runs at the end of mmdebstrap; $1 is the tree: a server and a workstation that have been
# set up, with the packages of the upgrades that are to come.
root=$1
mkdir -p "$root/payload" "$root/srv/upgrade"
echo tidegate > "$root/etc/hostname"
printf '127.0.0.1 localhost\n127.0.1.1 tidegate\n::1 localhost\n' > "$root/etc/hosts"
printf 'LABEL=root / ext4 defaults 0 1\n' > "$root/etc/fstab"
printf 'LANG=C.UTF-8\n' > "$root/etc/default/locale"
: > "$root/etc/machine-id"

# The disks are NVDIMMs, which no initramfs expects.
printf 'nfit\nnd_pmem\n' >> "$root/etc/initramfs-tools/modules"
sed -i 's/^MODULES=.*/MODULES=list/' "$root/etc/initramfs-tools/initramfs.conf"

chroot "$root" useradd --create-home --uid 1000 --user-group --shell /bin/bash --groups sudo alice
printf 'alice ALL=(ALL) NOPASSWD: ALL\n' > "$root/etc/sudoers.d/alice"
chmod 440 "$root/etc/sudoers.d/alice"

# The newer kernel of an upgrade. Its packages wait in a directory: nobody can fetch them
# where there is no network.
mirror=$(sed -n 's/^deb \(\[[^]]*\] \)*\([^ ]*\) trixie main.*/\2/p' "$root/etc/apt/sources.list" | head -n 1)
echo "deb $mirror trixie-backports main" > "$root/etc/apt/sources.list.d/backports.list"
chroot "$root" apt-get update -q
chroot "$root" apt-get install -q -y -t trixie-backports --download-only \
	-o Dir::Cache::archives=/srv/upgrade linux-image-cloud-amd64
rm -rf "$root/srv/upgrade/partial" "$root/srv/upgrade/lock"
rm "$root/etc/apt/sources.list.d/backports.list"

rm -rf "$root/var/log/apt" "$root/var/log/dpkg.log" "$root/var/cache/debconf"/*-old
