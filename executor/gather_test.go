package executor

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// takingAdmin takes results, and takes its time.
type takingAdmin struct {
	wire.Admin
	takes   time.Duration // of a callback
	began   time.Time
	at      []time.Duration // when callbacks have come
	batches []int
}

func (a *takingAdmin) Callback(_ context.Context, results []wire.CallbackRequest) (wire.Return, error) {
	a.at = append(a.at, time.Since(a.began))
	a.batches = append(a.batches, len(results))
	time.Sleep(a.takes)
	return wire.Success(), nil
}

// gathering is an outbox for an admin of a cluster whose callbacks take a millisecond.
func gathering(limit batchLimit) (*outbox, *takingAdmin) {
	o := newOutbox(Config{}.withDefaults(), limit)
	o.settled = func([]runID) {}
	a := &takingAdmin{takes: time.Millisecond, began: time.Now()}
	o.bind(a)
	return o, a
}

// addEvery records so many results, one each time that such a while has passed.
func addEvery(o *outbox, n int, every time.Duration) {
	for range n {
		time.Sleep(every)
		o.add(wire.CallbackRequest{})
	}
}

// Results that come faster than callbacks are answered gather for a moment; those that come
// alone are sent at once, and so are those that fill callbacks.
func TestResultsGather(t *testing.T) {
	const ms, often = time.Millisecond, 370 * time.Microsecond // never at once with a callback's end
	for _, c := range []struct {
		name    string
		limit   batchLimit
		n       int
		every   time.Duration
		batches []int
		last    time.Duration
	}{
		{"those that come alone", clusterBatch, 4, 2 * ms, []int{1, 1, 1, 1}, 6 * ms},
		{"two while a callback is under way", clusterBatch, 3, often, []int{1, 2}, ms},
		{"many", clusterBatch, 50, often, []int{1, 2, 14, 13, 14, 6}, 21 * ms},
		{"all at once", clusterBatch, 175, 0, []int{1, 50, 50, 50, 24}, 4 * ms},
		{"within the process", localBatch, 10, often, []int{1, 2, 3, 3, 1}, 4 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, a := gathering(c.limit)
				o.add(wire.CallbackRequest{})
				synctest.Wait() // it is under way
				addEvery(o, c.n-1, c.every)
				if lost := o.flush(t.Context(), time.Second); lost != 0 {
					t.Errorf("%d results are lost", lost)
				}
				if !slices.Equal(a.batches, c.batches) || a.at[len(a.at)-1] != c.last {
					t.Errorf("callbacks of %v results at %v, want %v, the last at %v", a.batches, a.at, c.batches, c.last)
				}
			})
		})
	}
}

// When Stop has no more time nothing gathers.
func TestHurriedResultsDoNotGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, a := gathering(batchLimit{results: 50, gather: time.Hour})
		o.add(wire.CallbackRequest{})
		synctest.Wait()
		addEvery(o, 3, 0)
		time.Sleep(time.Second) // these were sent, and the next ones gather
		addEvery(o, 2, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if lost := o.flush(ctx, time.Minute); lost != 0 || !slices.Equal(a.batches, []int{1, 3, 2}) {
			t.Errorf("callbacks of %v results, %d lost", a.batches, lost)
		}
		if last := a.at[len(a.at)-1]; last != 2*time.Second {
			t.Errorf("the last callback came at %v", last)
		}
	})
}
