package registry_test

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/engine/registry"
)

// TestPresence: for how long a process was replaced at its address, by what was registered
// there, a second apart.
func TestPresence(t *testing.T) {
	for _, c := range []struct {
		name, boots string // of each second, "-" for none that was heard of
		want        int    // seconds for which process a was replaced
	}{
		{"it alone", "aaaa", 0},
		{"nobody", "----", 0},
		{"another one", "aabbb", 2},
		{"another one from the beginning", "bbbb", 3},
		{"two others", "abcc", 2},
		{"it is back", "aabba", 0},
		{"they take turns", "abababab", 0},
		{"the other is last for a while", "ababbbbbb", 0},
		{"it stays away", "ababbbbbbbbbbbbb", 12},
		{"two others take turns", "abcbcbcbcbc", 10},
		{"two others take turns, and it was just there", "abcbc", 0},
		{"more than are remembered", "abcdefghijk", 9},
	} {
		if got := registry.Replaced(3*time.Second, "a", c.boots); got != time.Duration(c.want)*time.Second {
			t.Errorf("%s (%s): %v, want %d s", c.name, c.boots, got, c.want)
		}
	}
}
