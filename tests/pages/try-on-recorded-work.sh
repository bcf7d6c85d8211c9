# shellcheck shell=bash disable=SC2034
# Something of alice's to build, which runs a script that connects and then reads her key.
installed
mkdir -p /home/alice/src/app /home/alice/.ssh
echo key >/home/alice/.ssh/id_ed25519
printf 'all:\n\t@./fetch\n' >/home/alice/src/app/Makefile
printf '%s\n' '#!/bin/bash' 'exec 3<>/dev/tcp/127.0.0.1/80' 'cat ~/.ssh/id_ed25519 >/dev/null' >/home/alice/src/app/fetch
chmod 755 /home/alice/src/app/fetch
chown -R alice: /home/alice
