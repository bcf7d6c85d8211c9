# shellcheck shell=bash disable=SC2034
# A project that example.org has, and an agent: it changes a file, looks at a key, and waits where it may not read a dotfile.
reader=alice
mkdir -p /srv/git/project/src /home/alice/src/untrusted /home/alice/.ssh
echo key >/home/alice/.ssh/id_ed25519
echo 'puts("tide");' >/srv/git/project/src/main.c
git config --system safe.directory '*'
git config --system url.file:///srv/git/.insteadOf https://example.org/
git -C /srv/git/project init -q
git -C /srv/git/project add .
git -C /srv/git/project -c user.name=example -c user.email=example@example.org commit -qm one
mv /srv/git/project/.git /srv/git/project.git
git -C /srv/git/project.git config core.bare true
program AGENT 'sed -i s/tide/TIDE/ src/main.c' 'cat ~/.ssh/id_ed25519' 'cat ~/.bashrc >/dev/null || exec sleep 300'
chown -R alice: /home/alice
with_policy 'include workstation'
