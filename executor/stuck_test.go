package executor_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// schedulerLike is an admin within the process that is told of abandoned handlers, and tells of them itself.
type schedulerLike struct {
	wire.Admin
	told atomic.Int64
}

func (s *schedulerLike) Abandoned() { s.told.Add(1) }

// TestPlacesThatAbandonedHandlersHold: where they keep runs waiting, an executor that no scheduler of this process
// looks after says so once, and once when it is over; where nothing waits it says nothing.
func TestPlacesThatAbandonedHandlersHold(t *testing.T) {
	for _, tt := range []struct {
		name      string
		runs      int64 // behind four whose handlers ignore their timeout, at two places
		scheduler bool
		want      int // how often it is said
	}{
		{"runs wait", 2, false, 1}, {"nothing waits", 0, false, 0}, {"a scheduler says it", 2, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logged sharedLines
				n, a := newNode(), admins{}
				cfg := executor.Config{Places: 2, Grace: time.Second, Logger: slog.New(slog.NewTextHandler(&logged, nil))}
				cfg.Admins = []executor.AdminCluster{a.cluster("one", n)}
				e := over(t, a, cfg)
				back := make(chan struct{})
				handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
					if task.Param == "deaf" {
						<-back
					}
					return nil
				})
				admin := &schedulerLike{Admin: newNode()}
				if tt.scheduler {
					e.Bind(admin)
				}
				start(t, e)
				for id := int64(1); id <= 4; id++ {
					r := req(id, id)
					r.ExecutorTimeout, r.ExecutorParams = 1, "deaf"
					mustGive(t, e, "one", r)
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if s := e.Stuck(); s.Places != 2 || e.Abandoned() != 4 {
					t.Fatalf("%d were abandoned, and hold %d places", e.Abandoned(), s.Places)
				}
				said := func() (begun, over int) {
					return strings.Count(logged.String(), "abandoned handlers hold places"), strings.Count(logged.String(), "do not keep runs waiting any more")
				}
				for id := int64(5); id < 5+tt.runs; id++ {
					mustGive(t, e, "one", req(id, id))
				}
				time.Sleep(4 * time.Second)
				synctest.Wait()
				if begun, _ := said(); begun != 0 {
					t.Errorf("said after four seconds")
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if begun, over := said(); begun != tt.want || over != 0 {
					t.Errorf("said %d times, and %d times that it is over:\n%s", begun, over, logged.String())
				}
				if tt.want > 0 && !strings.Contains(logged.String(), "held=2 places=2 handlers=h ") {
					t.Errorf("it says: %s", logged.String())
				}
				close(back)
				time.Sleep(time.Minute)
				synctest.Wait()
				if begun, over := said(); begun != tt.want || over != tt.want {
					t.Errorf("in the end said %d times, and %d times that it is over", begun, over)
				}
				if tt.scheduler && admin.told.Load() != 4 {
					t.Errorf("the scheduler was told %d times", admin.told.Load())
				}
				if got := len(n.ids()); got != int(4+tt.runs) {
					t.Errorf("%d results", got)
				}
				stop(t, e)
			})
		})
	}
}

// heldLine is a log in which the line that handlers hold places takes until it is released.
type heldLine struct {
	slog.Handler
	release chan struct{}
}

func (h heldLine) Enabled(context.Context, slog.Level) bool { return true }

func (h heldLine) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h heldLine) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "abandoned handlers hold places") {
		<-h.release
	}
	return nil
}

// TestStopWaitsForTheLineOfPlaces: who has stopped an executor hears nothing of it any more.
func TestStopWaitsForTheLineOfPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := heldLine{slog.DiscardHandler, make(chan struct{})}
		n, a := newNode(), admins{}
		e := over(t, a, executor.Config{Places: 1, Grace: time.Second, Logger: slog.New(log), Admins: []executor.AdminCluster{a.cluster("one", n)}})
		back := make(chan struct{})
		handle(t, e, "h", func(context.Context, *executor.Task) error { <-back; return nil })
		start(t, e)
		for id := int64(1); id <= 2; id++ {
			r := req(id, id)
			r.ExecutorTimeout = 1
			mustGive(t, e, "one", r)
		}
		mustGive(t, e, "one", req(3, 3))
		time.Sleep(time.Minute) // the line is under way
		close(back)
		var stopped atomic.Bool
		go func() {
			if err := e.Stop(context.Background()); err != nil {
				t.Errorf("Stop: %v", err)
			}
			stopped.Store(true)
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		if stopped.Load() {
			t.Error("stopped while a line is under way")
		}
		close(log.release)
		synctest.Wait()
		if !stopped.Load() {
			t.Error("not stopped once the line is written")
		}
	})
}
