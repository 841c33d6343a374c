package postgres_test

import (
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/postgres"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestConformance runs the whole suite where shards are held by locks, and those topics in
// which the lease mode makes a difference where they are held by rows alone: the rest of
// the suite runs in that mode in TestConformanceThroughAPooler.
func TestConformance(t *testing.T) {
	t.Parallel()
	for mode, names := range map[postgres.LeaseMode][]string{
		postgres.LeaseLock: nil,
		postgres.LeaseRow:  {"Node", "Shards", "Signals"},
	} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			only := topics(t, names...)
			storetest.Run(t, func(t *testing.T) xxljob.Store {
				only(t)
				return open(t, postgres.Config{LeaseMode: mode})
			})
		})
	}
}
