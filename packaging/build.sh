#!/bin/bash
# Builds packages from the tree as it is, into target/package.
#   build.sh deb    tidegate, tidegate-exporter, tidegate-lab and the libraries for C for Debian, by debhelper
#   build.sh rpm    the same for distributions with rpm
set -eu

cd "$(dirname "$0")/.."
TARGET=${CARGO_TARGET_DIR:-target}
OUT=$TARGET/package
VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)

need() {
	command -v "$1" >/dev/null || {
		echo "packaging: there is no $1: install the package $2" >&2
		exit 1
	}
}

# trees LIBDIR: everything a package has, where it is installed.
trees() {
	local tree program
	# builds the programs, too
	scripts/build.sh man
	rm -rf "$OUT/trees"
	for program in tidegate tidegate-lab tidegate-exporter; do
		tree=$OUT/trees/$program
		install -D -s -m 755 "$TARGET/x86_64-unknown-linux-gnu/release/$program" "$tree/usr/bin/$program"
		install -D -m 644 "$TARGET/completions/$program.bash" "$tree/usr/share/bash-completion/completions/$program"
		install -D -m 644 "$TARGET/completions/$program.zsh" "$tree/usr/share/zsh/vendor-completions/_$program"
		install -D -m 644 "$TARGET/completions/$program.fish" "$tree/usr/share/fish/vendor_completions.d/$program.fish"
		mkdir -p "$tree/usr/share/doc/$program"
	done
	for page in "$TARGET"/man/*; do
		case ${page##*/} in
		tidegate-lab*) program=tidegate-lab ;;
		tidegate-exporter*) program=tidegate-exporter ;;
		*) program=tidegate ;;
		esac
		tree=$OUT/trees/$program/usr/share/man/man${page##*.}
		mkdir -p "$tree"
		gzip -9nc "$page" >"$tree/${page##*/}.gz"
	done
	tree=$OUT/trees/tidegate
	# the command line starts the daemon from the directory that it lies in itself
	install -s -m 755 "$TARGET/x86_64-unknown-linux-gnu/release/tidegated" "$tree/usr/bin/tidegated"
	for program in tidegate tidegate-exporter; do
		mkdir -p "$OUT/trees/$program/usr/lib/systemd/system"
	done
	install -m 644 packaging/systemd/tidegate.service packaging/systemd/tidegate-reload.* "$tree/usr/lib/systemd/system"
	install -m 644 packaging/systemd/tidegate-exporter.service "$OUT/trees/tidegate-exporter/usr/lib/systemd/system"
	install -D -m 644 packaging/etc/policy.plm "$tree/etc/tidegate/policy.plm"
	install -D -m 644 packaging/etc/default "$tree/etc/default/tidegate"
	install -m 644 README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE LICENSE-GPL-3 LICENSE-LGPL crates/policy/presets/*.plm "$tree/usr/share/doc/tidegate"
	# as in the tree, so that what links to one another does so there
	find docs -name '*.md' -exec cp --parents -t "$tree/usr/share/doc/tidegate" {} +
	chmod -R u=rwX,go=rX "$tree/usr/share/doc/tidegate"
	install -m 644 docs/dev/lab.md docs/dev/cost.md "$OUT/trees/tidegate-lab/usr/share/doc/tidegate-lab"
	LIBDIR=$1 scripts/build.sh install "$OUT/trees/libtidegate-avc" avc
	LIBDIR=$1 scripts/build.sh install "$OUT/trees/libtidegate-service" service
	install -D -m 644 -t "$OUT/trees/libtidegate-avc/usr/share/doc/libtidegate-avc" docs/reference/object-managers.md examples/check-access/check-access.c
	install -D -m 644 -t "$OUT/trees/libtidegate-service/usr/share/doc/libtidegate-service" docs/reference/service-monitor.md examples/notes/notes.c examples/notes/notes.caps
	LIBDIR=$1 scripts/build.sh install "$OUT/trees/libtidegate-restrict" restrict
	install -D -m 644 -t "$OUT/trees/libtidegate-restrict/usr/share/doc/libtidegate-restrict" docs/reference/capability.md examples/narrow/narrow.c
	install -m 644 docs/how-to/metrics.md "$OUT/trees/tidegate-exporter/usr/share/doc/tidegate-exporter"
	for program in tidegate-exporter tidegate-lab libtidegate-restrict; do
		install -m 644 LICENSE LICENSE-GPL-3 "$OUT/trees/$program/usr/share/doc/$program"
	done
	for program in libtidegate-avc libtidegate-service libtidegate-restrict; do
		install -m 644 LICENSE-LGPL "$OUT/trees/$program/usr/share/doc/$program"
	done
}

deb() {
	need dh debhelper
	trees /usr/lib/x86_64-linux-gnu
	rm -rf "$OUT/debian"
	cp -r packaging/debian "$OUT/debian"
	cp packaging/systemd/tidegate.service "$OUT/debian/tidegate.service"
	cp packaging/systemd/tidegate-exporter.service "$OUT/debian/tidegate-exporter.service"
	cp packaging/systemd/tidegate-reload.path "$OUT/debian/tidegate.tidegate-reload.path"
	cp packaging/systemd/tidegate-reload.service "$OUT/debian/tidegate.tidegate-reload.service"
	cat >"$OUT/debian/changelog" <<-CHANGELOG
		tidegate ($VERSION) unstable; urgency=medium

		  * See CHANGELOG.md.

		 -- The Tidegate developers <tidegate@localhost>  $(date -R -d "@$(date_of_tree)")
	CHANGELOG
	(cd "$OUT" && dpkg-buildpackage --build=binary --no-sign --no-check-builddeps)
	# it puts them beside its directory
	mv "$TARGET"/tidegate_* "$TARGET"/tidegate-lab_* "$TARGET"/tidegate-exporter_* "$TARGET"/libtidegate-*_* "$OUT"
	ls "$OUT"/*.deb
}

rpm() {
	need rpmbuild rpm
	trees /usr/lib64
	rpmbuild -bb --quiet --define "_topdir $PWD/$OUT/rpmbuild" --define "version $VERSION" \
		--define "trees $PWD/$OUT/trees" packaging/rpm/tidegate.spec
	mv "$OUT"/rpmbuild/RPMS/*/*.rpm "$OUT"
	ls "$OUT"/*.rpm
}

# So that the same tree gives the same packages.
date_of_tree() {
	git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml
}

# one at a time: a day beside another builds here, too
mkdir -p "$OUT"
exec 9>"$OUT/lock"
flock 9
case ${1:-} in
deb) deb ;;
rpm) rpm ;;
*)
	sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
