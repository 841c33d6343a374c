package xxljob_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/xxljobtest"
)

// Which instants a run stands for: those of its schedule, of the run that it repeats, or of the
// past time that it was asked for.

// taskBook keeps what handlers are told.
type taskBook struct {
	mu    sync.Mutex
	tasks []xxljob.Task
	err   error // what the handler returns
}

func (b *taskBook) handle(_ context.Context, k *xxljob.Task) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tasks = append(b.tasks, *k)
	return b.err
}

func (b *taskBook) last(t *testing.T) xxljob.Task {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.tasks) == 0 {
		t.Fatal("no handler was called")
	}
	return b.tasks[len(b.tasks)-1]
}

// again runs a run once more, and returns what its handler was told.
func (b *taskBook) again(t *testing.T, s *xxljobtest.Scheduler, id int64) (xxljob.Task, xxljob.Run) {
	t.Helper()
	id, err := s.Again(t.Context(), id)
	stage.Must(t, err)
	run := s.WaitRun(id)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.tasks { // its retry may have been called as well
		if k.RunID == id {
			return k, run
		}
	}
	t.Fatalf("no handler was called for run %d", id)
	return xxljob.Task{}, run
}

// "Run again" of January's close, pressed in February, closes January: also of its retry, and of a
// run that was one again. It is due, and started, when it is asked for.
func TestAgainKeepsTheInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &taskBook{err: errors.New("the ledger is down")}
		s := xxljobtest.NewWith(t, xxljobtest.Options{Handlers: map[string]xxljob.Handler{"close": b.handle}},
			xxljob.Job{Key: "c", Name: "c", Handler: "close", Retries: 1, Schedule: xxljob.Cron("0 30 23 L * ?").In("America/New_York")})
		time.Sleep(33 * 24 * time.Hour)
		first := slices.DeleteFunc(s.Runs("c"), func(r xxljob.Run) bool { return r.Instant().Month() != time.February })
		if len(first) != 2 {
			t.Fatalf("runs of January's close: %+v", first)
		}
		var key string
		for _, r := range first {
			asked := time.Now()
			k, run := b.again(t, s, r.ID)
			if got := k.ScheduledAt.Format("2006-01-02 15:04"); got != "2000-01-31 23:30" || !k.BusinessTime.Equal(k.ScheduledAt) || k.Count != 0 {
				t.Errorf("again of attempt %d is told %s, %+v", r.Attempt, got, k)
			}
			if key == "" {
				key = k.Key()
			}
			if k.Key() != key {
				t.Errorf("keys %s and %s", key, k.Key())
			}
			if run.Scheduled.Before(asked) || run.Lateness() > time.Second || !run.Instant().Equal(k.ScheduledAt) {
				t.Errorf("due %v, asked for at %v, late by %v", run.Scheduled, asked, run.Lateness())
			}
			time.Sleep(time.Minute) // and its retry
			if k := b.last(t); k.Attempt != 1 || k.Key() != key {
				t.Errorf("its retry is told %+v", k)
			}
			b.err = nil
			if k, _ := b.again(t, s, run.ID); k.Key() != key {
				t.Errorf("again of again is told %s", k.Key())
			}
			b.err = errors.New("it is down again")
		}
	})
}

// A part of a broadcast that is run again is that part, for the instant of the whole.
func TestAgainOfAPartKeepsTheInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &taskBook{}
		s := xxljobtest.NewWith(t, xxljobtest.Options{Handlers: map[string]xxljob.Handler{"h": b.handle}},
			xxljob.Job{Key: "j", Name: "j", Handler: "h", Route: "SHARDING_BROADCAST", Schedule: xxljob.Crontab("0 1 * * *")})
		time.Sleep(20 * time.Hour)
		k, _ := b.again(t, s, s.Runs("j")[0].ID)
		if k.Key() != "test/j 2000-01-01T01:00:00.000Z" || k.ShardTotal != 1 {
			t.Errorf("told %s, part %d of %d", k.Key(), k.ShardIndex, k.ShardTotal)
		}
	})
}

// A run that makes up for several instants makes up for the same ones again, and so does one that
// repeats the record of instants which nobody has run.
func TestAgainOfSeveralInstants(t *testing.T) {
	for _, misfire := range []xxljob.Misfire{xxljob.MisfireFireOnceNow, xxljob.MisfireDoNothing} {
		synctest.Test(t, func(t *testing.T) {
			st, b := memory.New(), &taskBook{}
			o := xxljobtest.Options{Store: st, Handlers: map[string]xxljob.Handler{"h": b.handle}}
			job := xxljob.Job{Key: "j", Name: "j", Handler: "h", Misfire: misfire, Schedule: xxljob.Cron("0 0 6 1 * ?")}
			s := xxljobtest.NewWith(t, o, job)
			time.Sleep(time.Hour)
			stage.Must(t, s.Stop(t.Context()))
			time.Sleep(100 * 24 * time.Hour)
			s = xxljobtest.NewWith(t, o)
			time.Sleep(time.Hour)
			k, run := b.again(t, s, s.Runs("j")[0].ID)
			if k.Count != 4 || k.First.Format("01-02") != "01-01" || k.Last.Format("01-02") != "04-01" || !run.BusinessTime().Equal(k.First) {
				t.Errorf("%s: told %+v", misfire, k)
			}
			if run.Lateness() > time.Second {
				t.Errorf("%s: late by %v", misfire, run.Lateness())
			}
		})
	}
}

// written are instants in words.
func written(list []time.Time) string {
	var words []string
	for _, at := range list {
		words = append(words, at.Format("01-02 15:04"))
	}
	return strings.Join(words, ", ")
}

// askingBook keeps what handlers ask about instants.
type askingBook struct {
	taskBook
	instants, previous []string
}

func (b *askingBook) handle(ctx context.Context, k *xxljob.Task) error {
	b.mu.Lock()
	b.instants = append(b.instants, written(k.Instants()))
	if at := k.Previous(); !at.IsZero() {
		b.previous = append(b.previous, written([]time.Time{at}))
	} else {
		b.previous = append(b.previous, "none")
	}
	b.mu.Unlock()
	return b.taskBook.handle(ctx, k)
}

// asked is how many handlers have asked so far.
func (b *askingBook) asked() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.instants)
}

// The scheduler was down over three month ends. One run makes up for all of them, and its handler
// finds the months; so do its retry, and a run that repeats it.
func TestHandlerFindsTheMissedInstants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, b := memory.New(), &askingBook{}
		b.err = errors.New("no")
		o := xxljobtest.Options{Store: st, Handlers: map[string]xxljob.Handler{"m": b.handle}}
		job := xxljob.Job{Key: "m", Name: "M", Handler: "m", Misfire: xxljob.MisfireFireOnceNow, Retries: 1, Schedule: xxljob.Cron("0 0 6 1 * ?").In("America/New_York")}
		s := xxljobtest.NewWith(t, o, job)
		time.Sleep(24 * time.Hour)
		stage.Must(t, s.Stop(t.Context()))
		time.Sleep(100 * 24 * time.Hour) // the clocks have changed meanwhile
		s = xxljobtest.NewWith(t, o)
		time.Sleep(24 * time.Hour)
		for b.asked() < 4 { // the ordinary run of 1 January, and its retry, come first
			time.Sleep(time.Hour)
		}
		b.again(t, s, s.Runs("m")[2].ID)
		time.Sleep(time.Hour) // and its retry
		synctest.Wait()
		const all = "02-01 06:00, 03-01 06:00, 04-01 06:00"
		if want := []string{"01-01 06:00", "01-01 06:00", all, all, all, all}; !slices.Equal(b.instants, want) {
			t.Errorf("instants %q, want %q", b.instants, want)
		}
		if want := []string{"12-01 06:00", "12-01 06:00", "01-01 06:00", "01-01 06:00", "01-01 06:00", "01-01 06:00"}; !slices.Equal(b.previous, want) {
			t.Errorf("the instants before %q, want %q", b.previous, want)
		}
		j, err := s.Store.JobByKey(t.Context(), "test", "m")
		stage.Must(t, err)
		j.Schedule = xxljob.Cron("0 0 6 15 * ?").In("America/New_York")
		_, err = s.UpdateJob(t.Context(), j)
		stage.Must(t, err)
		b.again(t, s, s.Runs("m")[2].ID)
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := b.instants[len(b.instants)-1]; got != "02-01 06:00, 04-01 06:00" {
			t.Errorf("behind an edit of the schedule: %s, want the first and the last", got)
		}
		if k := b.last(t); k.Count != 3 {
			t.Errorf("and their number is %d", k.Count)
		}
	})
}

// An edit behind a run that makes up for several instants, by which as many lie between the same ends,
// shows in nothing that the row says: a retry is told those of the schedule as it is now, and its own
// First, Last and Count.
func TestInstantsBehindAnEditThatKeepsTheirEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, b := memory.New(), &askingBook{}
		b.err = errors.New("no")
		o := xxljobtest.Options{Store: st, Handlers: map[string]xxljob.Handler{"m": b.handle}}
		job := xxljob.Job{Key: "m", Name: "M", Handler: "m", Misfire: xxljob.MisfireFireOnceNow, Retries: 1,
			RetryBackoff: xxljob.Backoff{First: time.Hour}, Schedule: xxljob.Cron("0 0,20,50 6 2 1 ?")}
		s := xxljobtest.NewWith(t, o, job)
		time.Sleep(time.Hour)
		stage.Must(t, s.Stop(t.Context()))
		time.Sleep(48 * time.Hour)
		s = xxljobtest.NewWith(t, o)
		time.Sleep(time.Minute)
		j, err := s.Store.JobByKey(t.Context(), "test", "m")
		stage.Must(t, err)
		j.Schedule = xxljob.Cron("0 0,30,50 6 2 1 ?")
		_, err = s.UpdateJob(t.Context(), j)
		stage.Must(t, err)
		time.Sleep(2 * time.Hour)
		stage.Must(t, s.Stop(t.Context()))
		k := b.last(t)
		b.mu.Lock()
		defer b.mu.Unlock()
		if want := []string{"01-02 06:00, 01-02 06:20, 01-02 06:50", "01-02 06:00, 01-02 06:30, 01-02 06:50"}; !slices.Equal(b.instants, want) {
			t.Errorf("instants %q, want %q", b.instants, want)
		}
		if k.Count != 3 || !k.First.Equal(k.Instants()[0]) || !k.Last.Equal(k.Instants()[2]) {
			t.Errorf("told %v to %v, %d", k.First, k.Last, k.Count)
		}
	})
}

// Of very many instants the first thousand are told.
func TestHandlerFindsAThousandInstants(t *testing.T) {
	for _, schedule := range []xxljob.Schedule{xxljob.Cron("* * * * * ?"), xxljob.FixedRate(time.Second)} {
		synctest.Test(t, func(t *testing.T) {
			st, b := memory.New(), &taskBook{}
			var lists [][]time.Time
			o := xxljobtest.Options{Store: st, Handlers: map[string]xxljob.Handler{"h": func(ctx context.Context, k *xxljob.Task) error {
				if k.Count > 0 {
					lists = append(lists, k.Instants())
				}
				return b.handle(ctx, k)
			}}}
			s := xxljobtest.NewWith(t, o, xxljob.Job{Key: "j", Name: "j", Handler: "h", Misfire: xxljob.MisfireFireOnceNow, Schedule: schedule})
			time.Sleep(time.Minute)
			stage.Must(t, s.Stop(t.Context()))
			time.Sleep(time.Hour)
			xxljobtest.NewWith(t, o)
			time.Sleep(time.Second)
			synctest.Wait()
			if len(lists) != 1 || len(lists[0]) != 1000 {
				t.Fatalf("%d lists", len(lists))
			}
			for i, at := range lists[0] {
				if want := lists[0][0].Add(time.Duration(i) * time.Second); !at.Equal(want) {
					t.Fatalf("instant %d is %v, want %v", i, at, want)
				}
			}
		})
	}
}

// The instant before is that of the schedule within its bounds; what has no schedule has none.
func TestPreviousInstant(t *testing.T) {
	at := func(h, m int) time.Time { return time.Date(2000, 1, 1, h, m, 0, 0, time.UTC) }
	daily := xxljob.Crontab("0 6 * * *").In("Asia/Tokyo")
	for _, tt := range []struct {
		name    string
		job     xxljob.Job
		trigger *xxljob.Trigger // behind thirty hours
		want    string
	}{
		{"each day", xxljob.Job{Schedule: daily}, nil, "01-01 06:00"},
		{"the first within its bounds", xxljob.Job{Schedule: daily, NotBefore: at(20, 0), NotAfter: at(22, 0)}, nil, "none"},
		{"a rate", xxljob.Job{Schedule: xxljob.FixedRate(29 * time.Hour)}, nil, "01-01 00:00"},
		{"a delay", xxljob.Job{Schedule: xxljob.FixedDelay(29 * time.Hour)}, nil, "none"},
		{"once", xxljob.Job{Schedule: xxljob.At(at(20, 0))}, nil, "none"},
		{"a trigger of a job with a schedule", xxljob.Job{Schedule: daily}, &xxljob.Trigger{}, "01-02 06:00"},
		{"a trigger for a past time", xxljob.Job{Schedule: daily}, &xxljob.Trigger{At: time.Date(1999, 7, 7, 0, 0, 0, 0, time.UTC)}, "07-07 06:00"},
		{"a trigger of a rate", xxljob.Job{Schedule: xxljob.FixedRate(20 * time.Hour)}, &xxljob.Trigger{}, "01-01 20:00"},
		{"a trigger behind the end", xxljob.Job{Schedule: daily, NotAfter: at(22, 0)}, &xxljob.Trigger{}, "01-02 06:00"},
		{"a trigger behind the only one", xxljob.Job{Schedule: xxljob.At(at(20, 0))}, &xxljob.Trigger{}, "01-01 20:00"},
		{"a job without a schedule", xxljob.Job{}, &xxljob.Trigger{}, "none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &askingBook{}
				tt.job.Key, tt.job.Name, tt.job.Handler = "j", "j", "h"
				s := xxljobtest.NewWith(t, xxljobtest.Options{Handlers: map[string]xxljob.Handler{"h": b.handle}}, tt.job)
				time.Sleep(30 * time.Hour)
				if tt.trigger != nil {
					ids, err := s.TriggerJob(t.Context(), "", "j", *tt.trigger)
					stage.Must(t, err)
					s.WaitRun(ids[0])
				}
				synctest.Wait()
				if n := len(b.previous); n == 0 || b.previous[n-1] != tt.want {
					t.Errorf("before %s came %q, want %s", b.instants, b.previous, tt.want)
				}
			})
		})
	}
	k := xxljob.Task{ScheduledAt: at(6, 0)}
	if list := k.Instants(); len(list) != 1 || !list[0].Equal(at(6, 0)) || !k.Previous().IsZero() {
		t.Errorf("a literal: %v, %v", list, k.Previous())
	}
}

// A job behind others is about the same window again, and what its success leads to is too.
func TestAgainKnowsItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, child := &taskBook{err: errors.New("no")}, &taskBook{}
		ok := func(context.Context, *xxljob.Task) error { return nil }
		s := xxljobtest.NewWith(t, xxljobtest.Options{Handlers: map[string]xxljob.Handler{"ok": ok, "report": b.handle, "child": child.handle}},
			xxljob.Job{Key: "a", Name: "a", Handler: "ok", Schedule: xxljob.Crontab("0 22 * * *")},
			xxljob.Job{Key: "b", Name: "b", Handler: "ok", Schedule: xxljob.Crontab("0 23 * * *")},
			xxljob.Job{Key: "child", Name: "child", Handler: "child", AfterKeys: []string{"test/report"}},
			xxljob.Job{Key: "report", Name: "report", Handler: "report", AfterKeys: []string{"test/a", "test/b"}})
		time.Sleep(30 * time.Hour)
		first := b.last(t)
		time.Sleep(10 * time.Hour)
		b.err = nil
		k, run := b.again(t, s, s.Runs("report")[0].ID)
		if k.Window == nil || *k.Window != *first.Window || !k.BusinessTime.Equal(first.BusinessTime) || k.Key() != first.Key() || !run.BusinessTime().Equal(first.BusinessTime) {
			t.Errorf("told %+v, and the first time %+v", k, first)
		}
		time.Sleep(time.Minute)
		if c := child.last(t); !c.BusinessTime.Equal(first.BusinessTime) {
			t.Errorf("the child is about %v", c.BusinessTime)
		}
	})
}

// A job behind others is told the beginning of its window as its instant, in the zone of its windows:
// also at a second attempt, and when the run is asked for again. It is due when the window is complete.
func TestJoinStandsForItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &taskBook{err: errors.New("no")}
		long := func(context.Context, *xxljob.Task) error { time.Sleep(3 * time.Hour); return nil }
		s := xxljobtest.NewWith(t, xxljobtest.Options{Handlers: map[string]xxljob.Handler{"long": long, "report": b.handle}},
			xxljob.Job{Key: "a", Name: "a", Handler: "long", Schedule: xxljob.Crontab("0 22 * * *").In("Asia/Shanghai")},
			xxljob.Job{Key: "b", Name: "b", Handler: "long", Schedule: xxljob.Crontab("0 23 * * *").In("Asia/Shanghai")},
			xxljob.Job{Key: "report", Name: "report", Handler: "report", AfterKeys: []string{"test/a", "test/b"}, AfterZone: "Asia/Shanghai", Retries: 1})
		time.Sleep(20 * time.Hour)
		runs := s.Runs("report")
		b.again(t, s, runs[0].ID)
		time.Sleep(time.Hour)
		s.Stop(t.Context())
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(runs) != 2 || len(b.tasks) != 4 {
			t.Fatalf("%d runs, %d calls", len(runs), len(b.tasks))
		}
		begins := time.Date(2000, 1, 1, 0, 0, 0, 0, b.tasks[0].ScheduledAt.Location())
		for _, k := range b.tasks {
			if got := k.ScheduledAt; !got.Equal(begins) || k.Zone != "Asia/Shanghai" || k.Window == nil || !k.Window.Start.Equal(got) || !k.BusinessTime.Equal(got) || k.Key() != b.tasks[0].Key() {
				t.Errorf("told %v in %s, the business time %v, the window %v and the key %s; its window begins at %v", got, k.Zone, k.BusinessTime, k.Window, k.Key(), begins)
			}
		}
		for _, r := range runs {
			if complete := begins.Add(26 * time.Hour); !r.Instant().Equal(begins) || !r.Due().Equal(complete) {
				t.Errorf("run %d stands for %v and is due at %v; the window was complete at %v", r.ID, r.Instant(), r.Due(), complete)
			}
		}
	})
}

// A run of a job behind others that somebody has asked for is told the window that it is about: that of
// now, or of the past instant that it was asked for, in the zone of its windows; its retry is, and one
// that repeats it. So is a run that the job's own schedule has made.
func TestTriggerKnowsItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &taskBook{err: errors.New("no")}
		ok := func(context.Context, *xxljob.Task) error { return nil }
		s := xxljobtest.NewWith(t, xxljobtest.Options{Handlers: map[string]xxljob.Handler{"ok": ok, "report": b.handle}},
			xxljob.Job{Key: "a", Name: "a", Handler: "ok", Schedule: xxljob.Crontab("0 22 * * *")},
			xxljob.Job{Key: "report", Name: "report", Handler: "report", AfterKeys: []string{"test/a"}, AfterZone: "Asia/Shanghai", Retries: 1},
			xxljob.Job{Key: "nightly", Name: "nightly", Handler: "report", AfterKeys: []string{"test/a"}, AfterZone: "Asia/Shanghai", Schedule: xxljob.Crontab("30 3 * * *")})
		shanghai, err := time.LoadLocation("Asia/Shanghai")
		stage.Must(t, err)
		require := func(what string, k xxljob.Task, day time.Time) {
			t.Helper()
			if k.Window == nil || !k.Window.Start.Equal(day) || !k.Window.End.Equal(day.AddDate(0, 0, 1)) || k.Window.Start.Location().String() != "Asia/Shanghai" {
				t.Errorf("%s is told the window %v, want that of %v", what, k.Window, day)
			}
		}
		time.Sleep(4 * time.Hour)
		require("a run of its schedule", b.last(t), time.Date(2000, 1, 1, 0, 0, 0, 0, shanghai))
		time.Sleep(14 * time.Hour) // it is the second of January there
		for _, tt := range []struct {
			what string
			at   time.Time
			day  time.Time
		}{
			{"by hand", time.Time{}, time.Date(2000, 1, 2, 0, 0, 0, 0, shanghai)},
			{"for a past day", time.Date(1999, 12, 30, 20, 0, 0, 0, time.UTC), time.Date(1999, 12, 31, 0, 0, 0, 0, shanghai)},
		} {
			ids, err := s.TriggerJob(t.Context(), "", "report", xxljob.Trigger{At: tt.at})
			stage.Must(t, err)
			s.WaitRun(ids[0])
			first := b.last(t)
			require(tt.what, first, tt.day)
			if !first.BusinessTime.Equal(first.ScheduledAt) || !tt.at.IsZero() && !first.BusinessTime.Equal(tt.at) {
				t.Errorf("%s is about %v, and stands for %v", tt.what, first.BusinessTime, first.ScheduledAt)
			}
			time.Sleep(time.Minute)
			retry := b.last(t)
			if retry.Attempt != 1 || retry.TriggerID != first.RunID {
				t.Errorf("told %+v as the retry", retry)
			}
			require("the retry of one "+tt.what, retry, tt.day)
			time.Sleep(24 * time.Hour)
			k, _ := b.again(t, s, first.RunID)
			require("one again that was "+tt.what, k, tt.day)
			time.Sleep(time.Minute)
			require("its retry", b.last(t), tt.day)
		}
	})
}

// A trigger for a past instant starts now, and stands for that instant, in the zone of the job as its
// clocks showed it then.
func TestTriggerForAPastInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &taskBook{}
		s := xxljobtest.NewWith(t, xxljobtest.Options{Handlers: map[string]xxljob.Handler{"h": b.handle}},
			xxljob.Job{Key: "j", Name: "j", Handler: "h", Retries: 1, Schedule: xxljob.Cron("0 0 0 1 1 ?").In("America/New_York")})
		time.Sleep(20 * 24 * time.Hour)
		for _, at := range []time.Time{
			time.Now().Add(-7 * 24 * time.Hour), time.Now().Add(-time.Millisecond),
			time.Date(1999, 7, 1, 16, 0, 0, 0, time.UTC), // summer time
			time.Date(1970, 1, 1, 0, 0, 0, 1e6, time.UTC),
		} {
			asked := time.Now()
			ids, err := s.TriggerJob(t.Context(), "", "j", xxljob.Trigger{At: at})
			stage.Must(t, err)
			run := s.WaitRun(ids[0])
			if k := b.last(t); !k.ScheduledAt.Equal(at) || k.Zone != "America/New_York" || !k.BusinessTime.Equal(at) {
				t.Errorf("for %v the handler is told %+v", at, k)
			}
			if !run.Instant().Equal(at) || run.Scheduled.Before(asked) || run.Lateness() > time.Second {
				t.Errorf("for %v: due %v, stands for %v, late by %v", at, run.Scheduled, run.Instant(), run.Lateness())
			}
			if at.Month() == time.July && b.last(t).ScheduledAt.Hour() != 12 {
				t.Errorf("told %v", b.last(t).ScheduledAt)
			}
		}
		b.err = errors.New("no")
		at := time.Now().Add(-time.Hour)
		ids, err := s.TriggerJob(t.Context(), "", "j", xxljob.Trigger{At: at})
		stage.Must(t, err)
		s.WaitRun(ids[0])
		time.Sleep(time.Minute)
		if k := b.last(t); k.Attempt != 1 || !k.ScheduledAt.Equal(at) {
			t.Errorf("the retry is told %+v", k)
		}
	})
}

// Times that no run can stand for, or be due at, are refused in words wherever a trigger is given.
func TestTriggerForNoInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := xxljobtest.NewWith(t, xxljobtest.Options{}, xxljob.Job{Key: "j", Name: "j", Handler: "h"})
		job, err := s.Store.JobByKey(t.Context(), "test", "j")
		stage.Must(t, err)
		for _, tt := range []struct {
			at   time.Time
			want string
		}{
			{time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC), "want a time after the beginning of 1970"},
			{time.UnixMilli(0), "want a time after the beginning of 1970"},
			{time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC), "want a time after the beginning of 1970"},
			{time.Date(-1000, 1, 1, 0, 0, 0, 0, time.UTC), "want a time after the beginning of 1970"},
			{time.Date(2059, 1, 1, 0, 0, 0, 0, time.UTC), "want a time before the year 2059"},
			{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "want a time before the year 2059"},
		} {
			trigger := xxljob.Trigger{At: tt.at}
			_, err1 := s.Trigger(t.Context(), job.ID, trigger)
			_, err2 := s.TriggerJob(t.Context(), "", "j", trigger)
			_, err3 := s.TriggerOne(t.Context(), job.ID, trigger)
			for _, err := range []error{err1, err2, err3} {
				var field *xxljob.FieldError
				if !errors.As(err, &field) || field.Field != "At" || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("at %v: %v", tt.at, err)
				}
			}
		}
		if runs := s.Runs("j"); len(runs) != 0 {
			t.Errorf("runs %+v", runs)
		}
	})
}

// A job that owes a run for each month has one for each that was missed, and each is told its own.
func TestEveryMissedInstantIsCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, b := memory.New(), &askingBook{}
		o := xxljobtest.Options{Store: st, Handlers: map[string]xxljob.Handler{"m": b.handle}}
		job := xxljob.Job{Key: "m", Name: "M", Handler: "m", CatchUp: xxljob.CatchUpEveryMissed, CatchUpMost: 3, Schedule: xxljob.Cron("0 0 6 1 * ?").In("America/New_York")}
		s := xxljobtest.NewWith(t, o, job)
		time.Sleep(24 * time.Hour)
		stage.Must(t, s.Stop(t.Context()))
		time.Sleep(130 * 24 * time.Hour)
		s = xxljobtest.NewWith(t, o)
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []string{"01-01 06:00", "03-01 06:00", "04-01 06:00", "05-01 06:00"}; !slices.Equal(b.instants, want) {
			t.Errorf("instants %q, want %q", b.instants, want)
		}
		if want := []string{"12-01 06:00", "02-01 06:00", "03-01 06:00", "04-01 06:00"}; !slices.Equal(b.previous, want) {
			t.Errorf("the instants before %q, want %q", b.previous, want)
		}
		skipped := slices.DeleteFunc(s.Runs("m"), func(r xxljob.Run) bool { return r.State != xxljob.StateSkipped })
		if len(skipped) != 1 || skipped[0].Count != 1 || skipped[0].Reason != xxljob.ReasonMisfire || skipped[0].First.Month() != time.February {
			t.Errorf("the record of what is over the number: %+v", skipped)
		}
	})
}
