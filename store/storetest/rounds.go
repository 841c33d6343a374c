//go:build !race

package storetest

// rounds is how often a race is run.
const rounds = 15
