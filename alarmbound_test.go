package xxljob_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// TestWhatIsBehindAFullBookIsTold: alarms that had no place in the book are read when there is
// one, though nothing signals them.
func TestWhatIsBehindAFullBookIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const runs = 2500
		st, told := memory.New(), &addingUp{}
		a := stage.StartNode(t, st, "a", &stage.Journal{}, func(c *xxljob.Config) {
			c.Alarms = []alarm.Rule{{Name: "sink", To: sulking{}}}
		})
		stage.Must(t, a.Handle("fail", func(context.Context, *xxljob.Task) error { return errors.New("failed") }))
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "fail", Block: xxljob.BlockConcurrent})
		stage.Must(t, err)
		for range runs {
			stage.Trigger(t, a, job)
		}
		time.Sleep(2 * time.Minute)
		stage.Stop(t, a)
		b, err := xxljob.New(st, xxljob.Config{App: "app", Node: "b", Logger: stage.QuietLog(), Alarms: []alarm.Rule{{Name: "sink", To: told}}})
		stage.Must(t, err)
		xxljob.SetAlarmMost(b, 50)
		stage.Must(t, b.Start(t.Context()))
		time.Sleep(20 * time.Minute)
		if n := told.n.Load(); n != runs {
			t.Errorf("told of %d alarms, want %d", n, runs)
		}
		stage.Must(t, b.Stop(t.Context()))
	})
}

// sulking takes nothing.
type sulking struct{}

func (sulking) Alarm(context.Context, alarm.Message) error { return errors.New("away") }

// addingUp adds up what it is told of, and takes its time.
type addingUp struct{ n atomic.Int64 }

func (c *addingUp) Alarm(_ context.Context, m alarm.Message) error {
	time.Sleep(3 * time.Second) // longer than alarms are read again for anyway
	c.n.Add(int64(m.Count))
	return nil
}
