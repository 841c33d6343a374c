//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
)

// A handler that fails as its parameter says: "chain", a name of its own, and a letter for
// each attempt. Behind the last letter all is well.

// script is the letter of an attempt; zero when the parameter is no script.
func script(t *xxljob.Task) byte {
	words := strings.Fields(t.Param)
	switch {
	case len(words) != 3 || words[0] != control.Chain:
		return 0
	case t.Attempt < len(words[2]):
		return words[2][t.Attempt]
	}
	return control.Well
}

// errScript is what handlers of chains fail with.
var errScript = errors.New("the script wants it to fail")

// failure is what the handler of a run fails with.
func (e *events) failure(t *xxljob.Task) error {
	if e.isPoisoned(t) {
		return errors.New(poison)
	}
	return errScript
}

// act does what a letter says.
func (e *events) act(ctx context.Context, t *xxljob.Task, letter byte) error {
	after := time.Duration(100+t.RunID%400) * time.Millisecond
	switch letter {
	case control.Fails:
		e.write(audit.EventEnd, t, audit.EndFailed)
		return e.failure(t)
	case control.Later:
		e.writeAfter(t, audit.EndLater, after)
		return xxljob.RetryAfter(after, e.failure(t))
	case control.Panics:
		e.write(audit.EventEnd, t, audit.EndPanicked)
		panic(fmt.Sprint("the script wants it to panic: ", e.failure(t)))
	case control.Permanent:
		e.write(audit.EventEnd, t, audit.EndPermanent)
		return xxljob.Permanent(e.failure(t))
	case control.Snoozes: // a few times
		if t.RunID%3 > 0 {
			e.writeAfter(t, audit.EndSnoozed, after)
			return xxljob.Snooze(after)
		}
	case control.Hangs:
		return e.hang(t, control.HangFor)
	case control.Stuck:
		return e.hang(t, control.StuckFor)
	case control.Exits:
		return e.exit(t)
	case control.Takes:
		return e.take(ctx, t, control.TakeFor, audit.EndOK, nil)
	case control.Works:
		return e.take(ctx, t, control.TakeFor, audit.EndFailed, e.failure(t))
	case control.Halves:
		if t.ScheduledAt.Unix()/2%2 == 0 {
			e.write(audit.EventEnd, t, audit.EndFailed)
			return e.failure(t)
		}
	case control.Well:
	default:
		return fmt.Errorf("unknown letter %q", letter)
	}
	e.write(audit.EventEnd, t, audit.EndOK)
	return nil
}

// hang takes a while, and does not look at its context.
func (e *events) hang(t *xxljob.Task, d time.Duration) error {
	time.Sleep(d)
	e.write(audit.EventEnd, t, audit.EndLate)
	return nil
}

// exit ends the process, where the supervisor is prepared for that, and fails elsewhere.
func (e *events) exit(t *xxljob.Task) error {
	if _, err := os.Stat(e.mayExit); err != nil {
		e.write(audit.EventEnd, t, audit.EndFailed)
		return e.failure(t)
	}
	e.write(audit.EventEnd, t, audit.EndExit)
	os.Exit(3)
	return nil
}
