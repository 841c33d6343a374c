#!/bin/sh
# Builds the executors that the interop tests run against, into bin/interop (or
# INTEROP_CACHE): java-VERSION for each line of java/versions, go and python. What
# has not changed since is not built again.
#
# Missing tools are installed by the system's package manager where that is apt
# and we are root; NO_INSTALL=1 says the command instead. A peer that cannot be
# built leaves its reason in NAME.missing, for the tests to skip aloud; with
# XXLJOB_REQUIRE_INTEROP=1, and where CI=true, that is an error.
#
# A version that nobody has published is built from the jars in
# XXLJOB_INTEROP_PEERS, which is ../shared/peers beside the repository unless it is
# set. Only where that folder is not there may a peer be missing everywhere, which
# is said.
set -eu
cd "$(dirname "$0")"

cache=${INTEROP_CACHE:-$PWD/../bin/interop}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
peers=${XXLJOB_INTEROP_PEERS:-$PWD/../../shared/peers}
broken=0
updated=0

say() { echo "interop: $*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }
venv_works() { python3 -c 'import ensurepip, venv' >/dev/null 2>&1; }

# absent NAME REASON notes that a peer is not there.
absent() {
	echo "$2" >"$cache/$1.missing"
	say "NO PEER $1: $2"
	if [ "${XXLJOB_REQUIRE_INTEROP:-}" = 1 ] || [ "${CI:-}" = true ]; then broken=1; fi
}

# permitted NAME REASON notes that a peer is not there, and need not be.
permitted() {
	echo "permitted: $2" >"$cache/$1.missing"
	say "NO PEER $1: $2"
}

# install PACKAGES... installs system packages, or says how.
install() {
	if ! have apt-get; then
		say "needs $*, and there is no apt-get here: install them"
		return 1
	fi
	if [ "${NO_INSTALL:-}" = 1 ]; then
		say "needs $*. As NO_INSTALL=1 says, nothing is installed; run: apt-get install -y $*"
		return 1
	fi
	if [ "$(id -u)" != 0 ]; then
		say "needs $*; run as root: apt-get install -y $*"
		return 1
	fi
	say "installing $* (NO_INSTALL=1 prevents it)"
	if [ $updated = 0 ]; then
		apt-get update -qq </dev/null >&2 || say "going on with the lists of packages that are there"
		updated=1
	fi
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" </dev/null >&2
}

# stamp PATHS... is a sum over all files below the paths and over this script.
stamp() { find "$@" build.sh -type f ! -name '*.class' | LC_ALL=C sort | xargs cat | cksum; }

# built NAME STAMP: is it there, from the same sources?
built() { [ -d "$cache/$1" ] && [ "$(cat "$cache/$1.stamp" 2>/dev/null)" = "$2" ]; }

# build NAME STAMP COMMAND... runs a command that fills the directory NAME.
build() {
	name=$1 sum=$2
	shift 2
	rm -f "$cache/$name.missing"
	if built "$name" "$sum"; then return; fi
	rm -rf "${cache:?}/$name" "$cache/$name.stamp"
	mkdir "$cache/$name"
	say "building $name"
	if "$@" >"$cache/$name.log" 2>&1 </dev/null; then
		echo "$sum" >"$cache/$name.stamp"
	else
		tail -n 30 "$cache/$name.log" >&2
		rm -rf "${cache:?}/$name"
		absent "$name" "it could not be built: see $cache/$name.log"
	fi
}

# java_peer VERSION GENERATION STYLE RUN SLF4J FLAGS... names the directories of the
# sources, and says where the library is.
java_peer() {
	version=$1 generation=$2 style=$3 run=$4 slf4j=$5
	shift 5
	mvn -B -q -f java/pom.xml "-Dxxl.version=$version" "-Dgeneration=$generation" "-Dstyle=$style" "-Drun=$run" \
		"-Dslf4j.version=$slf4j" "-Dout=$cache/java-$version" "$@" compile
}

go_peer() { (cd go && export GOWORK=off && ${GO:-go} vet -mod=readonly . && ${GO:-go} build -mod=readonly -o "$cache/go/peer" .); }

python_peer() {
	python3 -m venv "$cache/python" &&
		"$cache/python/bin/pip" install --disable-pip-version-check -q --no-deps -r python/requirements.txt &&
		cp python/main.py "$cache/python/main.py"
}

build go "$(stamp go)" go_peer

java_lack=
if ! have javac || ! have mvn; then
	install default-jdk-headless maven || :
	for tool in javac mvn; do have $tool || java_lack="$java_lack $tool"; done
fi
while read -r version generation style run slf4j from; do
	set -- "$version" "$generation" "$style" "$run" "$slf4j"
	state=$(stamp java/pom.xml java/src)
	if [ "$from" = peers ]; then
		if [ ! -d "$peers" ] && [ -z "${XXLJOB_INTEROP_PEERS:-}" ]; then
			permitted "java-$version" "there is no folder ../shared/peers beside the repository"
			continue
		fi
		if [ ! -d "$peers" ]; then
			absent "java-$version" "XXLJOB_INTEROP_PEERS is no folder: $peers"
			continue
		fi
		peers=$(cd "$peers" && pwd)
		set -- "$@" "-Dpeers=$peers"
		state="$state $(stamp "$peers")"
	fi
	if [ -n "$java_lack" ]; then
		absent "java-$version" "not found:$java_lack"
	else
		build "java-$version" "$state $*" java_peer "$@"
	fi
done <java/versions

if ! have python3 || ! venv_works; then install python3 python3-venv || :; fi
if have python3 && venv_works; then
	build python "$(stamp python) $(python3 --version) $cache" python_peer
else
	absent python "not found: python3 with venv"
fi

exit $broken
