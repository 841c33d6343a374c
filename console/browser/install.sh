#!/bin/sh
# Sees to it that the tests of the console find a browser and fonts for Chinese, and installs
# them with the system's package manager where they are missing. NO_INSTALL=1 says the command
# instead, and fails.
set -eu

say() { echo "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# browser says whether there is one, under the names that browser_test.go knows.
browser() {
	[ -z "${XXLJOB_BROWSER:-}" ] || return 0
	for name in chromium-headless-shell chromium chromium-browser google-chrome-stable google-chrome; do
		if have "$name"; then return 0; fi
	done
	return 1
}

# fonts says whether there are any with Chinese characters in both scripts, as macOS has.
fonts() {
	[ "$(uname)" != Darwin ] || return 0
	have fc-list && [ -n "$(fc-list :lang=zh-cn:lang=zh-tw family 2>/dev/null)" ]
}

missing() {
	browser || printf ' browser'
	fonts || printf ' fonts'
}

# as_root COMMAND... runs it as root, through sudo if need be.
as_root() {
	say "+ $*"
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

lack=$(missing)
[ -n "$lack" ] || exit 0

# The browser without windows is a package of its own in some systems.
shell=chromium-headless-shell
if have apt-get; then
	command="apt-get install -y" fonts="fontconfig fonts-noto-cjk"
	if [ "${NO_INSTALL:-}" != 1 ]; then as_root apt-get update -qq || say "going on with the lists of packages that are there"; fi
	apt-cache show "$shell" >/dev/null 2>&1 || shell=chromium
	install="as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq"
elif have dnf; then
	command="dnf install -y" shell=chromium-headless fonts="fontconfig google-noto-sans-cjk-fonts"
	install="as_root $command"
elif have apk; then
	command="apk add" shell=chromium fonts="fontconfig font-noto-cjk"
	install="as_root $command"
else
	say "the tests of the console need$lack: install Chromium and fonts for Chinese, or name a browser in XXLJOB_BROWSER"
	exit 1
fi

packages=
for package in $lack; do
	case $package in
	browser) packages="$packages $shell" ;;
	fonts) packages="$packages $fonts" ;;
	esac
done

if [ "${NO_INSTALL:-}" = 1 ]; then
	say "the tests of the console need$lack. As NO_INSTALL=1 says, nothing is installed; run:"
	say "  $command$packages"
	exit 1
fi
if [ "$(id -u)" != 0 ] && ! have sudo; then
	say "the tests of the console need$lack, and installing takes root; run as root:"
	say "  $command$packages"
	exit 1
fi

say "the tests of the console need$lack: installing with $command$packages (NO_INSTALL=1 prevents it)"
# shellcheck disable=SC2086 # both are lists
$install $packages </dev/null >&2

lack=$(missing)
if [ -n "$lack" ]; then
	say "installed, but not found:$lack"
	exit 1
fi
