package executor_test

import (
	"context"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// daysIn lists the directories of a log directory.
func daysIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range entries {
		names = append(names, d.Name())
	}
	return names
}

// logging is an executor whose handler "h" logs one line.
func logging(t *testing.T, dir string, retention int) *executor.Executor {
	t.Helper()
	e, _ := open(t, executor.Config{Log: executor.LogConfig{Dir: dir, RetentionDays: retention}})
	handle(t, e, "h", func(_ context.Context, task *executor.Task) error { task.Log().Info("x"); return nil })
	return e
}

// Whoever triggers a run chooses its date, and must not choose a directory by it that the
// retention does not reach: neither by one date nor by many.
func TestLogDatesOfTheWireNameNoDirectories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins on 2000-01-01 00:00 UTC
		dir := t.TempDir()
		e := logging(t, dir, 30)
		now := time.Now()
		dates := []int64{math.MinInt64, -1, 1, math.MaxInt64, time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()}
		for _, year := range []int{1970, 1999, 2001, 2038, 9999, 10000} {
			for month := range 12 {
				dates = append(dates, time.Date(year, time.Month(1+month), 2, 3, 4, 5, 6e6, time.UTC).UnixMilli())
			}
		}
		for _, off := range []time.Duration{48*time.Hour + time.Millisecond, 72 * time.Hour} {
			dates = append(dates, now.Add(off).UnixMilli(), now.Add(-off).UnixMilli())
		}
		for i, date := range dates {
			r := req(int64(i), 1000+int64(i))
			r.LogDateTime = date
			mustSend(t, e, r)
		}
		synctest.Wait()
		if got, want := daysIn(t, dir), []string{"1999-12-30", "2000-01-01", "2000-01-03"}; !slices.Equal(got, want) {
			t.Errorf("%d dates made %d directories, the last of %s; want %q", len(dates), len(got), got[len(got)-1], want)
		}
		// Each is found by its own date, as it came, at once and by a later process, and by
		// those who ask for whole seconds.
		later := logging(t, dir, 30)
		for i, date := range dates {
			id := 1000 + int64(i)
			for who, e := range map[string]*executor.Executor{"the same process": e, "a later process": later} {
				for _, asked := range []int64{date, wholeSecond(date)} {
					if got := readLog(t, e, wire.LogRequest{LogID: id, LogDateTim: asked}); got.ToLineNum != 1 {
						t.Errorf("date %d, asked for by %d of %s: %+v", date, asked, who, got)
					}
				}
			}
		}
		// After the retention nothing of all that is left.
		time.Sleep(34 * 24 * time.Hour)
		mustSend(t, e, req(1, 1))
		synctest.Wait()
		if got, want := daysIn(t, dir), []string{"2000-02-04"}; !slices.Equal(got, want) {
			t.Errorf("after the retention there are %q, want %q", got, want)
		}
	})
}

// wholeSecond is a date as a Java admin asks for it, but for those that it cannot have.
func wholeSecond(ms int64) int64 {
	if ms < 1000 {
		return ms
	}
	return ms - ms%1000
}

// A file is in the directory of its run's own date as long as the clocks of admin and
// executor are less than two days apart.
func TestLogDatesOfHonestClocks(t *testing.T) {
	for _, off := range []time.Duration{-48 * time.Hour, -time.Hour, 0, time.Hour, 48 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(12 * time.Hour)
			dir := t.TempDir()
			e := logging(t, dir, 30)
			at := time.Now().Add(off)
			r := req(1, 1)
			r.LogDateTime = at.UnixMilli()
			mustSend(t, e, r)
			synctest.Wait()
			if got, want := daysIn(t, dir), []string{at.UTC().Format(time.DateOnly)}; !slices.Equal(got, want) {
				t.Errorf("%v: directories are %q, want %q", off, got, want)
			}
			// Whenever it is asked for while it is kept.
			time.Sleep(20 * 24 * time.Hour)
			if got := readLog(t, e, wire.LogRequest{LogID: 1, LogDateTim: at.UnixMilli()}); got.ToLineNum != 1 {
				t.Errorf("%v: 20 days later: %+v", off, got)
			}
		})
	}
}

// A run that was put aside is found when the date that it was given has come, and a
// request finds no other run of its id.
func TestLogDatesAreNotMixedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := logging(t, t.TempDir(), 30)
		date := time.Now().Add(5 * 24 * time.Hour)
		r := req(1, 1)
		r.LogDateTime = date.UnixMilli()
		mustSend(t, e, r)
		mustSend(t, e, req(2, 2)) // without a date
		synctest.Wait()
		time.Sleep(5 * 24 * time.Hour)
		if got := readLog(t, e, wire.LogRequest{LogID: 1, LogDateTim: date.UnixMilli()}); got.ToLineNum != 1 {
			t.Errorf("on the day of its date: %+v", got)
		}
		for _, asked := range []wire.LogRequest{
			{LogID: 1, LogDateTim: date.Add(time.Hour).UnixMilli()}, // another run with the id
			{LogID: 2, LogDateTim: date.Add(time.Hour).UnixMilli()}, // that without a date is of another day
			{LogID: 3, LogDateTim: date.UnixMilli()},
		} {
			if got := readLog(t, e, asked); got != noLog {
				t.Errorf("%+v: %+v", asked, got)
			}
		}
	})
}

// Directories of days to come, which earlier versions made, and those of a host whose clock
// was ahead, go when nothing was put into them for the retention.
func TestLogRetentionOfDaysToCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins on 2000-01-01 00:00 UTC
		dir := t.TempDir()
		e := logging(t, dir, 10)
		now := time.Now()
		for name, written := range map[string]time.Time{
			"2000-01-03": now.AddDate(0, 0, -20), // no more than two days ahead: by its name
			"2000-01-05": now.AddDate(0, 0, -9),
			"2044-02-29": now.AddDate(0, 0, -10),
			"9998-12-31": now.AddDate(0, 0, -11),
			"9999-12-31": now.AddDate(50, 0, 0), // neither its name nor its date tells when
			"keep":       now.AddDate(-1, 0, 0),
		} {
			if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name, "1.log"), []byte("x\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(filepath.Join(dir, name), written, written); err != nil {
				t.Fatal(err)
			}
		}
		id := int64(0)
		check := func(want ...string) {
			t.Helper()
			id++
			r := req(id, id)
			r.LogDateTime = time.Now().UnixMilli()
			mustSend(t, e, r)
			synctest.Wait()
			today := time.Now().UTC().Format(time.DateOnly)
			got := slices.DeleteFunc(daysIn(t, dir), func(name string) bool { return name == today })
			if !slices.Equal(got, want) {
				t.Errorf("on %s there are %q, want %q", today, got, want)
			}
		}
		check("2000-01-03", "2000-01-05", "2044-02-29", "9999-12-31", "keep")
		time.Sleep(24 * time.Hour)
		check("2000-01-01", "2000-01-03", "2000-01-05", "9999-12-31", "keep")
		time.Sleep(10 * 24 * time.Hour) // what was ahead by three days goes by its name by then
		check("2000-01-02", "2000-01-03", "2000-01-05", "keep")
	})
}

// Where there are files that are no logs nothing is followed or removed outside.
func TestLogRetentionStaysInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outside, dir := t.TempDir(), t.TempDir()
		if err := os.WriteFile(filepath.Join(outside, "7-1.log"), []byte("secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, filepath.Join(dir, "9999-01-01")); err != nil {
			skipOnWindows(t, err)
		}
		e := logging(t, dir, 0)
		mustSend(t, e, req(1, 1))
		synctest.Wait()
		if got := readLog(t, e, wire.LogRequest{LogID: 7, LogDateTim: 1000}); got != noLog {
			t.Errorf("by a link: %+v", got)
		}
		if _, err := fs.Stat(os.DirFS(outside), "7-1.log"); err != nil {
			t.Error(err)
		}
	})
}
