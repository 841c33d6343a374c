package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// TestSeen: there is a sentence for what is seen of troubles of each cause, no two causes share one, and each
// says what it is given.
func TestSeen(t *testing.T) {
	of := map[store.SeenWhat]store.TroubleCause{}
	for _, cause := range store.TroubleCauses() {
		if len(store.SeenOf(cause)) == 0 {
			t.Errorf("nothing is seen of %s", cause)
		}
		for _, what := range store.SeenOf(cause) {
			if other, twice := of[what]; twice {
				t.Errorf("%s is of %s and of %s", what, cause, other)
			}
			of[what] = cause
			text := store.Seen{What: what, Jobs: 12, Runs: 34, RunID: 56, For: 78 * time.Second, At: time.Unix(0, 0), Names: "names", Said: "said"}.String()
			if text == "" || strings.ContainsAny(text, "{}") {
				t.Errorf("%s: %q", what, text)
			}
		}
	}
	s := store.Seen{What: store.SeenLockedBoth, Jobs: 12, Runs: 34, For: 15 * time.Second}
	if text := s.String(); !strings.HasSuffix(text, "12 jobs are not planned and 34 runs are not started, due more than 15s ago") {
		t.Error(text)
	}
	if text := (store.Seen{What: "of a newer release"}).String(); text != "" {
		t.Error(text)
	}
}
