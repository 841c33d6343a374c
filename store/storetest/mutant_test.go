package storetest_test

import (
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

// TestMutants: each is found by its cases, which find nothing without it (TestRunWrapped).
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("cases that have to fail; those that have not are in the tests of each store; leave out -short")
	}
	for _, m := range mutant.All() {
		for _, name := range m.Cases {
			t.Run(m.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				if len(storetest.Failures(own.Tests{}, t, name, m.Wrap(memory.New()), mutantPatience)) == 0 {
					t.Errorf("case %s does not find the mutant %s", name, m.Name)
				}
			})
		}
	}
}
