package queue

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/timering"
	"github.com/xxljob/xxljob/store"
)

// TestWhatAFormerOwnerSendsIsAwaited: several runs of a job may be on their way from another node to an
// address. Who is to be sent there waits for all of them, in whatever order and way they come to be
// answered, and for no longer.
func TestWhatAFormerOwnerSendsIsAwaited(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		q, _ := books(t, 0)
		at := OnePlaceAt(&store.Job{ID: 9}, "http://one")
		var runs []store.Run
		for id := int64(1); id <= 3; id++ {
			run := store.Run{
				ID: id, JobID: 9, App: "app", Shard: 1, Address: at.address, State: store.StateStarted, Block: block.CoverEarly, Scheduled: time.UnixMilli(id),
			}
			runs = append(runs, run)
			for range 1 + r.IntN(2) { // a look may be made again
				q.AwaitAnswer(run, time.Now().Add(time.Hour))
			}
		}
		if n := len(q.InTheWay()); n != 0 {
			t.Fatalf("%d runs are looked after, though nobody waits", n)
		}
		has := q.takeOrAwaitPlace(at, timering.Key{At: 4, RunID: 4})
		if has == nil {
			t.Fatal("it does not wait")
		}
		for left, i := range r.Perm(len(runs)) {
			run := runs[i]
			q.Saw(&run)
			select {
			case <-has:
				t.Fatalf("after %d of 3 answers it waits no more", left)
			default:
			}
			for _, fault := range q.Check(nil, false) {
				t.Fatal(fault)
			}
			if n := len(q.InTheWay()); n != len(runs)-left {
				t.Fatalf("after %d of 3 answers %d runs are looked after", left, n)
			}
			switch r.IntN(5) {
			case 0:
				run.State = store.StateDispatched
				q.Saw(&run)
			case 1:
				run.State = store.StateLost
				q.Saw(&run)
			case 2:
				run.State = store.StatePlanned
				q.Saw(&run)
			case 3:
				q.SawGone(run.ID)
			default:
				q.AwaitAnswer(run, time.Now())
				q.Saw(&run)
			}
		}
		select {
		case <-has:
		default:
			t.Fatal("all are answered, and it waits still")
		}
		if len(q.InFlight.answers) > 0 || len(q.InFlight.remote) > 0 || len(q.Due.sends) > 0 {
			t.Fatalf("what is over is remembered: %v, %v, %v", q.InFlight.answers, q.InFlight.remote, q.Due.sends)
		}
	}
}
