package spool

import "testing"

// Names sort as the files were written, whatever the clock does, and tell how many
// results there are.
func TestSpoolNames(t *testing.T) {
	s := &Spool{boot: "b", most: 50}
	last := ""
	for i := range 2000 {
		name := s.name(i%50 + 1)
		if name <= last {
			t.Fatalf("%s is not behind %s", name, last)
		}
		if s.countOf(name) != i%50+1 {
			t.Errorf("%s: %d results", name, s.countOf(name))
		}
		last = name
	}
	for _, name := range []string{"garbage.json", "x-.json", "a-0.json", ".json"} {
		if s.countOf(name) != 50 {
			t.Errorf("%s is not sent alone", name)
		}
	}
}
