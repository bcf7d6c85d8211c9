#!/bin/sh
# The story, played as root in a virtual machine: an ordinary session that nothing
# disturbs, then a package whose install script attacks it.
#   play.sh             with Tidegate in force
#   play.sh --bare      without it: prints what each attack comes to, for comparison
# What is promised is that every attack comes off without Tidegate and none with it.
set -eu

STORY=$(dirname "$(realpath "$0")")
# shellcheck source=tests/story/lib.sh
. "$STORY/lib.sh"
# shellcheck source=tests/story/stage.sh
. "$STORY/stage.sh"
# shellcheck source=tests/story/attacks.sh
. "$STORY/attacks.sh"

stage
if [ "$MODE" = bare ]; then
	attacks_on_alice
	attacks_as_root
	exit
fi

scene "Tidegate starts"
say "A stock Debian kernel ($(uname -r)) without a patch; nothing is enforced yet." \
	"At the start the kernel checks Tidegate's programs, which takes a while where a" \
	"processor is emulated."
must "it is in force" show_slowly tidegate start --preset workstation
show tidegate status
tidegate run --level untrusted -- touch "$OUTPUT"

scene "Alice at work"
say "An ordinary user logs in, writes a program, and keeps it in git. What she" \
	"does is at the level user: above what is untrusted, below the system."
must "her session ran to its end" su - alice -c "$STORY/session.sh"
must "nano saved what she typed" edits
must "not one refusal in all of that" no_refusals

scene "She installs a package"
say "leftpad comes from $REGISTRY over TCP. Whoever has connected to the network" \
	"is untrusted from then on, and so are the files it makes:"
must "the package is installed" in_app pkg install leftpad nothing
in_leftpad show tidegate ls index.js postinstall
say
say "Its install script is a thief. It runs as alice, whom Unix lets do all of this." \
	"Each time it is refused something, \`why\` says what, by which line of which map," \
	"and (←) how the process came to be so low, the latest first:"
attacks_on_alice

scene "The same with sudo"
say "Now root itself installs it, from the console. To Tidegate root is nobody" \
	"special:"
attacks_as_root

scene "The trusted way up"
say "Reading what is untrusted costs the reader its level, nothing else:"
must "a reader of leftpad falls to untrusted" reader_is_at untrusted
in_leftpad show tidegate promote --level user index.js
must "after its promotion a reader stays at user" reader_is_at user

scene "What was asked and how it was answered"
show tidegate stats
verdict
