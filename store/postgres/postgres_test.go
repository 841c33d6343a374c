package postgres_test

import (
	"testing"

	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestConformance runs the suite where shards are held by locks, and those topics in
// which the lease mode makes a difference where they are held by rows alone: others run in that
// mode in TestConformanceThroughAPooler. Known has the cases of several topics, with callers
// that know their runs, as all schedulers do; with callers that do not, these topics are run there and in
// TestConformanceBesideHostileOperators.
func TestConformance(t *testing.T) {
	t.Parallel()
	all := func(t *testing.T) func(*testing.T) {
		return otherTopics(t, "Scan", "Claim", "Start", "HandOver", "Finish", "Follow", "Bounded")
	}
	some := func(names ...string) func(*testing.T) func(*testing.T) {
		return func(t *testing.T) func(*testing.T) { return topics(t, names...) }
	}
	if stage.Detector { // what is between the calls of one process is in the server
		all = some("Common", "HandOver", "Inbox", "Node", "Shards", "Signals", "Race", "Faults")
	}
	for mode, of := range map[postgres.LeaseMode]func(*testing.T) func(*testing.T){
		postgres.LeaseLock: all,
		postgres.LeaseRow:  some("Shards"),
	} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			only := of(t)
			storetest.Run(t, func(t *testing.T) store.Store {
				only(t)
				return open(t, postgres.Patient(postgres.Config{LeaseMode: mode}))
			})
		})
	}
}
