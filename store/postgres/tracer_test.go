package postgres_test

import (
	"context"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// answering is a tracer of a host's transactions.
type answering struct {
	answer func() string
	done   func(id int64, err error)
}

func (a answering) Triggering(context.Context, int64) (string, func(int64, error)) {
	return a.answer(), a.done
}

func (answering) Sending(context.Context, store.Run) (string, func(error)) { return "", nil }

// TestTracerOfTriggerTx: what the tracer answers is in the row, unless the trigger has a trace;
// one that panics, or answers what cannot be stored, costs the trace.
func TestTracerOfTriggerTx(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer      func() string
		given, want string
		asked       bool
	}{
		"its answer":         {answer: func() string { return "00-1 a=b" }, want: "00-1 a=b", asked: true},
		"a trace was given":  {answer: func() string { return "00-1" }, given: "00-2", want: "00-2"},
		"nothing":            {answer: func() string { return "" }, asked: true},
		"too long an answer": {answer: func() string { return strings.Repeat("a", 601) }, asked: true},
		"a line feed":        {answer: func() string { return "00-1\nb" }, asked: true},
		"a panic":            {answer: func() string { panic("no") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told []int64
			tracer := answering{tt.answer, func(id int64, err error) {
				if err == nil {
					told = append(told, id)
				}
				panic("not even now")
			}}
			pool := pgtest.SharedPool(t)
			s, err := postgres.New(t.Context(), pool, postgres.Config{Schema: pgtest.Schema(t), AutoMigrate: true, Tracer: tracer})
			must(t, err)
			t.Cleanup(s.Close)
			scheduler, err := xxljob.New(s, xxljob.Config{})
			must(t, err)
			job, err := scheduler.AddJob(t.Context(), store.Job{Name: "j", Handler: "h"})
			must(t, err)
			tx, err := pool.Begin(t.Context())
			must(t, err)
			id, err := s.TriggerTx(t.Context(), tx, job.ID, store.Trigger{Trace: tt.given})
			must(t, err)
			must(t, tx.Commit(t.Context()))
			run, err := s.Run(t.Context(), id)
			must(t, err)
			if run.Trace != tt.want {
				t.Errorf("the row has trace %q, want %q", run.Trace, tt.want)
			}
			if asked := len(told) == 1 && told[0] == id; asked != tt.asked {
				t.Errorf("the tracer was told of %v, want run %d: %t", told, id, tt.asked)
			}
		})
	}
}
