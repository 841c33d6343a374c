package xxljob_test

// Runs that executors of others have accepted and do not report, in each generation of
// XXL-JOB: the fakes answer idle beats as those do.

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/wire"
	"github.com/xxljob/xxljob/xxljobtest"
)

func TestUnreportedInEachGeneration(t *testing.T) {
	for _, g := range []xxljobtest.Generation{xxljobtest.G1, xxljobtest.G2, xxljobtest.G3, xxljobtest.G4} {
		t.Run(g.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				accept := func(context.Context, xxljobtest.ExecutorRun) xxljobtest.Answer { return xxljobtest.Accept() }
				e := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far", Generation: g, Token: stage.Token, Answer: accept})
				s := xxljobtest.NewWith(t, xxljobtest.Options{Executors: []*xxljobtest.Executor{e}},
					xxljob.Job{App: "far", Key: "long", Name: "Long", Handler: "work", Schedule: xxljob.Manual()},
					xxljob.Job{App: "far", Key: "other", Name: "Other", Handler: "work", Schedule: xxljob.Manual()})
				trigger := func(key string) int64 {
					t.Helper()
					job, err := s.Store.JobByKey(t.Context(), "far", key)
					stage.Must(t, err)
					return stage.Trigger(t, s, job)
				}
				mustBe := func(id int64, want xxljob.State) {
					t.Helper()
					run, err := s.Store.Run(t.Context(), id)
					stage.Must(t, err)
					if run.State != want {
						t.Errorf("the run is %v, want %v: %q", run.State, want, run.HandleMsg)
					}
				}
				long := trigger("long")
				time.Sleep(3 * time.Hour)
				mustBe(long, xxljob.StateDispatched)
				e.Report(long, wire.CodeSuccess, "")
				synctest.Wait()
				mustBe(long, xxljob.StateSucceeded)

				killed, lost := trigger("other"), trigger("long")
				time.Sleep(10 * time.Minute)
				stage.Must(t, s.Kill(t.Context(), killed))
				mustBe(killed, xxljob.StateKilled)
				e.Close()
				time.Sleep(59 * time.Second) // its last heartbeat was half a minute ago, perhaps
				mustBe(lost, xxljob.StateDispatched)
				time.Sleep(61 * time.Second)
				mustBe(lost, xxljob.StateLost)
			})
		})
	}
}
