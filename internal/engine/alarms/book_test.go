package alarms_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/engine/alarms"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

// alarmWorld is a store of alarms, and what alarmers were told, around a book that is tried.
type alarmWorld struct {
	t      *testing.T
	seed   uint64
	rnd    *rand.Rand
	now    time.Time
	rules  []alarm.Rule
	book   *alarms.AlarmBook
	open   map[int64]store.Alarm
	all    []store.Alarm
	jobs   map[string]store.JobTold
	status map[int64][]int
	flying []alarms.AlarmFlight
	// told counts the good ends of a message about an alarm, by alarm and rule; tried the bad.
	told, tried map[string]int
	count       map[int]int          // what the counts of a rule's good messages add up to
	last        map[string]time.Time // when a rule has told of a job last
	fails       float64
	restarts    bool
}

func newAlarmWorld(t *testing.T, seed uint64) *alarmWorld {
	return &alarmWorld{
		t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, seed)), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		rules: []alarm.Rule{
			{Name: "all"},
			{Name: "each", Window: -1, Causes: []alarm.Cause{alarm.Attempt, alarm.Failed}},
			{Name: "app", Window: time.Hour, Apps: []string{"app-1"}},
			{Name: "job", Window: time.Second, Jobs: []string{"app-0/key-0", "app-1/key-3"}},
			{Name: "nobody", Apps: []string{"none"}},
		},
		open: map[int64]store.Alarm{}, jobs: map[string]store.JobTold{}, status: map[int64][]int{},
		told: map[string]int{}, tried: map[string]int{}, count: map[int]int{}, last: map[string]time.Time{},
	}
}

func (w *alarmWorld) errorf(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("seed %d, %v: %s", w.seed, w.now, fmt.Sprintf(format, args...))
}

// wants reports, in other words than the book, whether a rule is to tell of an alarm.
func wants(r alarm.Rule, a store.Alarm) bool {
	causes := r.Causes
	if causes == nil {
		causes = []alarm.Cause{"failed", "lost", "skipped", "stopped", "late"}
	}
	return slices.Contains(causes, alarm.Cause(a.Cause)) && (r.Apps == nil || slices.Contains(r.Apps, a.App)) && (r.Jobs == nil || slices.Contains(r.Jobs, a.App+"/"+a.JobKey))
}

// happen inserts an alarm.
func (w *alarmWorld) happen() {
	job := int64(w.rnd.IntN(5))
	a := store.Alarm{
		ID: int64(len(w.all) + 1), JobID: job, App: fmt.Sprint("app-", job%2), JobKey: fmt.Sprint("key-", job), At: w.now, RunID: int64(len(w.all) + 1000),
		Cause: []string{"failed", "lost", "attempt", "skipped", "stopped", "late"}[w.rnd.IntN(6)],
	}
	w.all = append(w.all, a)
	if slices.ContainsFunc(w.rules, func(r alarm.Rule) bool { return wants(r, a) }) { // else no store has it
		w.open[a.ID] = a
	}
}

// step is a look of the loop. It returns when the book wants the next one.
func (w *alarmWorld) step() (next time.Time) {
	var list []store.Alarm
	for _, a := range w.open {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b store.Alarm) int { return cmp.Compare(a.ID, b.ID) })
	w.book.Take(list, func(ids []int64) (told []store.JobTold) {
		for _, t := range w.jobs {
			if slices.Contains(ids, t.JobID) {
				told = append(told, t)
			}
		}
		return told
	})
	due, next := w.book.Due(w.now, func(int) bool { return true }, func(id int64) store.Alarm { return w.open[id] })
	if !next.IsZero() && !next.After(w.now) {
		w.errorf("the next message is at %v, which is now", next)
	}
	for _, f := range due {
		w.depart(f)
	}
	w.book.Save(w.mark)
	return next
}

// depart checks a message that is sent.
func (w *alarmWorld) depart(f alarms.AlarmFlight) {
	key := fmt.Sprint(f.JobID, " ", f.Rule)
	r := w.rules[f.Rule]
	window := cmp.Or(r.Window, 5*time.Minute)
	if r.Window == -1 {
		window = 0
	}
	if last, ok := w.last[key]; ok && w.now.Sub(last) < window {
		w.errorf("%s tells of job %d %v after it did so last", r.Name, f.JobID, w.now.Sub(last))
	}
	for _, other := range w.flying {
		if other.JobID == f.JobID && other.Rule == f.Rule {
			w.errorf("%s tells of job %d twice at once", r.Name, f.JobID)
		}
	}
	newest := slices.Max(f.Rows)
	if f.Count != len(f.Rows) || r.Window == -1 && f.Count != 1 || f.ID != fmt.Sprintf("xxljob-%d-%s", newest, alarms.Key(r)) || len(f.Events) != min(10, f.Count) {
		w.errorf("message %s of %s counts %d alarms of %v, with %d events", f.ID, r.Name, f.Count, f.Rows, len(f.Events))
	}
	for i, e := range f.Events {
		of := w.all[slices.Sorted(slices.Values(f.Rows))[len(f.Rows)-1-i]-1]
		if e.RunID != of.RunID || e.Cause != alarm.Cause(of.Cause) || !e.At.Equal(of.At) {
			w.errorf("event %d of %s is of run %d, want %d", i, f.ID, e.RunID, of.RunID)
		}
	}
	if a := w.all[newest-1]; f.Cause != alarm.Cause(a.Cause) || !f.Last.Equal(a.At) || f.App != a.App || f.JobKey != a.JobKey || f.JobID != a.JobID {
		w.errorf("message %s says %+v, its newest alarm %+v", f.ID, f.Message, a)
	}
	w.flying = append(w.flying, f)
}

// land ends one of the messages that are on their way.
func (w *alarmWorld) land() {
	if len(w.flying) == 0 {
		return
	}
	i := w.rnd.IntN(len(w.flying))
	f := w.flying[i]
	w.flying = slices.Delete(w.flying, i, i+1)
	var err error
	if w.rnd.Float64() < w.fails {
		err = errors.New("not now")
	}
	for _, id := range f.Rows {
		key := fmt.Sprint(id, " ", f.Rule)
		if err != nil {
			w.tried[key]++
		} else {
			w.told[key]++
		}
	}
	if err == nil {
		w.count[f.Rule] += f.Count
		w.last[fmt.Sprint(f.JobID, " ", f.Rule)] = w.now
	}
	w.book.Sent(f, w.now, err)
}

// mark is what the store does.
func (w *alarmWorld) mark(m store.AlarmMarks) {
	for _, t := range m.Told {
		if a, ok := w.open[t.ID]; ok && !slices.Contains(a.Told, t.Rule) {
			a.Told, a.GaveUp = append(slices.Clone(a.Told), t.Rule), a.GaveUp || t.GaveUp
			w.open[t.ID] = a
			if slices.ContainsFunc(w.rules, func(r alarm.Rule) bool { return wants(r, a) && !slices.Contains(a.Told, alarms.Key(r)) }) {
				continue
			}
			delete(w.open, t.ID)
			status := store.AlarmSent
			if a.GaveUp {
				status = store.AlarmFailed
			}
			w.status[t.ID] = append(w.status[t.ID], status)
		}
	}
	for _, t := range m.Jobs {
		w.jobs[fmt.Sprint(t.JobID, t.Rule)] = t
	}
}

// live lets so many things happen, and then waits until all is over.
func (w *alarmWorld) live(n int) {
	w.book = alarms.NewAlarmBook(w.rules)
	var next time.Time
	for range n {
		w.now = w.now.Add(time.Duration(w.rnd.IntN(60_000)) * time.Millisecond)
		for range w.rnd.IntN(4) * w.rnd.IntN(8) {
			w.happen()
		}
		w.step()
		for range w.rnd.IntN(4) {
			w.land()
		}
		if w.restarts && w.rnd.IntN(20) == 0 {
			w.step() // what has landed is saved
			w.book, w.flying = alarms.NewAlarmBook(w.rules), nil
		}
	}
	for i := 0; i < 200_000 && (len(w.open) > 0 || len(w.flying) > 0); i++ {
		// When the book wants it, but a look a minute at least: that may be any time.
		w.now = w.now.Add(min(max(next.Sub(w.now), time.Second), time.Minute))
		next = w.step()
		for range len(w.flying) {
			w.land()
			next = w.now
		}
	}
	w.step()
}

// check compares who was told with who was to be.
func (w *alarmWorld) check(times func(n, tried int) bool) {
	wanted := map[int]int{}
	for _, a := range w.all {
		var status []int
		for i, r := range w.rules {
			key := fmt.Sprint(a.ID, " ", i)
			if !wants(r, a) {
				if w.told[key]+w.tried[key] > 0 {
					w.errorf("%s was told of %+v", r.Name, a)
				}
				continue
			}
			wanted[i]++
			status = []int{store.AlarmSent}
			if !times(w.told[key], w.tried[key]) {
				w.errorf("%s was told of alarm %d %d times, and could not be %d times", r.Name, a.ID, w.told[key], w.tried[key])
			}
		}
		if got := w.status[a.ID]; !slices.Equal(got, status) {
			w.errorf("alarm %d has ended with %v, want %d", a.ID, got, status)
		}
	}
	for i, n := range wanted {
		if w.count[i] != n && !w.restarts {
			w.errorf("the counts of %s add up to %d, want %d", w.rules[i].Name, w.count[i], n)
		}
	}
	if len(w.open) != 0 || w.book.Jobs() != 0 {
		w.errorf("%d alarms are open, and %d jobs in the book", len(w.open), w.book.Jobs())
	}
}

// TestAlarmBook: whatever happens in whatever order, each rule tells once of each alarm that it
// wants, not too often, and with counts that add up.
func TestAlarmBook(t *testing.T) {
	for seed := range uint64(8) {
		w := newAlarmWorld(t, seed)
		w.live(100)
		w.check(func(n, _ int) bool { return n == 1 })
	}
}

// TestAlarmBookWithErrors: the same where alarmers fail: what failed is told in the end, once.
func TestAlarmBookWithErrors(t *testing.T) {
	for seed := range uint64(8) {
		w := newAlarmWorld(t, seed)
		w.fails = 0.3
		w.live(100)
		w.check(func(n, _ int) bool { return n == 1 })
	}
}

// TestAlarmBookOfAnotherNode: with nodes that die while messages are on their way, each is told
// at least once, and the windows are those of the nodes before.
func TestAlarmBookOfAnotherNode(t *testing.T) {
	for seed := range uint64(8) {
		w := newAlarmWorld(t, seed)
		w.fails, w.restarts = 0.3, true
		w.live(200)
		w.check(func(n, _ int) bool { return n >= 1 })
	}
}

// oneAlarm is a world with one alarm, of a run that has failed, and rules with these names.
func oneAlarm(t *testing.T, names ...string) *alarmWorld {
	w := newAlarmWorld(t, 1)
	w.rules = nil
	for _, name := range names {
		w.rules = append(w.rules, alarm.Rule{Name: name})
	}
	w.book = alarms.NewAlarmBook(w.rules)
	w.happen()
	w.all[0].Cause = "failed"
	w.open[1] = w.all[0]
	return w
}

// TestAlarmBookGivesUp: a rule that fails for a day is given up, and the others are not touched.
func TestAlarmBookGivesUp(t *testing.T) {
	w := oneAlarm(t, "good", "bad")
	began, last, calls := w.now, w.now, 0
	for ; len(w.open) > 0 && w.now.Sub(began) < 48*time.Hour; w.now = w.now.Add(time.Second) {
		w.step()
		for _, f := range w.flying {
			var err error
			if f.Rule == 1 {
				if pause := w.now.Sub(last); calls > 0 && (pause > 10*time.Minute+time.Second || pause < time.Second) {
					w.errorf("call %d comes %v after the one before", calls, pause)
				}
				last, calls, err = w.now, calls+1, errors.New("never")
			}
			w.told[f.ID]++
			w.book.Sent(f, w.now, err)
		}
		w.flying = nil
	}
	if d := last.Sub(began); d < 24*time.Hour || d > 24*time.Hour+10*time.Minute || calls < 140 || calls > 170 {
		w.errorf("the last of %d calls came after %v, want it after a day", calls, d)
	}
	if w.told["xxljob-1-"+alarms.Key(w.rules[0])] != 1 || !slices.Equal(w.status[1], []int{store.AlarmFailed}) {
		w.errorf("the other rule was told %d times, the status is %v, want once and 3", w.told["xxljob-1-"+alarms.Key(w.rules[0])], w.status[1])
	}
}

// TestAlarmBookRemembersWhoGaveUp: an alarm that one rule has given up ends as one that could
// not be told, also where another node has seen that, and a rule that tells it last succeeds.
func TestAlarmBookRemembersWhoGaveUp(t *testing.T) {
	w := oneAlarm(t, "bad", "slow")
	for began := w.now; w.now.Sub(began) < 25*time.Hour; w.now = w.now.Add(time.Minute) {
		w.step()
		for _, f := range w.flying {
			if f.Rule == 0 {
				w.book.Sent(f, w.now, errors.New("never"))
			}
		}
		w.flying = slices.DeleteFunc(w.flying, func(f alarms.AlarmFlight) bool { return f.Rule == 0 })
	}
	w.book, w.flying = alarms.NewAlarmBook(w.rules), nil
	w.step()
	if len(w.flying) != 1 || w.flying[0].Rule != 1 {
		t.Fatalf("the next node sends %+v, want what the second rule has not told", w.flying)
	}
	w.land()
	w.step()
	if !slices.Equal(w.status[1], []int{store.AlarmFailed}) {
		t.Errorf("the alarm has ended with %v, want 3", w.status[1])
	}
}
