//go:build !linux

package pgtest

// memoryRoot returns "": no file system in memory is looked for on this system.
func memoryRoot(string, uint64) string { return "" }
