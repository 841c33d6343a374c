package queue

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
)

// TestLead: runs are marked started before their time by what the store's answers take, and by
// what their number takes, never by more than MaxLead; and what is gathered is within that.
func TestLead(t *testing.T) {
	var memory, slow leadTime
	for range 100 {
		slow.Sample(1000, 5*time.Millisecond)
		memory.Sample(1000, 1500*time.Microsecond) // many at once
		slow.Started(1000, 10*time.Millisecond)
		memory.Started(1000, 5*time.Millisecond)
		memory.Started(1, time.Second) // one alone says nothing of many
	}
	at := time.UnixMilli(1_800_000_000_000)
	for name, c := range map[string]struct {
		l         *leadTime
		n         int
		low, high time.Duration // of the lead
		gathers   bool
	}{
		"one, in memory":             {&memory, 1, 0, 0, false},
		"a hundred, in memory":       {&memory, 100, 450 * time.Microsecond, 500 * time.Microsecond, false},
		"100,000, in memory":         {&memory, 100_000, core.MaxLead, core.MaxLead, false},
		"one, in a database":         {&slow, 1, 9 * time.Millisecond, core.MaxLead - gather, true},
		"a hundred, in a database":   {&slow, 200, 11 * time.Millisecond, 12 * time.Millisecond, true},
		"ten thousand in a database": {&slow, 10_000, core.MaxLead, core.MaxLead, true},
	} {
		got := c.l.forMany(c.n)
		if got < c.low || got > c.high {
			t.Errorf("%s: the lead is %v, want %v to %v", name, got, c.low, c.high)
		}
		until := at.Add(got)
		ahead := c.l.window(at, until).Sub(at)
		if gathers := ahead > got || got == core.MaxLead; gathers != (c.gathers || got == core.MaxLead) || ahead > core.MaxLead || ahead < got {
			t.Errorf("%s: what is due within %v goes along", name, ahead)
		}
	}
}
