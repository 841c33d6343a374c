package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/store"
)

// What Scheduler.Ready may be asked to look at, and what it answers.

// ReadyConfig is xxljob.ReadyConfig.
type ReadyConfig struct {
	StoreAway      time.Duration
	MaxWaiting     int
	MaxLate        time.Duration
	MaxClockOffset time.Duration
	Troubles       []store.TroubleCause
}

// The reasons of a NotReadyError.
const (
	notReadyShards     = "shards"
	notReadyStopped    = "stopped"
	notReadyNotStarted = "not-started"
	NotReadySuperseded = "superseded"
	NotReadyStoreAway  = "store-away"
	NotReadyFailing    = "failing"
	NotReadyResults    = "results"
	NotReadyPlaces     = "places"
	notReadyWaiting    = "waiting"
	notReadyLate       = "late"
	notReadyClock      = "clock"
)

// NotReadyError is xxljob.NotReadyError.
type NotReadyError struct {
	Reasons []string
	Errs    []error
}

func (e *NotReadyError) Error() string {
	texts := make([]string, len(e.Errs))
	for i, err := range e.Errs {
		texts[i] = err.Error()
	}
	return errs.ErrNotReady.Error() + ": " + strings.Join(texts, "; ")
}

// Unwrap returns ErrNotReady and Errs.
func (e *NotReadyError) Unwrap() []error { return append([]error{errs.ErrNotReady}, e.Errs...) }

func (e *NotReadyError) Add(reason string, err error) {
	e.Reasons, e.Errs = append(e.Reasons, reason), append(e.Errs, err)
}

// Backlog is what a node has due and has not started.
type Backlog struct {
	Waiting int
	Oldest  time.Time // when the oldest was due; zero for none
}

// Judge adds what is beyond the bounds.
func (c *ReadyConfig) Judge(e *NotReadyError, b Backlog, now time.Time, offset time.Duration) {
	if c.MaxWaiting > 0 && b.Waiting > c.MaxWaiting {
		e.Add(notReadyWaiting, fmt.Errorf("%d due runs wait, Config.Ready.MaxWaiting is %d", b.Waiting, c.MaxWaiting))
	}
	if late := now.Sub(b.Oldest); c.MaxLate > 0 && !b.Oldest.IsZero() && late > c.MaxLate {
		e.Add(notReadyLate, fmt.Errorf("the oldest due run has waited for %v, Config.Ready.MaxLate is %v", late.Round(time.Millisecond), c.MaxLate))
	}
	if c.MaxClockOffset > 0 && offset.Abs() > c.MaxClockOffset {
		e.Add(notReadyClock, fmt.Errorf("the store's clock is %v ahead of this process's, Config.Ready.MaxClockOffset is %v", offset.Round(time.Millisecond), c.MaxClockOffset))
	}
}

// JudgeTroubles adds those troubles that are asked for, each cause once.
func (c *ReadyConfig) JudgeTroubles(e *NotReadyError, t *Troubles) {
	if len(c.Troubles) == 0 {
		return
	}
	seen := map[store.TroubleCause]bool{}
	for _, x := range t.List() {
		if slices.Contains(c.Troubles, x.Cause) && !seen[x.Cause] {
			seen[x.Cause] = true
			e.Add(string(x.Cause), errors.New(x.String()))
		}
	}
}

// validate collects what is out of range. trust is for how long a lease is trusted.
func (c *ReadyConfig) validate(f *store.Faults, trust time.Duration) {
	for _, d := range []struct {
		name  string
		d     time.Duration
		least time.Duration
	}{
		{"Ready.StoreAway", c.StoreAway, trust}, {"Ready.MaxLate", c.MaxLate, time.Second}, {"Ready.MaxClockOffset", c.MaxClockOffset, 10 * time.Millisecond},
	} {
		if d.d != 0 && (d.d < d.least || d.d > 24*time.Hour) {
			f.Add(d.name, d.d, fmt.Errorf("want 0, or %v to %v", d.least, 24*time.Hour))
		}
	}
	for _, cause := range c.Troubles {
		if !slices.Contains(store.TroubleCauses(), cause) {
			f.Add("Ready.Troubles", cause, fmt.Errorf("want one of %q", store.TroubleCauses()))
		}
	}
	if c.MaxWaiting < 0 || c.MaxWaiting > 1_000_000_000 {
		f.Add("Ready.MaxWaiting", c.MaxWaiting, fmt.Errorf("want 0 to %d", 1_000_000_000))
	}
}
