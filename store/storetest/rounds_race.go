//go:build race

package storetest

// rounds is how often a race is run. The detector needs a few rounds to see an access that
// is not guarded; the many that rare outcomes need are run without it.
const rounds = 5
