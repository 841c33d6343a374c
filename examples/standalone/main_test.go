package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
)

// Two minutes of all schedules: every run that is due is printed once, on time.
func TestTwoMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now().UTC()
		end := began.Add(2*time.Minute + 500*time.Millisecond)
		var out bytes.Buffer
		if err := run(t.Context(), options{zone: time.UTC, runFor: end.Sub(began)}, &out, nil); err != nil {
			t.Fatal(err)
		}
		want := map[string]int{}
		jobs, err := demoJobs()
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			after := began
			for {
				at, err := j.Schedule.Next(after)
				if err != nil {
					t.Fatal(err)
				}
				if at.IsZero() || at.After(end) {
					break
				}
				want[j.Key+" "+at.Format(stamp)]++
				after = at
				if j.Schedule.Type == xxljob.ScheduleFixDelay {
					after = at.Add(10 * time.Millisecond) // it works for so long
				}
			}
		}
		if n := 3*120 + 118 + 50; len(want) < n {
			t.Errorf("only %d runs are expected", len(want))
		}
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "job ") {
				continue
			}
			name, rest, _ := strings.Cut(line, "  2000")
			due := strings.TrimSpace(name) + " 2000" + rest[:len(stamp)-4]
			if want[due]--; want[due] != 0 {
				t.Errorf("not expected, or twice: %s", line)
			}
			if !strings.Contains(line, "   0 ms  succeeded") {
				t.Errorf("late or failed: %s", line)
			}
		}
		for run, n := range want {
			if n > 0 {
				t.Errorf("missing: %s", run)
			}
		}
		if !strings.HasPrefix(out.String(), "# 115 jobs, 115 of them scheduled; times are in UTC; the next:\n#   2000-01-01 00:00:01.000  demo-") {
			t.Errorf("begins with %.200s", out.String())
		}
	})
}

// screen is a writer that may be read while it is written to.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// take returns what was written since the last call.
func (s *screen) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.text.Reset()
	return s.text.String()
}

func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "jobs.json")
		write := func(jobs ...string) {
			if err := os.WriteFile(file, []byte("[\n"+strings.Join(jobs, ",\n")+"\n]"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		job := func(name, more string) string {
			return fmt.Sprintf(`{"key": %q, "name": %[1]q, "handler": "demoJobHandler", "schedule": {"type": "CRON", "conf": "0 * * * * ?"} %[2]s}`, name, more)
		}
		out := &screen{}
		hup := make(chan os.Signal)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		reload := func() string {
			out.take()
			hup <- syscall.SIGHUP
			synctest.Wait()
			return out.take()
		}
		// nextMinute returns the names that were run, in order of the alphabet.
		nextMinute := func() string {
			time.Sleep(time.Minute)
			synctest.Wait()
			text := out.take()
			var names []string
			for _, name := range []string{"a", "b", "c", "once"} {
				if strings.Contains(text, name+"  ") {
					names = append(names, name)
				}
			}
			return strings.Join(names, " ")
		}
		check := func(what, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: got %q, want %q", what, got, want)
			}
		}

		write(job("a", ""), job("b", ""))
		go func() { done <- run(ctx, options{jobs: file, zone: time.UTC}, out, hup) }()
		time.Sleep(time.Second)
		check("first", nextMinute(), "a b")

		write(job("a", `, "cron": "x"`), job("b", ""), job("c", ""))
		if got := reload(); !strings.HasPrefix(got, "# not reloaded, the jobs stay as they are:\n#   jobs.json:2:") {
			t.Errorf("reload with a fault: %q", got)
		}
		check("after a fault", nextMinute(), "a b")

		write(job("a", `, "param": "changed"`), job("c", ""))
		check("reload", reload(), "# reloaded: 1 created, 1 changed, 0 unchanged, 1 gone and stopped\n")
		check("after a reload", nextMinute(), "a c")

		write(job("a", `, "param": "changed", "stopped": true`), job("b", ""), job("c", ""))
		check("stop", reload(), "# reloaded: 0 created, 2 changed, 1 unchanged, 0 gone and stopped\n") // one stopped, one started
		check("after a stop", nextMinute(), "b c")

		write(job("a", `, "app": "other"`), job("b", ""))
		check("another app", reload(), "# reloaded: 1 created, 0 changed, 1 unchanged, 1 gone and stopped\n")
		write(job("a", ""))
		check("no other app", reload(), "# reloaded: 0 created, 1 changed, 0 unchanged, 2 gone and stopped\n")
		check("at the end", nextMinute(), "a")

		// A one-off job may stay in the file when its instant has passed, but not
		// come, or be started, with such a one.
		once := func(at time.Time, more string) string {
			return fmt.Sprintf(`{"key": "once", "name": "once", "handler": "demoJobHandler", "schedule": {"type": "ONCE", "conf": %q} %s}`, at.UTC().Format(time.RFC3339), more)
		}
		at := time.Now().Add(30 * time.Second).Truncate(time.Second)
		refused := fmt.Sprintf("# not reloaded, the jobs stay as they are:\n#   jobs.json:3: job \"once\": Schedule \"ONCE %s\": the instant is past\n", at.UTC().Format(time.RFC3339))
		write(job("a", ""), once(at, ""))
		check("one-off", reload(), "# reloaded: 1 created, 0 changed, 1 unchanged, 0 gone and stopped\n")
		check("its minute", nextMinute(), "a once")
		check("one-off, unchanged", reload(), "# reloaded: 0 created, 0 changed, 2 unchanged, 0 gone and stopped\n")
		write(job("a", ""), once(at, `, "param": "changed"`))
		check("one-off, another parameter", reload(), "# reloaded: 0 created, 1 changed, 1 unchanged, 0 gone and stopped\n")
		write(job("a", ""), once(at, `, "stopped": true`))
		check("one-off, stopped", reload(), "# reloaded: 0 created, 1 changed, 1 unchanged, 0 gone and stopped\n")
		write(job("a", ""), once(at, ""))
		check("one-off, started when it is over", reload(), refused)
		write(job("a", ""))
		reload()
		write(job("a", ""), once(at, ""))
		check("one-off, back when it is over", reload(), refused)
		check("after the one-off", nextMinute(), "a")

		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := out.take(); !strings.HasSuffix(got, "# stopping: waiting for running handlers\n# stopped\n") {
			t.Errorf("ends with %q", got)
		}
	})
}

func TestLines(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 5e6, time.UTC)
	p := &printer{zone: time.FixedZone("", 3600), store: memory.New(), out: io.Discard}
	ran := xxljob.Run{Scheduled: at, Started: at.Add(1234 * time.Millisecond)}
	with := func(r xxljob.Run, f func(*xxljob.Run)) xxljob.Run { f(&r); return r }
	for _, c := range []struct {
		run  xxljob.Run
		want string
	}{
		{with(ran, func(r *xxljob.Run) { r.State, r.HandleMsg = xxljob.StateSucceeded, "fine\nand more" }),
			"2026-03-01 13:00:00.005  13:00:01.239    1234 ms  succeeded: fine"},
		{with(ran, func(r *xxljob.Run) {
			r.State, r.Sharding = xxljob.StateSucceeded, xxljob.Sharding{Index: 1, Total: 3}
		}), "2026-03-01 13:00:00.005  13:00:01.239    1234 ms  succeeded 1/3"},
		{with(ran, func(r *xxljob.Run) { r.State, r.HandleMsg = xxljob.StateFailed, "disk full" }),
			"2026-03-01 13:00:00.005  13:00:01.239    1234 ms  failed: disk full"},
		// Marked ahead of its time, for the handler to begin on time.
		{xxljob.Run{Scheduled: at, Started: at.Add(-11 * time.Millisecond), State: xxljob.StateSucceeded},
			"2026-03-01 13:00:00.005  13:00:00.005       0 ms  succeeded"},
		// Marked by one node and taken by another.
		{xxljob.Run{Scheduled: at, Started: at.Add(-11 * time.Millisecond), Taken: at.Add(3 * time.Millisecond), State: xxljob.StateSucceeded},
			"2026-03-01 13:00:00.005  13:00:00.008       3 ms  succeeded"},
		{xxljob.Run{Scheduled: at, State: xxljob.StateRefused, HandleMsg: "no address", TriggerMsg: "type: CRON\nno address\n"},
			"2026-03-01 13:00:00.005  -                     -  refused: no address"},
		{xxljob.Run{Scheduled: at, State: xxljob.StateSkipped, Reason: xxljob.ReasonMisfire, First: at, Last: at.Add(time.Hour), Count: 61},
			"2026-03-01 13:00:00.005  -                     -  skipped (misfire): 61 instants, 2026-03-01 13:00:00.005 to 2026-03-01 14:00:00.005"},
		{xxljob.Run{Scheduled: at, State: xxljob.StateCancelled, Reason: "killed"},
			"2026-03-01 13:00:00.005  -                     -  cancelled: killed"},
	} {
		if got, want := p.line("name", c.run), fmt.Sprintf("%-40s  %s", "name", c.want); got != want {
			t.Errorf("\ngot  %s\nwant %s", got, want)
		}
	}
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"-jobs", "f", "-zone", "Europe/Berlin", "-http-allow", "a,b:1", "-for", "3s", "-logs", "d"}, io.Discard)
	if err != nil || o.jobs != "f" || o.zone.String() != "Europe/Berlin" || len(o.allow) != 2 || o.runFor != 3*time.Second || o.logs != "d" {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, args := range [][]string{{"-zone", "Nowhere"}, {"-zone", "Local"}, {"-for", "x"}, {"extra"}, {"-unknown"}} {
		var out strings.Builder
		_, err := parse(args, &out)
		if err == nil {
			t.Errorf("%q: no error", args)
		} else if strings.Count(out.String(), err.Error()) != 1 || !strings.Contains(out.String(), "Usage of standalone") {
			t.Errorf("%q: printed %q", args, out.String())
		}
	}
}

// TestRunRefusesBadOptions: what is wrong with flags is said in their words, and before
// anything is printed, opened or connected to: the database of each would hang, for there
// is nobody behind its address who answers.
func TestRunRefusesBadOptions(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	taken := silent.Addr().String()
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte(`[{"key": "a", "name": "a", "handler": "demoJobHandler", "route": "first"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  []string
		words []string
	}{
		{[]string{"-http-allow", "http://x"}, []string{"-http-allow", "http://x"}},
		{[]string{"-jobs", filepath.Join(t.TempDir(), "none")}, []string{"-jobs", "no such file"}},
		{[]string{"-jobs", bad}, []string{"-jobs", "bad.json:1", "did you mean FIRST?"}},
		{[]string{"-for", "-3s"}, []string{"-for", "-3s"}},
		{[]string{"-listen", "127.0.0.1:0"}, []string{"-listen", "-token", tokenVariable, "-insecure"}},
		{[]string{"-listen", "127.0.0.1:0", "-token", "default_token"}, []string{"-token", "everybody knows"}},
		{[]string{"-listen", "127.0.0.1:0", "-token", "a,b,c"}, []string{"-token", "at most 2"}},
		{[]string{"-listen", "127.0.0.1:0", "-token", "a,"}, []string{"-token", "empty"}},
		{[]string{"-jobs-api", "orders"}, []string{"-jobs-api", "-listen"}},
		{[]string{"-listen", "127.0.0.1:0", "-token", "a", "-jobs-api", "orders,"}, []string{"-jobs-api", "names of apps"}},
		{[]string{"-listen", "127.0.0.1:0", "-token", "a", "-jobs-api", "orders," + appName}, []string{"-jobs-api", "own app"}},
		{[]string{"-listen", taken, "-token", "a"}, []string{"-listen", "in use"}},
		{[]string{"-listen", "nonsense", "-token", "a"}, []string{"-listen", "nonsense"}},
		{[]string{"-store", "postgres://u:secret@h:notaport/db"}, []string{"-store", "port"}},
		{[]string{"-schema", "pg_x"}, []string{"-schema", "pg_x"}},
		{[]string{"-schema", "information_schema"}, []string{"-schema", "information_schema"}},
		{[]string{"-schema", "a\xff"}, []string{"-schema", "[A-Za-z_][A-Za-z0-9_$]*"}},
		{[]string{"-schema", "a b"}, []string{"-schema", "[A-Za-z_][A-Za-z0-9_$]*"}},
		{[]string{"-logs", bad}, []string{"-logs", "bad.json"}},
	} {
		args := append([]string{"-store", "postgres://u:secret@" + taken + "/db"}, c.args...)
		o, err := parse(args, io.Discard)
		if err != nil {
			t.Fatalf("%q: %v", c.args, err)
		}
		out := &screen{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err = run(ctx, o, out, nil)
		cancel()
		if err == nil {
			t.Errorf("%q: no error", c.args)
			continue
		}
		for _, w := range c.words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %v does not say %q", c.args, err, w)
			}
		}
		for _, w := range []string{"secret", "Config.", "xxljob: "} {
			if strings.Contains(err.Error(), w) {
				t.Errorf("%q: %v says %q", c.args, err, w)
			}
		}
		if text := out.take(); text != "" {
			t.Errorf("%q: printed %q", c.args, text)
		}
	}
}

// TestFlagsOfTheEnvironment: what comes from there is called by its name there.
func TestFlagsOfTheEnvironment(t *testing.T) {
	t.Setenv(storeVariable, "postgres://h:notaport/db")
	t.Setenv(tokenVariable, "default_token")
	for _, c := range []struct{ args, want string }{{"", storeVariable + ": "}, {"-listen=127.0.0.1:0", tokenVariable + ": "}} {
		o, err := parse(strings.Fields(c.args), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if err := run(t.Context(), o, io.Discard, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.args, err)
		}
	}
}
