# shellcheck shell=sh
# The stage: a network address with a registry behind it, alice's project, her
# helpers. Sourced by play.sh.

REGISTRY=203.0.113.7
HOME_OF_ALICE=/home/alice
APP=$HOME_OF_ALICE/src/app

stage() {
	mkdir -p "$ASIDE"
	[ ! -x /payload/tidegate ] || install -m 755 /payload/tidegate /payload/tidegated /usr/local/bin/
	install -m 755 "$STORY/pkg" "$STORY/helper" "$STORY/terminal" "$STORY/mapping" /usr/local/bin/
	network
	# Debian's kernels refuse TIOCSTI to all but root; many others do not.
	echo 1 >/proc/sys/dev/tty/legacy_tiocsti
	su - alice -c "mkdir -p $APP && git config --global user.name Alice &&
		git config --global user.email alice@example.org && echo 'call mum' > ~/notes.txt"
	cp -a $HOME_OF_ALICE "$ASIDE/alice"
}

# An address out of the documentation's range, on an interface of its own.
network() {
	modprobe dummy
	ip link add registry0 type dummy
	ip address add "$REGISTRY/24" dev registry0
	ip link set registry0 up
	(cd "$STORY" && tar cf "$ASIDE/leftpad.tar" --owner=0 --group=0 --transform='s,^package,leftpad,' package)
	python3 "$STORY/registry.py" "$REGISTRY" "$ASIDE/leftpad.tar" </dev/null >/dev/null 2>&1 &
	for _ in $(seq 120); do
		[ -z "$(ss -Hltn "src $REGISTRY")" ] || return 0
		sleep 0.5
	done
	echo "the registry does not come up" >&2
	exit 1
}

# What an attack has done on the machine without Tidegate is undone.
restore() {
	cp -a "$ASIDE/alice/." $HOME_OF_ALICE/
}

# A command of alice's, in her project, at the level of her session.
in_app() {
	su - alice -c "cd src/app || exit; $*"
}

# In the package's directory, as the player.
in_leftpad() {
	(cd "$APP/node_modules/leftpad" && "$@")
}

# Typed into a shell of hers, on a terminal of its own.
typed() {
	printf 'wait $\nsend cd src/app\nwait $\nsend %s\nwait $\nsend exit\n' "$*" >"$ASIDE/keys"
	terminal "$ASIDE/keys" su - alice
}

# An editor, on a terminal. What the screen shows is of no interest here.
edits() {
	terminal "$STORY/nano.keys" su - alice >/dev/null
}

# Whether a shell of alice's is at that level once it has read the package.
reader_is_at() {
	su - alice -c "read -r line <$APP/node_modules/leftpad/index.js; tidegate why \$\$ | grep -q 'is at $1'"
}
