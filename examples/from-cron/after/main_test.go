package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/examples/from-cron/internal/begun"
	"github.com/xxljob/xxljob/store/memory"
)

func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) } // each panic is logged with its stack

// TestDays: the jobs begin when they did before.
func TestDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book begun.Book
		s, st := book.Shop(4*time.Second), memory.New()
		begun.Until(begun.Monday)
		begun.For(t, 25*time.Hour-time.Second, func(ctx context.Context) error { return run(ctx, st, s) })
		book.Check(t, 25*time.Hour-time.Second)
		wantStates(t, st, "report", map[xxljob.State]int{xxljob.StateSucceeded: 2})
	})
}

// TestRecord: what cron only prints, or does not know, is there to read.
func TestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book begun.Book
		s, st := book.Shop(4*time.Second), memory.New()
		begun.Until(begun.Monday)
		begun.For(t, 65*time.Second, func(ctx context.Context) error { return run(ctx, st, s) })
		wantStates(t, st, "prices", map[xxljob.State]int{xxljob.StateSucceeded: 3, xxljob.StateDiscarded: 3})
		wantStates(t, st, "import", map[xxljob.State]int{xxljob.StateFailed: 2})
		for _, r := range runsOf(t, st, "import") {
			if r.Err() == nil || !strings.Contains(r.Err().Error(), "there is a bug") {
				t.Errorf("import: %v", r.Err())
			}
		}
	})
}

// TestDelayed: what is too slow for its period runs back to back, as with
// DelayIfStillRunning. What still waits when the service stops does not hold it up: it is in
// the store, and runs after the restart.
func TestDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book begun.Book
		s, st := book.Shop(11*time.Second), memory.New()
		service := func(ctx context.Context) error { return run(ctx, st, s) }
		begun.Until(begun.Monday)
		begun.For(t, 61*time.Second, service)
		var want []time.Time
		for at := 10 * time.Second; at < time.Minute; at += 11 * time.Second {
			want = append(want, begun.Monday.Add(at))
		}
		book.Want(t, "invoices", want)
		s.InvoicesTake = 0
		begun.For(t, time.Second, service)
		if n := book.Ended("invoices"); n != 6 {
			t.Errorf("%d invoices were written after the restart, 6 were due", n)
		}
	})
}

// TestRestart: what was due while the service was down is made up for, once
// (MisfireFireOnceNow), where cron forgets it.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book begun.Book
		s, st := book.Shop(4*time.Second), memory.New()
		service := func(ctx context.Context) error { return run(ctx, st, s) }
		begun.Until(begun.Monday)
		begun.For(t, 59*time.Second, service)
		back := begun.Monday.Add(time.Hour)
		begun.Until(back)
		begun.For(t, 59*time.Second, service)
		if got := book.Begun("report"); len(got) != 1 || got[0].Before(back) || got[0].After(back.Add(time.Minute)) {
			t.Errorf("the report began at %v", got)
		}
		// The others, whose next instant will do, have a record of what was missed.
		wantStates(t, st, "clean-up", map[xxljob.State]int{xxljob.StateSucceeded: 3 + 4, xxljob.StateSkipped: 1})
	})
}

// TestReplicas: two replicas run everything once between them.
func TestReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book begun.Book
		s, st := book.Shop(4*time.Second), memory.New()
		begun.Until(begun.Monday)
		for range 2 {
			go begun.For(t, time.Hour-time.Second, func(ctx context.Context) error { return run(ctx, st, s) })
		}
		time.Sleep(2 * time.Hour)
		book.Want(t, "report", []time.Time{begun.Monday.Add(30 * time.Minute)})
		if n := book.Ended("poll"); n != 719 {
			t.Errorf("asked for orders %d times", n)
		}
	})
}

// TestNext: what Entry(id).Next was.
func TestNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book begun.Book
		s, err := schedule(t.Context(), memory.New(), book.Shop(0))
		if err != nil {
			t.Fatal(err)
		}
		begun.Until(begun.Monday)
		jobs, err := s.EnsureJobs(t.Context(), "", []xxljob.Job{{Key: "report", Name: "Report", Handler: "report", Schedule: xxljob.Crontab("30 4 * * 1-5")}}, xxljob.EnsureOptions{})
		if err != nil {
			t.Fatal(err)
		}
		next, err := s.NextFire(t.Context(), jobs[0].Job.ID)
		if err != nil || !next.Equal(begun.Monday.Add(30*time.Minute)) {
			t.Errorf("the report is next at %v, %v", next, err)
		}
	})
}

// TestExpressions: where a crontab means the same, and where it does not. The README lists
// the latter.
func TestExpressions(t *testing.T) {
	from, end := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for expr, apart := range map[string]string{ // the first instant that only one of the two has
		"*/7 * * * *":        "",
		"30 4 * * 1-5":       "",
		"0 0 13 * 5":         "", // either field, in both
		"15 */3 * * *":       "",
		"5/15 * * * *":       "",
		"0 9-17 * * MON-FRI": "",
		"@weekly":            "",
		"@midnight":          "",
		"0 0 */2 * 1":        "2026-01-02T23:00:00Z", // a step of a star restricts nothing here, as in Unix's cron
		"30 2 * * *":         "2026-03-29T01:00:00Z", // in the gap: here it runs at the gap's end
	} {
		theirs, err := cron.ParseStandard("CRON_TZ=Europe/Berlin " + expr)
		if err != nil {
			t.Fatal(err)
		}
		ours := xxljob.Crontab(expr).In("Europe/Berlin")
		got := ""
		for at := from; at.Before(end); {
			a, b := theirs.Next(at), at
			if b, err = ours.Next(at); err != nil {
				t.Fatal(err)
			}
			if !a.Equal(b) {
				if got = a.UTC().Format(time.RFC3339); b.Before(a) {
					got = b.Format(time.RFC3339)
				}
				break
			}
			at = a
		}
		if got != apart {
			t.Errorf("%s: apart from %q on, want %q", expr, got, apart)
		}
	}
	for expr, want := range map[string]string{
		"@every 15s":                   "FixedRate(15*time.Second)",
		"CRON_TZ=Asia/Tokyo 0 6 * * *": `.In("Asia/Tokyo")`,
		"0 12 ? * 1":                   "write *",
	} {
		if _, err := xxljob.Crontab(expr).Next(from); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", expr, err, want)
		}
	}
}

// runsOf are the runs of a job.
func runsOf(t *testing.T, st xxljob.Store, key string) []xxljob.Run {
	t.Helper()
	jobs, err := st.Jobs(t.Context(), xxljob.JobFilter{App: "shop", Keys: []string{key}})
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%d jobs %s: %v", len(jobs), key, err)
	}
	runs, err := st.Runs(t.Context(), xxljob.RunFilter{JobID: jobs[0].ID})
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// wantStates wants a job to have so many ended runs of each state, and of no other.
func wantStates(t *testing.T, st xxljob.Store, key string, want map[xxljob.State]int) {
	t.Helper()
	got := map[xxljob.State]int{}
	for _, r := range runsOf(t, st, key) {
		if r.State.Ended() {
			got[r.State]++
		}
	}
	for state := range got {
		if want[state] == 0 {
			t.Errorf("%s: %d runs %v", key, got[state], state)
		}
	}
	for state, n := range want {
		if got[state] != n {
			t.Errorf("%s: %d runs %v, want %d", key, got[state], state, n)
		}
	}
}
