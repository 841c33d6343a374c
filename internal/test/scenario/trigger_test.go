package scenario_test

// Triggers by key, for one run, and with parameters of any type.

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// order is a parameter.
type order struct {
	Customer string
	Cents    int
}

// unmarshalable is a value of which no JSON can be made.
type unmarshalable struct{}

func (unmarshalable) MarshalJSON() ([]byte, error) { return nil, errors.New("not today") }

// triggering is a scheduler with one job, whose handler keeps what it was given.
func triggering(t *testing.T, job xxljob.Job) (xxljob.Scheduler, xxljob.Store, int64, *[]order) {
	st := memory.New()
	s, err := xxljob.New(st, xxljob.Config{App: "shop", Logger: stage.QuietLog()})
	stage.Must(t, err)
	var got []order
	stage.Must(t, s.Handle("bill", xxljob.JSON(func(_ context.Context, _ *xxljob.Task, o order) error {
		got = append(got, o)
		return nil
	})))
	job.Key, job.Name, job.Handler = "bill", "Bill", "bill"
	e, err := s.EnsureJob(t.Context(), job)
	stage.Must(t, err)
	stage.Must(t, s.Start(t.Context()))
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s, st, e.Job.ID, &got
}

func TestTriggerByKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _, id, got := triggering(t, xxljob.Job{})
		for _, app := range []string{"", "shop"} {
			ids, err := s.TriggerJob(t.Context(), app, "bill", xxljob.Trigger{JSON: order{"Ada <a@b>", 1250}})
			stage.Must(t, err)
			if run := stage.WaitFor(t, s, ids[0], time.Minute); run.State != xxljob.StateSucceeded || run.JobID != id {
				t.Errorf("the run is %+v", run)
			}
		}
		if len(*got) != 2 || (*got)[1] != (order{"Ada <a@b>", 1250}) {
			t.Errorf("the handler got %+v", *got)
		}
		for _, c := range []struct{ app, key string }{{"", "no such"}, {"other", "bill"}, {"", ""}} {
			_, err := s.TriggerJob(t.Context(), c.app, c.key, xxljob.Trigger{})
			if !errors.Is(err, xxljob.ErrNotFound) || !strings.Contains(err.Error(), "does not exist") {
				t.Errorf("app %q, key %q: %v", c.app, c.key, err)
			}
		}
		var none context.Context
		if _, err := s.TriggerJob(none, "", "bill", xxljob.Trigger{}); err == nil {
			t.Error("a nil context is no error")
		}
	})
}

func TestTriggerWithJSON(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, st, id, _ := triggering(t, xxljob.Job{})
		param := "{}"
		for name, c := range map[string]struct {
			t    xxljob.Trigger
			want string
		}{
			"together with Param": {xxljob.Trigger{Param: &param, JSON: order{}}, "together with Param"},
			"no JSON for it":      {xxljob.Trigger{JSON: unmarshalable{}}, "not today"},
			"a channel":           {xxljob.Trigger{JSON: make(chan int)}, "unsupported type"},
			"no UTF-8":            {xxljob.Trigger{JSON: json.RawMessage("\"\xff\"")}, "want UTF-8 without NUL"},
			"too long":            {xxljob.Trigger{JSON: strings.Repeat("x", 64<<10-1)}, "65537 bytes, at most 65536"},
		} {
			_, err := s.Trigger(t.Context(), id, c.t)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "xxljob: trigger: JSON ") {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
			if err := c.t.Validate(); err == nil {
				t.Errorf("%s: Validate finds nothing", name)
			}
		}
		if runs := stage.AllRuns(t, st); len(runs) != 0 {
			t.Errorf("runs were planned: %+v", runs)
		}
		_, err := s.Trigger(t.Context(), id, xxljob.Trigger{JSON: strings.Repeat("x", 64<<10-2), At: time.Now().Add(time.Hour)})
		stage.Must(t, err)
	})
}

// counted counts how often it is marshalled.
type counted struct{ n *int }

func (c counted) MarshalJSON() ([]byte, error) { *c.n++; return []byte("1"), nil }

// TestTriggerMarshalsOnce: whichever call it is; what is checked is what is used.
func TestTriggerMarshalsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, id, _ := triggering(t, xxljob.Job{Key: "bill"})
		for name, call := range map[string]func(xxljob.Trigger) error{
			"Trigger":    func(x xxljob.Trigger) error { _, err := s.Trigger(t.Context(), id, x); return err },
			"TriggerOne": func(x xxljob.Trigger) error { _, err := s.TriggerOne(t.Context(), id, x); return err },
			"TriggerJob": func(x xxljob.Trigger) error { _, err := s.TriggerJob(t.Context(), "", "bill", x); return err },
			"Encode":     func(x xxljob.Trigger) error { _, err := x.Encode(); return err },
		} {
			n := 0
			stage.Must(t, call(xxljob.Trigger{JSON: counted{&n}}))
			if n != 1 {
				t.Errorf("%s marshals %d times", name, n)
			}
		}
	})
}

func TestTriggerOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, st, id, got := triggering(t, xxljob.Job{})
		run, err := s.TriggerOne(t.Context(), id, xxljob.Trigger{JSON: order{Cents: 7}})
		stage.Must(t, err)
		if r := stage.WaitFor(t, s, run, time.Minute); r.State != xxljob.StateSucceeded || len(*got) != 1 {
			t.Errorf("the run is %+v; the handler got %+v", r, *got)
		}
		job, err := st.Job(t.Context(), id)
		stage.Must(t, err)
		job.Route = xxljob.RouteShardingBroadcast
		_, err = s.UpdateJob(t.Context(), job)
		stage.Must(t, err)
		if _, err := s.TriggerOne(t.Context(), id, xxljob.Trigger{}); err == nil || !strings.Contains(err.Error(), "broadcast") {
			t.Errorf("a broadcast: %v", err)
		}
		part, err := s.TriggerOne(t.Context(), id, xxljob.Trigger{Shard: xxljob.Sharding{Index: 1, Total: 3}})
		stage.Must(t, err)
		if r := stage.WaitFor(t, s, part, time.Minute); r.State != xxljob.StateSucceeded || r.Sharding.Index != 1 {
			t.Errorf("the part is %+v", r)
		}
		if runs := stage.AllRuns(t, st); len(runs) != 2 {
			t.Errorf("%d runs, want 2", len(runs))
		}
		if _, err := s.TriggerOne(t.Context(), id+1, xxljob.Trigger{}); !errors.Is(err, xxljob.ErrNotFound) {
			t.Errorf("an absent job: %v", err)
		}
	})
}
