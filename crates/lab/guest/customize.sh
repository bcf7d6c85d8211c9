set -eu
# Runs at the end of mmdebstrap; $1 is the tree. Makes the directories that the
# guest's init mounts on, and an ordinary user with something to protect.
root=$1
mkdir -p "$root/payload" "$root/usr/lib/modules"
echo tidegate > "$root/etc/hostname"
printf '127.0.0.1 localhost tidegate\n::1 localhost\n' > "$root/etc/hosts"
: > "$root/etc/fstab"

chroot "$root" useradd --create-home --uid 1000 --user-group --shell /bin/bash alice
home=$root/home/alice
mkdir -p "$home/src" "$home/Downloads" "$home/.ssh"
# Made up: it opens nothing, it only looks worth stealing.
cat > "$home/.ssh/id_ed25519" <<'KEY'
-----BEGIN OPENSSH PRIVATE KEY-----
bm90IGEga2V5OiBtYWRlIHVwIGZvciBUaWRlZ2F0ZSdzIHRlc3RzLCBvcGVucyBub3RoaW5n
-----END OPENSSH PRIVATE KEY-----
KEY
echo 'ssh-ed25519 bm90IGEga2V5OiBtYWRlIHVw alice@tidegate' | tee "$home/.ssh/id_ed25519.pub" > "$home/.ssh/authorized_keys"
chmod 700 "$home/.ssh"
chmod 600 "$home/.ssh/id_ed25519" "$home/.ssh/authorized_keys"
chroot "$root" chown -R alice:alice /home/alice
rm -rf "$root/var/log/apt" "$root/var/log/dpkg.log" "$root/var/cache/debconf"/*-old
