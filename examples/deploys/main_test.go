package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The story, in virtual time.
const want = `
Release 41: two replicas say the same, and the second has nothing to do.
a starts with 41:  expire created  remind created
b starts with 41:  expire unchanged  remind unchanged
    expire  every 10 minutes (UTC)
    remind  at 09:00 every day (UTC)

Release 42 is rolled out, and its first replica runs beside those of 41.
Its list applies. What only 41 wants goes on, for 41 lives.
c starts with 42:  expire changed  report created
    expire  every minute (UTC)
    remind  at 09:00 every day (UTC)
    report  at 03:00 every day (UTC)

A replica of 41 restarts in the middle of that. It changes nothing.
b stops
b starts with 41:  expire superseded  remind superseded
    expire  every minute (UTC)
    remind  at 09:00 every day (UTC)
    report  at 03:00 every day (UTC)

The deploy ends. No replica that lives wants reminders:
they are stopped PruneAfter later.
a stops
d starts with 42:  expire unchanged  report unchanged
b stops
    expire  every minute (UTC)
    remind  at 09:00 every day (UTC), stopped: pruned
    report  at 03:00 every day (UTC)

Release 42 was a mistake. Its replicas go, and 41 comes back with Rollback:
its list applies at once, and reminders go on. Without Rollback it would have
waited for PruneAfter, in case 42 was only restarting.
c stops
d stops
a starts with 41:  expire changed  remind changed
    expire  every 10 minutes (UTC)
    remind  at 09:00 every day (UTC)
    report  at 03:00 every day (UTC)

The report is what nobody wants now.
    expire  every 10 minutes (UTC)
    remind  at 09:00 every day (UTC)
    report  at 03:00 every day (UTC), stopped: pruned
`

func TestStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := tell(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	})
}

// Ctrl-C ends it, and nothing is left behind: the bubble would complain.
func TestStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // in the middle of the deploy
		defer cancel()
		if err := tell(ctx, io.Discard); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}
