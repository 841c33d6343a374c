package scenario_test

// Traces: from a trigger to the handler, with tracers that are good and others.

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/xxljobtest"
)

const aTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 congo=t61rcWkgMzE"

// traceOfTask is a handler that tells what trace it is in.
func traceOfTask(_ context.Context, t *xxljob.Task) error { t.SetResult(t.Trace); return nil }

// traced is a scheduler with such a handler, and the trace that a trigger of it comes to.
func traced(t *testing.T, tracer xxljob.Tracer, trigger xxljob.Trigger) (row, handler string) {
	t.Helper()
	s := xxljobtest.NewWith(t, xxljobtest.Options{Config: xxljob.Config{Tracer: tracer}, Handlers: map[string]xxljob.Handler{"h": traceOfTask}},
		xxljob.Job{Name: "j", Key: "j", Handler: "h"})
	ids, err := s.TriggerJob(t.Context(), "", "j", trigger)
	if err != nil {
		t.Fatal(err)
	}
	run, err := s.Wait(t.Context(), ids[0])
	if err != nil || run.State != xxljob.StateSucceeded {
		t.Fatal(err, run.Err())
	}
	return run.Trace, run.HandleMsg
}

// tracer answers what it is told to, and counts what it hears of the ends.
type tracer struct {
	trigger, send func() string
	done          func()
	ids, errs     atomic.Int64
	sent          atomic.Int64 // sends that have ended
}

func (t *tracer) Triggering(context.Context, int64) (string, func(int64, error)) {
	return t.trigger(), func(id int64, err error) {
		t.done()
		t.ids.Add(min(id, 1))
	}
}

func (t *tracer) Sending(_ context.Context, r xxljob.Run) (string, func(error)) {
	return t.send(), func(err error) {
		t.done()
		t.sent.Add(1)
		if err != nil {
			t.errs.Add(1)
		}
	}
}

func says(s string) func() string { return func() string { return s } }

// TestTraces: what a trigger is given, or the tracer answers, is in the row and at the handler.
func TestTraces(t *testing.T) {
	for name, tt := range map[string]struct {
		tracer       *tracer
		given        string
		row, handler string
	}{
		"nothing":                {},
		"given, without tracer":  {given: aTrace, row: aTrace, handler: aTrace},
		"of the tracer":          {tracer: &tracer{trigger: says("00-1"), send: says("00-2 a=b")}, row: "00-1", handler: "00-2 a=b"},
		"given, with a tracer":   {tracer: &tracer{trigger: says("00-1"), send: says("00-2")}, given: aTrace, row: aTrace, handler: "00-2"},
		"no span for the send":   {tracer: &tracer{trigger: says("00-1"), send: says("")}, row: "00-1", handler: "00-1"},
		"too long":               {tracer: &tracer{trigger: says(strings.Repeat("a", 601)), send: says(strings.Repeat("b", 601))}},
		"control characters":     {tracer: &tracer{trigger: says("00-1\r\nX: y"), send: says("00-\x00")}},
		"of characters of UTF-8": {tracer: &tracer{trigger: says("00-é"), send: says("\xff")}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked xxljob.Tracer
				if tt.tracer != nil {
					tt.tracer.done = func() {}
					asked = tt.tracer
				}
				row, handler := traced(t, asked, xxljob.Trigger{Trace: tt.given})
				if row != tt.row || handler != tt.handler {
					t.Errorf("the row has trace %q and the handler %q, want %q and %q", row, handler, tt.row, tt.handler)
				}
			})
		})
	}
}

// TestTracesAreChecked: a trace that cannot be is refused before anything is stored.
func TestTracesAreChecked(t *testing.T) {
	for _, bad := range []string{strings.Repeat("a", 601), "00-1 a b", "00-1\n", "00-é"} {
		err := xxljob.Trigger{Trace: bad}.Validate()
		if err == nil || !strings.Contains(err.Error(), "Trace") || !strings.Contains(err.Error(), "600") {
			t.Errorf("trace %.20q: %v, want an error that names the field and the bound", bad, err)
		}
	}
}

// TestBadTracers: whatever a tracer does, the run is run, in the trace that is left.
func TestBadTracers(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(){"panics": func() { panic("no") }, "ends its goroutine": func() { var t testing.T; t.FailNow() }, "takes a minute": func() { time.Sleep(time.Minute) }} {
		for what, bad := range map[string]*tracer{
			"at the trigger": {trigger: func() string { act(); return "00-1" }, send: says(""), done: func() {}},
			"at the send":    {trigger: says(""), send: func() string { act(); return "00-1" }, done: func() {}},
			"at the end":     {trigger: says(""), send: says(""), done: act},
		} {
			t.Run(fmt.Sprintf("%s %s", name, what), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					row, handler := traced(t, bad, xxljob.Trigger{})
					if took := time.Since(began); row != "" || handler != "" || took > time.Second {
						t.Errorf("the row has trace %q and the handler %q, after %v; want none, at once", row, handler, took)
					}
					time.Sleep(2 * time.Minute) // what hangs returns
				})
			})
		}
	}
}

// TestTracersHearOfTheEnd: of a run that an executor elsewhere refuses, too; and that gets the
// trace beside the keys of the protocol, as a traceparent and a tracestate.
func TestTracersHearOfTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := &tracer{trigger: says("00-1 a=b"), send: says("00-2 c=d"), done: func() {}}
		e := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "elsewhere", Answer: func(context.Context, xxljobtest.ExecutorRun) xxljobtest.Answer { return xxljobtest.Refuse("not today") }})
		s := xxljobtest.NewWith(t, xxljobtest.Options{Config: xxljob.Config{Tracer: tr}, Executors: []*xxljobtest.Executor{e}},
			xxljob.Job{App: "elsewhere", Name: "j", Key: "j", Handler: "h"})
		ids, err := s.TriggerJob(t.Context(), "elsewhere", "j", xxljob.Trigger{})
		if err != nil {
			t.Fatal(err)
		}
		if run, err := s.Wait(t.Context(), ids[0]); err != nil || run.State != xxljob.StateRefused {
			t.Fatalf("the run is %v: %v", run.State, err)
		}
		synctest.Wait()
		if tr.ids.Load() != 1 || tr.errs.Load() != 1 {
			t.Errorf("the tracer heard of %d triggers and %d refusals, want one each", tr.ids.Load(), tr.errs.Load())
		}
		if got := e.Runs()[0]; got.Traceparent != "00-2" || got.Tracestate != "c=d" {
			t.Errorf("the executor was sent traceparent %q and tracestate %q", got.Traceparent, got.Tracestate)
		}
	})
}

// TestATracerThatHangsOnce: the spans that have begun before are ended all the same, and what was
// left out is counted and in the log.
func TestATracerThatHangsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		var sends atomic.Int64
		tr := &tracer{trigger: says("00-1"), done: func() {}, send: func() string {
			if sends.Add(1) == 2 {
				time.Sleep(120 * time.Millisecond)
			}
			return "00-2"
		}}
		s := xxljobtest.NewWith(t, xxljobtest.Options{
			Config:   xxljob.Config{Tracer: tr, Logger: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn}))},
			Handlers: map[string]xxljob.Handler{"h": func(context.Context, *xxljob.Task) error { return nil }},
		}, xxljob.Job{Name: "j", Key: "j", Handler: "h"})
		trigger := func() {
			t.Helper()
			if _, err := s.TriggerJob(t.Context(), "", "j", xxljob.Trigger{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		for range 5 { // of the third and later ones neither the trigger nor the send has a span
			trigger()
		}
		if got := s.Stats().Untraced; got != 6 || tr.ids.Load() != 2 || tr.sent.Load() != 2 {
			t.Errorf("%d calls were left out, the spans of %d triggers and %d sends have ended; want 6, 2 and 2", got, tr.ids.Load(), tr.sent.Load())
		}
		time.Sleep(10 * time.Second)
		trigger()
		synctest.Wait()
		if lines := strings.Split(strings.TrimSpace(text.String()), "\n"); len(lines) != 2 || !strings.Contains(lines[0], "Tracer.Sending") || !strings.Contains(lines[1], "leftOut=6") {
			t.Errorf("the log:\n%s", text.String())
		}
	})
}
