package storetest_test

import (
	"testing"

	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// The wrapper without a fault is as good as the store, which passes by itself in
// store/memory.
func TestRunWrapped(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return storetest.Wrap(memory.New()) })
}
