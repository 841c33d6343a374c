package xxljob_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// olderNode is a store by which a node says that its release knows nothing of schedules.
type olderNode struct{ st *memory.Store }

func (s olderNode) Join(ctx context.Context, n store.Node) (store.View, error) {
	n.Knows, n.Zones = 0, false
	return s.st.Join(ctx, n)
}

// TestShardsGoToWhoCanWorkThemOut: a node that cannot work out a job gives its shard to one whose
// release knows more, once; all others stay where they are, so do shards of jobs that nobody here
// knows better, and none of it goes on and on.
func TestShardsGoToWhoCanWorkThemOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		start := func(st xxljob.Store, name string) xxljob.Scheduler {
			s, err := xxljob.New(st, xxljob.Config{App: "app", Node: name, Logger: slog.New(slog.DiscardHandler)})
			stage.Must(t, err)
			stage.Must(t, s.Handle("work", func(context.Context, *xxljob.Task) error { return nil }))
			stage.Must(t, s.Start(t.Context()))
			return s
		}
		older, newer := start(bent.AllOf(st, olderNode{st}), "older"), start(st, "newer")
		time.Sleep(time.Minute) // by then each has its share, by however many moves
		moves := newer.Events(t.Context())
		owner := func(shard int) string {
			v, err := st.View(t.Context())
			stage.Must(t, err)
			for _, n := range v.Nodes {
				if n.Incarnation == v.Shards[shard].Owner {
					return n.ID
				}
			}
			return ""
		}
		before, was := newer.Stats().Shards, map[int]string{} // a shard may be taken before one looks whose it is
		v, err := st.View(t.Context())
		stage.Must(t, err)
		for shard := range v.Shards {
			was[shard] = owner(shard)
		}
		var lunar []xxljob.Job
		for i := 0; len(lunar) < 4 && i < 1000; i++ {
			job, err := st.AddJob(t.Context(), xxljob.Job{App: "app", Key: "lunar" + string(rune('a'+i)), Name: "lunar", Handler: "work", Schedule: xxljob.Schedule{Type: "LUNAR", Conf: "1"}, Next: time.Now().Add(time.Second)}, nil)
			stage.Must(t, err)
			if was[job.Shard] == "older" {
				lunar = append(lunar, job)
			} else {
				stage.Must(t, older.RemoveJob(t.Context(), job.ID))
			}
		}
		distinct := map[int]bool{}
		for _, job := range lunar {
			distinct[job.Shard] = true
		}
		time.Sleep(30 * time.Second)
		for _, job := range lunar {
			if at := owner(job.Shard); at != "newer" {
				t.Errorf("shard %d is %q's", job.Shard, at)
			}
		}
		time.Sleep(20 * time.Minute)
		for _, job := range lunar {
			if at := owner(job.Shard); at != "newer" {
				t.Errorf("in the end shard %d is %q's", job.Shard, at)
			}
		}
		if n := newer.Stats().Shards; n < before || n > before+len(distinct) {
			t.Errorf("the newer node has %d shards, had %d, and %d have such jobs", n, before, len(distinct))
		}
		taken := 0
		for more := true; more; {
			select {
			case e := <-moves:
				if e.Kind == xxljob.EventShardTaken {
					taken++
				}
			default:
				more = false
			}
		}
		if taken > len(distinct) {
			t.Errorf("the newer node has taken shards %d times, and %d have such jobs", taken, len(distinct))
		}
		// It stops: all goes back, and nothing waits for who can.
		stage.Must(t, newer.Stop(t.Context()))
		time.Sleep(time.Minute)
		for _, job := range lunar {
			if at := owner(job.Shard); at != "older" {
				t.Errorf("without the newer node shard %d is %q's", job.Shard, at)
			}
		}
		stage.Must(t, older.Stop(t.Context()))
	})
}

// TestAJobThatWasStoppedInErrorIsTakenBack: one that a node of an older release has stopped, since it
// had no data of its zone, is started again by one that has, once; what was stopped for other reasons
// stays stopped.
func TestAJobThatWasStoppedInErrorIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		stage.Must(t, st.SetShards(t.Context(), 32))
		add := func(key, reason string, schedule xxljob.Schedule) int64 {
			job, err := st.AddJob(t.Context(), xxljob.Job{App: "app", Key: key, Name: key, Handler: "work", Route: "FIRST", Schedule: schedule, Next: time.Now().Add(time.Hour)}, nil)
			stage.Must(t, err)
			_, err = st.EditJob(t.Context(), job.ID, store.Edit{Verb: "stop", Change: func(j *store.Job) (bool, error) {
				j.Stopped, j.StopReason = true, reason
				return true, nil
			}})
			stage.Must(t, err)
			return job.ID
		}
		zoned := xxljob.Cron("0 * * * * ?").In("Asia/Shanghai")
		no := `job "zoned": there is no zone "Asia/Shanghai": want an IANA name such as Asia/Shanghai`
		back := add("zoned", no, zoned)
		stay := []int64{add("by hand", "", zoned), add("finished", store.StopFinished, zoned), add("nowhere", `there is no zone "Mars/Olympus"`, xxljob.Cron("0 * * * * ?").In("Mars/Olympus"))}
		var nodes []xxljob.Scheduler
		var ran atomic.Int64
		for _, name := range []string{"a", "b"} {
			s, err := xxljob.New(st, xxljob.Config{App: "app", Node: name, Logger: slog.New(slog.DiscardHandler)})
			stage.Must(t, err)
			stage.Must(t, s.Handle("work", func(context.Context, *xxljob.Task) error { ran.Add(1); return nil }))
			stage.Must(t, s.Start(t.Context()))
			nodes = append(nodes, s)
		}
		time.Sleep(10 * time.Minute)
		if job, err := st.Job(t.Context(), back); err != nil || job.Stopped || ran.Load() < 8 {
			t.Errorf("it is %v stopped for %q, %v, and ran %d times", job.Stopped, job.StopReason, err, ran.Load())
		}
		for _, id := range stay {
			if job, err := st.Job(t.Context(), id); err != nil || !job.Stopped {
				t.Errorf("%s was started: %v", job.Key, err)
			}
		}
		for _, s := range nodes {
			stage.Must(t, s.Stop(t.Context()))
		}
	})
}
