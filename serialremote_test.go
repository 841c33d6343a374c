package xxljob_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// TestSerialAtRemote: the runs of a serial job are sent to a remote executor one after
// the other, in the order of their instants, each when the one before was answered.
func TestSerialAtRemote(t *testing.T) {
	for _, route := range []string{"FIRST", "FAILOVER", "NEAREST"} {
		t.Run(route, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(3, 4))
				var mu sync.Mutex
				var order []int64
				under := map[int64]int{}
				p := &peer{run: func(_ int, req wire.TriggerRequest) (wire.Return, error) {
					mu.Lock()
					order = append(order, req.LogID)
					under[req.JobID]++
					if under[req.JobID] > 1 {
						t.Errorf("%d triggers of job %d under way at once", under[req.JobID], req.JobID)
					}
					pause := time.Duration(r.IntN(30)) * time.Millisecond
					mu.Unlock()
					time.Sleep(pause)
					mu.Lock()
					under[req.JobID]--
					mu.Unlock()
					return wire.Success(), nil
				}}
				e := newElsewhere(t, memory.New(), xxljob.Config{}, map[string]*peer{at1: p})
				stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
				var jobs []xxljob.Job
				for i := range 3 {
					job, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: fmt.Sprint("job ", i), Handler: "work", Route: route})
					stage.Must(t, err)
					jobs = append(jobs, job)
				}
				ids := map[int64][]int64{}
				for range 30 {
					for _, job := range jobs {
						ids[job.ID] = append(ids[job.ID], stage.Trigger(t, e, job))
					}
				}
				time.Sleep(time.Minute)
				mu.Lock()
				defer mu.Unlock()
				for _, job := range jobs {
					var got []int64
					for _, id := range order {
						if slices.Contains(ids[job.ID], id) {
							got = append(got, id)
						}
					}
					if !slices.Equal(got, ids[job.ID]) {
						t.Errorf("sent %v, want %v", got, ids[job.ID])
					}
				}
			})
		})
	}
}

// TestSerialBehindDoubt: a trigger that nobody answers holds up the next one for as long
// as the call takes, and no longer.
func TestSerialBehindDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := time.Now()
		var mu sync.Mutex
		var at []time.Duration
		p := &peer{run: func(n int, _ wire.TriggerRequest) (wire.Return, error) {
			mu.Lock()
			at = append(at, time.Since(from).Round(time.Second))
			mu.Unlock()
			if n == 1 {
				time.Sleep(6 * time.Second) // CallTimeout
				return wire.Return{}, errHungUp
			}
			return wire.Success(), nil
		}, idle: func() (wire.Return, error) { return wire.Failf(wire.MsgBusy), nil }}
		e := newElsewhere(t, memory.New(), xxljob.Config{}, map[string]*peer{at1: p})
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		job, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "job", Handler: "work", Route: "FIRST"})
		stage.Must(t, err)
		for range 3 {
			stage.Trigger(t, e, job)
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if want := []time.Duration{0, 6 * time.Second, 6 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("sent at %v, want %v", at, want)
		}
	})
}
