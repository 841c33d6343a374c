package postgres_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestConformance runs the topics in which it makes a difference where shards are held by locks, and
// all that is about one process; the others, of what goes over the pool alone, are run where shards
// are held by rows, for a session of its own for each node of each case costs more than the case. Known has the cases of several topics, with callers
// that know their runs, as all schedulers do; with callers that do not, these topics are run there and in
// TestConformanceBesideHostileOperators. What is run there is not run here where that server is ours: a
// topic finds the same however its statements are described, and there is more there for it to trip over.
func TestConformance(t *testing.T) {
	t.Parallel()
	locks := []string{"Common", "Inbox", "Node", "Shards", "Signals", "Race", "Faults"}
	some := func(names ...string) func(*testing.T) func(*testing.T) {
		return func(t *testing.T) func(*testing.T) { return topics(t, names...) }
	}
	modes := map[postgres.LeaseMode]func(*testing.T) func(*testing.T){
		postgres.LeaseLock: some(locks...),
		postgres.LeaseRow: func(t *testing.T) func(*testing.T) {
			elsewhere := []string{"Common", "Inbox", "Node", "Signals", "Race", "Faults", "Scan", "Claim", "Start", "HandOver", "Finish"}
			if _, ours := pgtest.SuperDSN(t); ours {
				elsewhere = slices.Concat(elsewhere, slices.Concat(slices.Collect(maps.Values(hostileTopics()))...))
			}
			return otherTopics(t, elsewhere...)
		},
	}
	if stage.Detector { // what is between the calls of one process is in the server
		modes = map[postgres.LeaseMode]func(*testing.T) func(*testing.T){postgres.LeaseLock: some(append(locks, "HandOver")...), postgres.LeaseRow: some("Shards")}
	}
	for mode, of := range modes {
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
