package dispatch_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/engine/dispatch"

	"github.com/xxljob/xxljob/wire"
)

// TestUnreportedJudge: what is concluded about a run that was accepted and not reported, from
// what is known and what has just been said.
func TestUnreportedJudge(t *testing.T) {
	const day = 24 * time.Hour
	busy := dispatch.SaidOfRun{Busy: true}
	idle := dispatch.SaidOfRun{}
	of := func(state wire.RunState, boot string) dispatch.SaidOfRun {
		return dispatch.SaidOfRun{State: state, Boot: boot, Busy: true}
	}
	gone, proxy := dispatch.SaidOfRun{Err: errNoRoute}, dispatch.SaidOfRun{Err: &wire.CallError{Sent: true, Status: 503}}
	page := dispatch.SaidOfRun{Err: &wire.CallError{Sent: true, Status: 404}}
	type known = dispatch.KnownOfRun
	others := known{Listed: true, Watched: time.Hour, Age: time.Hour, Overdue: day}
	ours := others
	ours.Boot = "one"
	with := func(k known, change func(*known)) known { change(&k); return k }
	silent := func(d time.Duration) func(*known) { return func(k *known) { k.Silent, k.Listed = d, false } }
	manual := func(deaf time.Duration) func(*known) { return func(k *known) { k.Manual, k.Deaf = true, deaf } }
	replaced := func(d time.Duration) func(*known) { return func(k *known) { k.Replaced = d } }
	absent := func(d time.Duration) func(*known) { return func(k *known) { k.Absent = d } }
	aged := func(d time.Duration) func(*known) { return func(k *known) { k.Age = d } }
	for _, c := range []struct {
		name  string
		known known
		said  dispatch.SaidOfRun
		want  string
	}{
		{"others, registered and busy", others, busy, ""},
		{"others, registered and out of reach", others, gone, ""},
		{"others, silent and out of reach, not long enough", with(others, silent(dead-1)), gone, ""},
		{"others, silent and out of reach", with(others, silent(dead)), gone, "lost"},
		{"others, silent, and a proxy without anybody behind it", with(others, silent(dead)), proxy, "lost"},
		{"others, silent, and something else answers", with(others, silent(dead)), page, ""},
		{"others, silent and busy", with(others, silent(time.Hour)), busy, ""},
		{"others, idle, not long enough", with(others, absent(dead-1)), idle, ""},
		{"others, idle", with(others, absent(dead)), idle, "lost"},
		{"others, was idle, and is busy with the next run", with(others, absent(time.Hour)), busy, ""},
		{"others, busy until it is overdue", with(others, aged(day-1)), busy, ""},
		{"others, busy and overdue", with(others, aged(day)), busy, "lost"},
		{"others, busy and overdue, seen for a moment", with(others, func(k *known) { k.Age, k.Watched = day, dead-1 }), busy, ""},
		{"others, just idle and overdue", with(others, func(k *known) { k.Age, k.Absent = day, time.Second }), idle, ""},
		{"others, overdue and out of reach", with(others, aged(day)), gone, "lost"},
		{"by hand, never registered", with(others, func(k *known) { manual(0)(k); silent(time.Hour)(k) }), busy, ""},
		{"by hand, no answer, not long enough", with(others, manual(dead-1)), gone, ""},
		{"by hand, no answer", with(others, manual(dead)), gone, "lost"},
		{"by hand, something answers", with(others, manual(0)), page, ""},
		{"of several, idle for long", with(others, func(k *known) { k.Several, k.Absent = true, time.Hour }), idle, ""},
		{"of several, idle in too few answers", with(others, func(k *known) { k.Several, k.Absent, k.Idle, k.Idles = true, time.Hour, time.Hour, 19 }), idle, ""},
		{"of several, idle in many answers, not long enough", with(others, func(k *known) { k.Several, k.Absent, k.Idle, k.Idles = true, time.Hour, 2*dead-1, 40 }), idle, ""},
		{"of several, idle in many answers", with(others, func(k *known) { k.Several, k.Absent, k.Idle, k.Idles = true, 2*dead, 2*dead, 20 }), idle, "lost"},
		{"of several, busy", with(others, func(k *known) { k.Several, k.Absent = true, time.Hour }), busy, ""},
		{"of several, idle and overdue", with(others, func(k *known) { k.Several, k.Age, k.Absent = true, day, time.Second }), idle, "lost"},
		{"of several, busy and overdue", with(others, func(k *known) { k.Several, k.Age = true, day }), busy, "lost"},
		{"of several of ours, one has denied it", with(others, func(k *known) { k.Several, k.Absent = true, time.Hour }), of(wire.RunUnknown, "one"), ""},
		{"of several of ours, all have denied it", with(others, func(k *known) { k.Several, k.Denied, k.Absent = true, true, dead }), of(wire.RunUnknown, "one"), "lost"},
		{"of several of ours, all have denied it, not long enough", with(others, func(k *known) { k.Several, k.Denied, k.Absent = true, true, dead-1 }), of(wire.RunUnknown, "one"), ""},
		{"ours of several, another one was not sent it", with(ours, func(k *known) { k.Several, k.Absent = true, time.Hour }), of(wire.RunUnknown, "two"), ""},
		{"ours of several, was not sent it", with(ours, func(k *known) { k.Several = true }), of(wire.RunUnknown, "one"), "lost"},
		{"ours of several, one of others says that it is idle", with(ours, func(k *known) { k.Several, k.Absent, k.Idle, k.Idles = true, time.Hour, time.Hour, 100 }), idle, ""},
		{"ours, has it", ours, of(wire.RunHeld, "one"), ""},
		{"ours, has it, and is overdue", with(ours, aged(day)), of(wire.RunHeld, "one"), "overdue"},
		{"ours, silent, and has it", with(ours, silent(time.Hour)), of(wire.RunHeld, "one"), ""},
		{"ours, its successor has it", with(ours, replaced(time.Hour)), of(wire.RunHeld, "two"), ""},
		{"ours, has reported it", ours, of(wire.RunReported, "one"), "reread"},
		{"ours, its successor has reported it", with(ours, replaced(time.Hour)), of(wire.RunReported, "two"), "reread"},
		{"ours, was not sent it", ours, of(wire.RunUnknown, "one"), "lost"},
		{"ours, another process was not sent it", ours, of(wire.RunUnknown, "two"), ""},
		{"ours, silent, and another process is there", with(ours, silent(dead)), of(wire.RunUnknown, "two"), "lost"},
		{"ours, replaced, not long enough", with(ours, replaced(lostAfter-1)), of(wire.RunForgotten, "two"), ""},
		{"ours, replaced", with(ours, replaced(lostAfter)), of(wire.RunForgotten, "two"), "lost"},
		{"ours, replaced by others", with(ours, replaced(lostAfter)), busy, "lost"},
		{"ours, replaced and out of reach", with(ours, replaced(lostAfter)), gone, "lost"},
		{"ours, has forgotten it, not long enough", with(ours, absent(dead-1)), of(wire.RunForgotten, "one"), ""},
		{"ours, has forgotten it", with(ours, absent(dead)), of(wire.RunForgotten, "one"), "lost"},
		{"ours, registered and out of reach", ours, gone, ""},
		{"ours by hand, does not know it", with(others, func(k *known) { k.Manual, k.Absent = true, dead }), of(wire.RunUnknown, "x"), "lost"},
	} {
		if got := dispatch.JudgeUnreported(dead, lostAfter, c.known, c.said); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		name  string
		known known
		want  time.Duration
	}{
		{"others", others, 20 * time.Second},
		{"ours", ours, 10 * time.Minute},
		{"ours, young", with(ours, aged(time.Minute)), dead},
		{"ours, replaced", with(ours, replaced(lostAfter-time.Second)), time.Second},
		{"silent", with(others, silent(dead-2*time.Second)), 2 * time.Second},
		{"silent for long", with(others, silent(time.Hour)), 10 * time.Second},
		{"idle", with(others, absent(dead-3*time.Second)), 3 * time.Second},
		{"idle, for the first time", with(others, func(k *known) { k.Idles = 1 }), dead / 20},
		{"by hand", with(others, manual(dead-4*time.Second)), 4 * time.Second},
		{"nearly overdue", with(ours, aged(day-5*time.Second)), 5 * time.Second},
	} {
		if got := dispatch.AskUnreported(dead, lostAfter, c.known); got != c.want {
			t.Errorf("%s: asked again after %v, want %v", c.name, got, c.want)
		}
	}
}

const dead, lostAfter = 90 * time.Second, 30 * time.Second // the defaults of Config.Cluster

// errNoRoute is the error of a call that has not arrived.
var errNoRoute = &wire.CallError{URL: "http://peer", Err: errors.New("connection refused")}

// TestSilentRunsCostNothing: the book has no log of a handler that logs nothing, and to ask where
// its lines would go costs two functions.
func TestSilentRunsCostNothing(t *testing.T) {
	if allocs, open := dispatch.SilentLogs(1000); allocs > 2 || open > 0 {
		t.Errorf("%v allocations a run, %d logs are open", allocs, open)
	}
}

// TestFairShare: an address with very many runs leaves room for those of others.
func TestFairShare(t *testing.T) {
	ids := make([]int64, 30_000)
	for i := range ids {
		ids[i] = int64(i)
	}
	kept, left := dispatch.FairShare(1000, ids, func(id int64) string {
		if id%300 == 0 {
			return fmt.Sprint("few-", id%1500)
		}
		return "many"
	})
	few, many := 0, 0
	var last int64
	for _, id := range kept {
		if id%300 == 0 {
			few++
			continue
		}
		many++
		last = max(last, id)
	}
	if few != 100 || many < 700 || many > 1000-few || left != len(ids)-len(kept) {
		t.Errorf("kept %d of the few and %d of the many, left %d; want all 100, and 700 to 900", few, many, left)
	}
	if last > int64(many)*2 {
		t.Errorf("the last of %d that are kept of the many is %d: they are not the oldest", many, last)
	}
}
