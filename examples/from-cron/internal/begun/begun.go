// Package begun runs a service in a testing/synctest bubble and says when its jobs began. It
// is what the tests of both services share, and so are the instants that they expect.
package begun

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob/examples/from-cron/shop"
)

// Monday is when the tests start a service: half an hour before the report.
var Monday = time.Date(2000, 1, 3, 3, 0, 0, 0, time.UTC)

// Book notes what the jobs of a shop say.
type Book struct {
	mu    sync.Mutex
	begun map[string][]time.Time
	ended map[string]int
}

// Shop is a shop whose jobs write into the book. Its prices take longer than their period,
// and its invoices as long as is asked for.
func (b *Book) Shop(invoices time.Duration) *shop.Shop {
	b.begun, b.ended = map[string][]time.Time{}, map[string]int{}
	return &shop.Shop{Say: b.say, PricesTake: 15 * time.Second, InvoicesTake: invoices}
}

func (b *Book) say(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	name, what, _ := strings.Cut(what, " ")
	if what == "begins" {
		b.begun[name] = append(b.begun[name], time.Now().UTC())
	} else {
		b.ended[name]++
	}
}

// Begun is when a job began, in order.
func (b *Book) Begun(name string) []time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]time.Time(nil), b.begun[name]...)
}

// Ended is how often a job ended.
func (b *Book) Ended(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended[name]
}

// For runs a service from now on for a time, and until it has returned. It is called in a
// bubble.
func For(t *testing.T, d time.Duration, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := run(ctx); err != nil {
		t.Error(err)
	}
}

// Until waits for a time.
func Until(at time.Time) { time.Sleep(time.Until(at)) }

// Check wants the jobs to have begun as they do in both services that have run from Monday on
// for a time, with invoices that take four seconds.
func (b *Book) Check(t *testing.T, d time.Duration) {
	t.Helper()
	for name, period := range map[string]time.Duration{
		"poll":     5 * time.Second,
		"prices":   20 * time.Second, // every second time is skipped
		"invoices": 10 * time.Second,
		"clean-up": 15 * time.Second,
		"import":   30 * time.Second, // in spite of its panics
	} {
		first := period
		if name == "prices" {
			first = 10 * time.Second
		}
		b.Want(t, name, every(first, period, d))
	}
	var reports []time.Time
	for at := Monday.Add(30 * time.Minute); at.Before(Monday.Add(d)); at = at.AddDate(0, 0, 1) {
		reports = append(reports, at)
	}
	b.Want(t, "report", reports)
}

// every are the instants from Monday on.
func every(first, period, d time.Duration) (all []time.Time) {
	for at := first; at < d; at += period {
		all = append(all, Monday.Add(at))
	}
	return all
}

// Want wants a job to have begun at these times.
func (b *Book) Want(t *testing.T, name string, want []time.Time) {
	t.Helper()
	got := b.Begun(name)
	for i := range min(len(got), len(want)) {
		if !got[i].Equal(want[i]) {
			t.Errorf("%s: run %d began at %v, want %v", name, i, got[i], want[i])
			return
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: began %d times, want %d", name, len(got), len(want))
	}
}
