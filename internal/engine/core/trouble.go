package core

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// What goes wrong that another process would do no better: Scheduler.Troubles.

// troublesKept bounds how many troubles of one cause a node lists, and troublesSaid how many of
// them it logs at once: of what is wrong everywhere a line for each says no more.
const (
	troublesKept = 100
	troublesSaid = 10
)

// Troubles are those that a node knows of. Each cause belongs to one part of the scheduler, which
// looks now and then and says all that there is of it: what it does not say any more is over.
type Troubles struct {
	Logger *slog.Logger
	// Tell is called for each trouble that begins, and that is over.
	Tell func(kind EventKind, t store.Trouble)
	Wake loop.Wake // of the loop that calls Forget

	mu    sync.Mutex
	known map[store.TroubleCause][]store.Trouble
	until map[store.TroubleCause]map[troubleKey]time.Time // of those that were seen: see Saw
	past  []store.Trouble                                 // see Was
}

// troubleKey is what makes two troubles of a cause the same one.
type troubleKey struct {
	app     string
	jobID   int64
	address string
}

func keyOf(t *store.Trouble) troubleKey { return troubleKey{t.App, t.JobID, t.Address} }

// Set replaces the troubles of a cause. One that was there before keeps its Since; of the others
// Since is now where it is not set.
func (t *Troubles) Set(cause store.TroubleCause, now time.Time, all ...store.Trouble) {
	t.change(cause, now, func([]store.Trouble) []store.Trouble { return slices.Clone(all) })
}

// Saw adds a trouble of which nothing tells when it is over: it is once it was not seen for as
// long as kept, or with End. All troubles of its cause are said so. What is late is added up.
func (t *Troubles) Saw(cause store.TroubleCause, now time.Time, kept time.Duration, x store.Trouble) {
	t.saw(cause, now, kept, x, func(before int) int { return before + x.Late })
}

// SawLate is Saw for one of which it is known how many are late by now: they are not added up.
func (t *Troubles) SawLate(cause store.TroubleCause, now time.Time, kept time.Duration, x store.Trouble) {
	t.saw(cause, now, kept, x, func(int) int { return x.Late })
}

func (t *Troubles) saw(cause store.TroubleCause, now time.Time, kept time.Duration, x store.Trouble, late func(before int) int) {
	key := keyOf(&x)
	t.change(cause, now, func(known []store.Trouble) []store.Trouble {
		if t.until == nil {
			t.until = make(map[store.TroubleCause]map[troubleKey]time.Time)
		}
		if t.until[cause] == nil {
			t.until[cause] = make(map[troubleKey]time.Time)
		}
		_, was := t.until[cause][key]
		if was || len(t.until[cause]) < troublesKept {
			t.until[cause][key] = time.Now().Add(kept) // the store's clock may be set
			t.Wake.PokeIf(!was)
		}
		all := slices.Clone(known)
		if i := slices.IndexFunc(all, func(k store.Trouble) bool { return keyOf(&k) == key }); i >= 0 {
			x.Late = late(all[i].Late)
			all[i] = x
			return all
		}
		return append(all, x)
	})
}

// End ends some troubles of a cause.
func (t *Troubles) End(cause store.TroubleCause, now time.Time, over ...store.Trouble) {
	if len(over) == 0 {
		return
	}
	t.change(cause, now, func(known []store.Trouble) []store.Trouble {
		return slices.DeleteFunc(slices.Clone(known), func(k store.Trouble) bool {
			ended := slices.ContainsFunc(over, func(x store.Trouble) bool { return keyOf(&x) == keyOf(&k) })
			if ended {
				delete(t.until[cause], keyOf(&k))
			}
			return ended
		})
	})
}

// Was tells of a trouble that is over, of which nobody here could be told while it lasted.
func (t *Troubles) Was(cause store.TroubleCause, now time.Time, x store.Trouble) {
	x.Cause, x.Detail = cause, cmp.Or(x.Detail, x.Seen.String())
	t.mu.Lock()
	if len(t.past) < troublesKept {
		t.past = append(t.past, x)
	}
	t.mu.Unlock()
	t.say(cause, now, []store.Trouble{x}, []store.Trouble{x}, 0)
}

// TakePast returns the troubles that were over when they were told of, since it was last asked.
func (t *Troubles) TakePast() []store.Trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	past := t.past
	t.past = nil
	return past
}

// Forget ends the troubles that were not seen for long enough. It reports whether there are more
// that it will end.
func (t *Troubles) Forget(now time.Time) (more bool) {
	over := make(map[store.TroubleCause][]store.Trouble)
	t.mu.Lock()
	for cause, until := range t.until {
		for _, x := range t.known[cause] {
			if at, seen := until[keyOf(&x)]; seen && !time.Now().Before(at) {
				over[cause] = append(over[cause], x)
			}
		}
		more = more || len(until) > len(over[cause])
	}
	t.mu.Unlock()
	for cause, some := range over {
		t.End(cause, now, some...)
	}
	return more
}

// change replaces the troubles of a cause by what to makes of them, under the lock, and says what
// has begun and what is over.
func (t *Troubles) change(cause store.TroubleCause, now time.Time, to func(known []store.Trouble) []store.Trouble) {
	t.mu.Lock()
	before := t.known[cause]
	all := to(before)
	if len(before) == 0 && len(all) == 0 {
		t.mu.Unlock()
		return
	}
	since := make(map[troubleKey]time.Time, len(before))
	for i := range before {
		since[keyOf(&before[i])] = before[i].Since
	}
	left := len(all) - min(len(all), troublesKept)
	all = all[:len(all)-left]
	var began, over []store.Trouble
	for i := range all {
		x := &all[i]
		x.Cause, x.Detail = cause, cmp.Or(x.Detail, x.Seen.String())
		if was, ok := since[keyOf(x)]; ok {
			x.Since = was
			delete(since, keyOf(x))
			continue
		}
		if x.Since.IsZero() {
			x.Since = now
		}
		began = append(began, *x)
	}
	for i := range before {
		if _, gone := since[keyOf(&before[i])]; gone {
			over = append(over, before[i])
		}
	}
	if t.known == nil {
		t.known = make(map[store.TroubleCause][]store.Trouble)
	}
	t.known[cause] = all
	t.mu.Unlock()
	t.say(cause, now, began, over, left)
}

// refusedKept is for how long a trouble goes on after the last refusal: what is refused is tried
// again within seconds.
const refusedKept = 30 * time.Second

// Refused tells that the store refuses for ever what has to be written about a job or one of its
// runs: runID where it is about a run.
func (t *Troubles) Refused(now time.Time, app string, jobID int64, what store.SeenWhat, runID int64, why error) {
	t.Saw(store.TroubleRefused, now, refusedKept, store.Trouble{
		App: app, JobID: jobID,
		Seen:   store.Seen{What: what, RunID: runID, Said: errs.PlainText(errs.Shorten(why.Error(), maxRefusedText))},
		Remedy: "look for what was added to the store's tables: a constraint, a trigger, a rule, a right that was taken away; it is tried again all the time, and nothing else waits for it",
	})
}

// RefusedText says what the store refuses, and why, in words that it takes.
func RefusedText(what string, why error) string {
	return errs.PlainText(errs.Shorten(fmt.Sprintf("the store refuses %s: %v", what, why), maxRefusedText))
}

// maxRefusedText bounds that, in bytes: it is the reason of jobs that are stopped, too.
const maxRefusedText = 400

// say logs and tells what has begun and what is over.
func (t *Troubles) say(cause store.TroubleCause, now time.Time, began, over []store.Trouble, left int) {
	for i, x := range began {
		if i < troublesSaid {
			t.Logger.Warn("xxljob: trouble", fieldsOf(&x, "late", x.Late, "holder", x.Holder, "detail", x.Detail, "remedy", x.Remedy)...)
		}
		t.tell(EventTroubleBegan, x)
	}
	if more := max(0, len(began)-troublesSaid); more > 0 {
		t.Logger.Warn("xxljob: more troubles of the same cause", "cause", cause, "not_logged", more, "not_listed", left)
	}
	for i, x := range over {
		if i < troublesSaid {
			t.Logger.Info("xxljob: a trouble is over", fieldsOf(&x, "lasted", now.Sub(x.Since).Round(time.Millisecond))...)
		}
		t.tell(EventTroubleOver, x)
	}
}

func (t *Troubles) tell(kind EventKind, x store.Trouble) {
	if t.Tell != nil {
		t.Tell(kind, x)
	}
}

// fieldsOf are the fields of a line about a trouble, without those that are empty.
func fieldsOf(t *store.Trouble, more ...any) []any {
	fields := []any{"cause", t.Cause}
	for _, f := range [][2]any{{"app", t.App}, {"job", t.JobID}, {"address", t.Address}} {
		if f[1] != "" && f[1] != int64(0) {
			fields = append(fields, f[0], f[1])
		}
	}
	for i := 0; i+1 < len(more); i += 2 {
		if more[i+1] != "" && more[i+1] != 0 {
			fields = append(fields, more[i], more[i+1])
		}
	}
	return fields
}

// List returns all troubles, those that began first in front.
func (t *Troubles) List() []store.Trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []store.Trouble
	for _, some := range t.known {
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b store.Trouble) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.App, b.App), cmp.Compare(a.JobID, b.JobID), cmp.Compare(a.Address, b.Address))
	})
	return all
}

// Of returns those of a cause.
func (t *Troubles) Of(cause store.TroubleCause) []store.Trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.known[cause])
}

// Counts are how many troubles there are by cause, of those that there are any of.
func (t *Troubles) Counts() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := make(map[string]int)
	for cause, some := range t.known {
		if len(some) > 0 {
			counts[string(cause)] = len(some)
		}
	}
	return counts
}
