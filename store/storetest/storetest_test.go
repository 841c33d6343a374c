package storetest_test

import (
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// The suite is run on a store that is known to pass, so that it cannot break
// unnoticed.
func TestRun(t *testing.T) {
	storetest.Run(t, func(*testing.T) xxljob.Store { return memory.New() })
}

// The wrapper without a fault is as good as the store.
func TestRunWrapped(t *testing.T) {
	storetest.Run(t, func(*testing.T) xxljob.Store { return storetest.Wrap(memory.New()) })
}
