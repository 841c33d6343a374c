package storetest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/store/storetest/internal/mutant"
	"github.com/xxljob/xxljob/store/storetest/internal/own"
)

// mutantPatience is short: what a mutant has broken does not come about however long a case
// waits, and what it has left alone comes about in milliseconds.
const mutantPatience = 3 * time.Second

// TestMutants: each is found by its cases. A case of each topic, asked in the same way of a store that
// is sound, finds nothing; that all others find nothing there says TestRunWrapped.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("cases that have to fail; those that have not are in the tests of each store; leave out -short")
	}
	sound := map[string]bool{}
	for _, m := range mutant.All() {
		for _, name := range m.Cases {
			if topic, _, _ := strings.Cut(name, "/"); !sound[topic] {
				sound[topic] = true
				t.Run("sound/"+name, func(t *testing.T) {
					t.Parallel()
					if found := storetest.Failures(own.Tests{}, t, name, memory.New(), time.Minute); len(found) != 0 {
						t.Errorf("case %s finds in a sound store: %q", name, found)
					}
				})
			}
			t.Run(m.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				if len(storetest.Failures(own.Tests{}, t, name, m.Wrap(memory.New()), mutantPatience)) == 0 {
					t.Errorf("case %s does not find the mutant %s", name, m.Name)
				}
			})
		}
	}
}
