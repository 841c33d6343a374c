//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
)

// events is the file in which the handlers of this process write down what they
// see.
type events struct {
	file    *os.File
	said    *os.File // what the process says of itself
	chosen  *os.File // what its router chose
	who     audit.Process
	mayExit string // a file: while it is there, handlers may end the process
	poison  int64  // see options
}

func openEvents(o options) (*events, error) {
	who := audit.Process{Node: o.name, PID: os.Getpid()}
	open := func(what string) (*os.File, error) {
		name := filepath.Join(o.dir, fmt.Sprintf("%s-%s-%d.jsonl", what, who.Node, who.PID))
		return os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	}
	file, err1 := open("events")
	said, err2 := open("said")
	chosen, err3 := open("chosen")
	return &events{file, said, chosen, who, filepath.Join(o.dir, control.ExitsFile(o.name)), o.poison}, errors.Join(err1, err2, err3)
}

// watch writes down what the scheduler says of itself, each second in which that has changed,
// until ctx ends.
func (e *events) watch(ctx context.Context, s xxljob.Scheduler) {
	last := audit.Said{Unready: "-"}
	for tick := time.NewTicker(time.Second); ctx.Err() == nil; {
		now := audit.Said{At: machineClock(), Process: e.who}
		if err := s.Ready(); err != nil {
			now.Unready = err.Error()
		}
		for _, t := range s.Troubles() {
			now.Troubles = append(now.Troubles, t.String())
		}
		if now.Unready != last.Unready || !slices.Equal(now.Troubles, last.Troubles) {
			appendLine(e.said, now)
			last = now
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// work is the handler of all jobs. It takes as long as its parameter says, or does what a
// script says.
func (e *events) work(ctx context.Context, t *xxljob.Task) error {
	e.write(audit.EventStart, t, "")
	if e.isPoisoned(t) {
		t.Log().Warn(poison)
		t.SetResult(poison)
		t.Progress(50, poison)
	}
	if letter := script(t); letter != 0 {
		return e.act(ctx, t, letter)
	}
	return e.take(ctx, t, duration(t.Param), audit.EndOK, nil)
}

// poison is a text with bytes that no store keeps, and with a word that the database of the
// supervisor refuses.
const poison = control.Poison + " \x00 \xff\xfe"

func (e *events) isPoisoned(t *xxljob.Task) bool { return e.poison > 0 && t.RunID%e.poison == 0 }

// take takes a while, and ends as said.
func (e *events) take(ctx context.Context, t *xxljob.Task, d time.Duration, how string, err error) error {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			e.write(audit.EventEnd, t, audit.EndCancelled)
			return context.Cause(ctx)
		}
	}
	e.write(audit.EventEnd, t, how)
	return err
}

// write writes an event of a run.
func (e *events) write(kind string, t *xxljob.Task, how string) {
	e.tell(t, e.event(kind, t, how))
}

// writeAfter writes how a handler ended that says when it wants to be called again.
func (e *events) writeAfter(t *xxljob.Task, how string, after time.Duration) {
	ev := e.event(audit.EventEnd, t, how)
	ev.After = after.Milliseconds()
	e.tell(t, ev)
}

// tell writes an event to the file, and to the log of the run, of which the auditor knows then
// what has to be in it.
func (e *events) tell(t *xxljob.Task, ev audit.Event) {
	appendLine(e.file, ev)
	t.Log().Info(ev.Kind, "at", ev.At)
}

func (e *events) event(kind string, t *xxljob.Task, how string) audit.Event {
	ev := audit.Event{
		Kind: kind, At: machineClock(), Node: e.who.Node, PID: e.who.PID, Run: t.RunID, Job: t.JobID, Due: t.ScheduledAt.UnixMilli(),
		Index: t.ShardIndex, Total: t.ShardTotal, Attempt: t.Attempt, How: how,
	}
	if _, isDuration := strings.CutPrefix(t.Param, "takes="); !isDuration {
		ev.Param = t.Param
	}
	return ev
}

// appendLine writes one line by one system call: it is in the file, or will be, whatever
// becomes of the process next.
func appendLine(file *os.File, v any) {
	line, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		panic(err) // a test without evidence proves nothing
	}
}

// duration reads "takes=250", in milliseconds.
func duration(param string) time.Duration {
	text, _ := strings.CutPrefix(param, "takes=")
	ms, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}
