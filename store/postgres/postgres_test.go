package postgres_test

import (
	"testing"

	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestConformance runs the whole suite where shards are held by locks, and those topics in
// which the lease mode makes a difference where they are held by rows alone: others run in that
// mode in TestConformanceThroughAPooler.
func TestConformance(t *testing.T) {
	t.Parallel()
	var all []string
	if stage.Detector { // what is between the calls of one process is in the server
		all = []string{"Common", "HandOver", "Inbox", "Node", "Shards", "Signals", "Race", "Faults"}
	}
	for mode, names := range map[postgres.LeaseMode][]string{
		postgres.LeaseLock: all,
		postgres.LeaseRow:  {"Shards"},
	} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			only := topics(t, names...)
			storetest.Run(t, func(t *testing.T) store.Store {
				only(t)
				return open(t, postgres.Patient(postgres.Config{LeaseMode: mode}))
			})
		})
	}
}
