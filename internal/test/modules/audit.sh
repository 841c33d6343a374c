#!/bin/sh
# Looks for known vulnerabilities in the module of the working directory, and lists the
# modules that it uses and that are behind.
#
#   audit.sh [COPY]     with COPY an unpacked copy of Go's vulnerability database
#
# It ends with 0 if govulncheck has looked and found none that the code calls, with 1 if it
# found one, and with 2 if nobody has looked: there is no copy, it is not one, or
# govulncheck failed. The list of modules is for reading, and decides nothing.
set -u

go=${GO:-go}
govulncheck=${GOVULNCHECK:-govulncheck}

# how tells where a copy comes from.
how() {
	cat <<-'END'
		A copy is the file vulndb.zip of https://vuln.go.dev, fetched anew each time and unpacked;
		https://go.dev/doc/security/vuln/database describes it. Where nothing can be fetched, bring
		it along. Then:
		  make audit VULNDB=/path/to/the/unpacked/copy
	END
}

# look says what govulncheck finds by the copy $1.
look() {
	echo "== vulnerabilities"
	if [ -z "$1" ]; then
		echo "NOT LOOKED FOR: there is no copy of the vulnerability database (VULNDB is not given)."
		how
		return 2
	fi
	# govulncheck finds nothing in an empty index, and that must not look as if all were well.
	if ! grep -q '"path": *"stdlib"' "$1/index/modules.json" 2>/dev/null || ! [ -d "$1/ID" ]; then
		echo "NOT LOOKED FOR: $1 is no copy of the vulnerability database (index/modules.json that names stdlib, and ID/)."
		how
		return 2
	fi
	echo "by the copy in $1, $(sed -n 's/.*"modified": *"\([^"]*\)".*/last changed \1/p' "$1/index/db.json" 2>/dev/null | head -n 1 | grep . || echo "of an unknown date")"
	"$govulncheck" -db "file://$(cd "$1" && pwd)" ./...
	case $? in
	0) return 0 ;;
	3) return 1 ;;
	esac
	echo "NOT LOOKED FOR: govulncheck failed."
	return 2
}

# behind lists the modules of which there is a later version, the direct ones first. It
# fails where that cannot be asked; with GOPROXY=off go says nothing, and no error.
behind() {
	[ "$("$go" env GOPROXY)" != off ] || { echo "GOPROXY is off" >&2; return 1; }
	"$go" list -m -u -f '{{if not .Main}}{{if or .Update .Deprecated .Retracted}}{{if .Indirect}}indirect{{else}}direct{{end}}  {{.Path}} {{.Version}}{{with .Update}} -> {{.Version}}{{end}}{{if .Retracted}}  (retracted){{end}}{{if .Deprecated}}  (deprecated){{end}}{{end}}{{end}}' all
}

# required lists the modules of go.mod with their versions, the direct ones first.
required() {
	awk '
		$1 == "require" && $2 == "(" { block = 1; next }
		block && $1 == ")" { block = 0 }
		block && $2 ~ /^v/ { print (/\/\/ indirect/ ? "indirect" : "direct") "  " $1 " " $2 }
		$1 == "require" && $3 ~ /^v/ { print (/\/\/ indirect/ ? "indirect" : "direct") "  " $2 " " $3 }
	' go.mod | sort
}

list() {
	echo "== modules that are behind"
	if found=$(behind); then
		printf '%s\n' "${found:-none}" | sort
		return
	fi
	echo "NOT KNOWN: whether there are later versions could not be asked. Those in use, by go.mod:"
	required
}

look "${1-}"
looked=$?
list
exit $looked
