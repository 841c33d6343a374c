#!/bin/sh
# Sees to it that the tests find Postgres and pgbouncer, and installs them with
# the system's package manager where they are missing. NO_INSTALL=1 says the
# command instead, and fails; where pgbouncer alone is missing and is not or cannot be
# installed, it says what is left out, and does not fail. Nothing of a database that is
# there is touched.
set -eu

# The same places as in find.go.
postgres_places='
/usr/lib/postgresql/*/bin
/usr/pgsql-*/bin
/usr/lib/postgresql*/bin
/usr/libexec/postgresql*
/usr/local/pgsql/bin
/opt/homebrew/opt/postgresql*/bin
/usr/local/opt/postgresql*/bin
/Applications/Postgres.app/Contents/Versions/*/bin
/usr/local/bin
/usr/bin
'
bouncer_places='
/usr/sbin
/usr/local/sbin
/usr/bin
/usr/local/bin
/opt/homebrew/bin
/opt/homebrew/opt/pgbouncer/bin
'

say() { echo "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# found PROGRAM PLACES
found() {
	have "$1" && return
	for place in $2; do # the patterns are meant to be expanded
		[ -x "$place/$1" ] && return
	done
	return 1
}

missing() {
	if [ -n "${XXLJOB_TEST_DATABASE_URL:-}${XXLJOB_TEST_POSTGRES_BIN:-}" ]; then :; else
		found initdb "$postgres_places" || printf ' postgresql'
	fi
	found pgbouncer "$bouncer_places" || printf ' pgbouncer'
}

# as_root COMMAND... runs it as root, through sudo if need be.
as_root() {
	say "+ $*"
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# apt keeps Debian from starting servers of its own, which tests do not need.
apt() {
	dir=/etc/postgresql-common/createcluster.d made=
	[ -d "$dir" ] || made=$dir
	as_root apt-get update -qq || say "going on with the lists of packages that are there"
	as_root mkdir -p "$dir"
	echo 'create_main_cluster = false' | as_root tee "$dir/pgtest.conf" >/dev/null
	status=0
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" || status=$?
	as_root rm -f "$dir/pgtest.conf"
	if [ -n "$made" ]; then as_root rmdir "$made" || :; fi
	case " $* " in
	*" pgbouncer "*) if have systemctl; then as_root systemctl disable --now pgbouncer || :; fi ;;
	esac
	return "$status"
}

# give_up WHY [COMMAND] ends without an installation.
give_up() {
	say "the tests need$lack$1"
	[ -z "${2:-}" ] || say "  $2"
	if [ "$lack" = ' pgbouncer' ] && [ "${CI:-}" != true ]; then
		say "LEFT OUT: the tests behind pgbouncer (TestPooler and the like) are skipped; all others are run"
		exit 0
	fi
	exit 1
}

lack=$(missing)
[ -n "$lack" ] || exit 0

# Not everywhere is the package of the server called postgresql; find.go agrees.
server=postgresql
if have apt-get; then
	command="apt-get install -y" install=apt
elif have dnf; then
	command="dnf install -y" server="postgresql-server postgresql"
	install="as_root $command"
elif have apk; then
	command="apk add"
	install="as_root $command"
elif have brew; then
	command="brew install" server=postgresql@17
	install=$command
else
	give_up ": install it, or name a database in XXLJOB_TEST_DATABASE_URL"
fi

packages=
for package in $lack; do
	case $package in
	postgresql) packages="$packages $server" ;;
	*) packages="$packages $package" ;;
	esac
done

if [ "${NO_INSTALL:-}" = 1 ]; then
	give_up ". As NO_INSTALL=1 says, nothing is installed; run:" "$command$packages"
fi
if ! have brew && [ "$(id -u)" != 0 ] && ! have sudo; then
	give_up ", and installing takes root; run as root:" "$command$packages"
fi

say "the tests need$lack: installing with $command$packages (NO_INSTALL=1 prevents it)"
# shellcheck disable=SC2086 # both are lists
$install $packages </dev/null >&2

lack=$(missing)
if [ -n "$lack" ]; then
	say "installed, but not found:$lack"
	exit 1
fi
