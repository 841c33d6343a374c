package dispatch

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/store"
)

// startedHere is a store that has runs as started by this node.
type startedHere struct {
	store.Store
	runs []store.Run
}

func (s startedHere) StartedBy(context.Context, []store.Shard, []string, int64, int) ([]store.Run, error) {
	return s.runs, nil
}

// TestTooManyInDoubt: of very many runs in doubt, of a node that has died perhaps, a node adopts as
// many as it may, and each of the others when there is room again.
func TestTooManyInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startLoop(t)
		s.Core.Logger, s.Clock = slog.New(slog.NewTextHandler(io.Discard, nil)), &core.Clock{}
		there := startedHere{}
		for id := int64(1); id <= 5; id++ {
			there.runs = append(there.runs, store.Run{ID: id, App: "app", Address: "http://one", Owner: s.Leases.Incarnation, State: store.StateStarted})
		}
		s.Core.Store = there
		doubt := &inDoubt{Core: s.Core, queue: s.queue, most: 2}
		c := &recovery{Core: s.Core, queue: s.queue, inDoubt: doubt, unconfirmed: newUnconfirmed(s.Life.Wakes.Lease), sightings: sightings{ended: map[int64]bool{}}}
		look := func() {
			t.Helper()
			for range 3 { // by the second one they have been there for long enough
				time.Sleep(orphansEvery)
				if err := c.adoptOrphans(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		look()
		adopted := map[int64]bool{}
		for len(adopted) < len(there.runs) {
			if n := doubt.count(); n == 0 || n > doubt.most {
				t.Fatalf("%d runs are in doubt, of which %d were adopted before; want 1 or %d", n, len(adopted), doubt.most)
			}
			for id, r := range doubt.list.runs {
				adopted[id] = true
				doubt.list.drop(r)
				for i := range there.runs { // it is over
					if there.runs[i].ID == id {
						there.runs[i].Owner = ""
					}
				}
			}
			if left := len(adopted) < len(there.runs); c.mayHaveOrphans() != left {
				t.Fatalf("runs are left: %t, looked for: %t", left, !left)
			}
			look()
		}
	})
}
