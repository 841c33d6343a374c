// Package release says of which release of this module a program is.
package release

import "runtime/debug"

// Unknown is the version of a program that does not say so.
const Unknown = "–"

// Versions are those of this module and of Go, as the program says; Unknown where it does not.
func Versions() (version, goVersion string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Unknown, Unknown
	}
	const ours = "github.com/xxljob/xxljob"
	version = Unknown
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == ours && m.Version != "" {
			version = m.Version
		}
	}
	return version, info.GoVersion
}
