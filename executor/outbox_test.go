package executor

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// TestOutboxOrder has results come and go in all proportions: none is lost, none comes twice,
// they keep their order, and what was taken is not changed by what follows.
func TestOutboxOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	o := newOutbox(Config{}.withDefaults(), batchLimit{results: 40})
	var taken [][]wire.CallbackRequest
	var came, gone int64
	for range 3000 {
		for range rnd.IntN(60) {
			came++
			o.add(wire.CallbackRequest{LogID: came})
		}
		for range rnd.IntN(3) {
			o.mu.Lock()
			taken = append(taken, o.cut())
			o.mu.Unlock()
		}
	}
	for o.mu.Lock(); len(o.pending) > 0; {
		taken = append(taken, o.cut())
	}
	o.mu.Unlock()
	for _, results := range taken {
		if len(results) > 40 {
			t.Fatalf("%d results at once", len(results))
		}
		for _, r := range results {
			if gone++; r.LogID != gone {
				t.Fatalf("result %d comes where %d should", r.LogID, gone)
			}
		}
	}
	if gone != came {
		t.Errorf("%d of %d results", gone, came)
	}
}

// TestOutboxGivesBackRoom has much wait once, and then little: a herd that comes again soon has the
// same room.
func TestOutboxGivesBackRoom(t *testing.T) {
	o := newOutbox(Config{}.withDefaults(), localBatch)
	fill := func(n int) {
		for i := range n {
			o.add(wire.CallbackRequest{LogID: int64(i)})
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		for o.cut() != nil {
		}
		o.end()
	}
	if fill(8*mostRoom + 1); cap(o.room) != 0 {
		t.Errorf("room for %d results is kept", cap(o.room))
	}
	if fill(2 * mostRoom); cap(o.room) < mostRoom {
		t.Errorf("room for %d results only, after %d", cap(o.room), 2*mostRoom)
	}
	room := &o.room[:1][0]
	for range lastTimes - 1 {
		fill(1)
	}
	if fill(2 * mostRoom); cap(o.room) == 0 || &o.room[:1][0] != room {
		t.Errorf("another herd is in other room, for %d", cap(o.room))
	}
	for range lastTimes {
		fill(1)
	}
	if cap(o.room) > mostRoom {
		t.Errorf("room for %d results is kept after %d times one", cap(o.room), lastTimes)
	}
}

// TestOutboxUsesBatchesAgain: a batch is in the memory of the one before where its admin has forgotten
// that, and only there; nothing of what was delivered stays in it.
func TestOutboxUsesBatchesAgain(t *testing.T) {
	o := newOutbox(Config{}.withDefaults(), batchLimit{results: 40})
	var taken int64
	next := func(n int, admin wire.Admin) []wire.CallbackRequest {
		t.Helper()
		for i := range n {
			o.add(wire.CallbackRequest{LogID: taken + int64(i)})
		}
		o.mu.Lock()
		results := o.cut()
		o.mu.Unlock()
		for i, r := range results {
			if r.LogID != taken+int64(i) {
				t.Fatalf("result %d is of run %d, want %d", i, r.LogID, taken+int64(i))
			}
		}
		taken += int64(len(results))
		o.useAgain(results, admin)
		return results
	}
	kept := next(40, &takingAdmin{})
	first := next(40, forgetting{}) // not in the memory of those
	for i, r := range kept {
		if r.LogID != int64(i) {
			t.Fatalf("an admin that keeps result %d has that of run %d", i, r.LogID)
		}
	}
	if second := next(10, forgetting{}); &first[0] != &second[0] {
		t.Error("the memory of a batch that is forgotten is not used again")
	}
	for i, r := range first[:cap(first)] {
		if r != (wire.CallbackRequest{}) {
			t.Fatalf("result %d of a batch that is over is still there", i)
		}
	}
}

// forgetting is an admin that keeps nothing.
type forgetting struct{ wire.Admin }

func (forgetting) ForgetsResults() {}

// The size that a result is taken for is never below that which it has.
func TestEncodedSize(t *testing.T) {
	for _, msg := range []string{"", "ok", `"\`, "\x00\n\t", "é日本🙂", "\u2028\u2029", "\xff\xfe", strings.Repeat("x", 50_000)} {
		r := wire.CallbackRequest{LogID: -1 << 63, LogDateTim: -1 << 63, HandleCode: -1 << 31, HandleMsg: msg, NoRetry: true, Killed: true, Shutdown: true, RetryIn: 1<<63 - 1, SnoozeIn: 1<<63 - 1, Exact: true}
		has := len(wire.EncodeCallback(nil, wire.CallbackList, []wire.CallbackRequest{r}))
		if est := encodedSize(&r); est < has || est > has+resultOverhead {
			t.Errorf("%.10q: taken for %d bytes, has %d", msg, est, has)
		}
	}
}

func TestBatchLimit(t *testing.T) {
	small := wire.CallbackRequest{HandleMsg: "ok"}
	large := wire.CallbackRequest{HandleMsg: strings.Repeat("x", 300_000)}
	huge := wire.CallbackRequest{HandleMsg: strings.Repeat("x", 3_000_000)}
	many := make([]wire.CallbackRequest, 2000)
	for _, c := range []struct {
		name    string
		limit   batchLimit
		results []wire.CallbackRequest
		want    int
	}{
		{"none", clusterBatch, nil, 0},
		{"few", clusterBatch, many[:3], 3},
		{"many", clusterBatch, many, 50},
		{"many within the process", localBatch, many, 1000},
		{"two large ones are too much", clusterBatch, []wire.CallbackRequest{small, large, large}, 2},
		{"one that is too large goes alone", clusterBatch, []wire.CallbackRequest{huge, small}, 1},
		{"but not with others", clusterBatch, []wire.CallbackRequest{small, huge}, 1},
	} {
		if got := c.limit.cut(c.results); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

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
