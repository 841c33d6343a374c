package postgres_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// movedServer is a server of Postgres whose clock can be moved while it runs.
type movedServer struct {
	dsn  string
	file string
}

// startMoved starts one. The test is skipped where there is no C compiler.
func startMoved(t *testing.T) *movedServer {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil || runtime.GOOS != "linux" {
		pgtest.Skip(t, "no C compiler for Linux, which makes the library that moves the server's clock")
	}
	dir, err := os.MkdirTemp("", "clockstep")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755)) // for the server's account
	lib := filepath.Join(dir, "shim.so")
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-O1", "-o", lib, filepath.Join("testdata", "clock", "shim.c")).CombinedOutput(); err != nil {
		pgtest.Skip(t, fmt.Sprintf("the C compiler does not make the library that moves the server's clock: %v\n%s", err, out))
	}
	must(t, os.Chmod(lib, 0o755))
	m := &movedServer{file: filepath.Join(dir, "step")}
	m.move(t, 0)
	must(t, os.Chmod(m.file, 0o644))
	m.dsn = pgtest.Start(t, pgtest.Options{NoFsync: true, Env: []string{"LD_PRELOAD=" + lib, "CLOCKSTEP_FILE=" + m.file}}).DSN("postgres")
	return m
}

// move sets how far the server's clock is ahead. The file is written in place: the server has it
// mapped.
func (m *movedServer) move(t *testing.T, by time.Duration) {
	t.Helper()
	f, err := os.OpenFile(m.file, os.O_RDWR|os.O_CREATE, 0o644)
	must(t, err)
	defer f.Close()
	_, err = f.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(by/time.Second)), 0)
	must(t, err)
}

// instants counts runs by job and instant.
type instants struct {
	mu  sync.Mutex
	ran map[string][]time.Time
}

func (c *instants) of(param string) []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ran[param])
}

// TestServersClockAhead: the server's clock is ahead for five seconds, by an hour, a month, ten
// years, and is set right. No run is gone, no instant is run twice, and all jobs go on within ten
// seconds: those that went on all the while, those that were planned by the false clock, and runs
// that were triggered by it.
func TestServersClockAhead(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes as long as the clock is ahead")
	}
	t.Parallel()
	m := startMoved(t)
	pool, err := pgxpool.New(t.Context(), m.dsn)
	must(t, err)
	defer pool.Close()
	st, err := postgres.New(t.Context(), pool, postgres.AllDays(postgres.Config{AutoMigrate: true}))
	must(t, err)
	defer st.Close()
	ran := instants{ran: map[string][]time.Time{}}
	var nodes []xxljob.Scheduler
	for _, name := range []string{"a", "b"} {
		s, err := xxljob.New(st, xxljob.Config{App: "app", Node: name, Cluster: xxljob.ClusterConfig{Shards: 8}})
		must(t, err)
		must(t, s.Handle("h", func(_ context.Context, task *xxljob.Task) error {
			ran.mu.Lock()
			ran.ran[task.Param] = append(ran.ran[task.Param], task.ScheduledAt)
			ran.mu.Unlock()
			if task.Param == "retry" && task.Attempt == 0 {
				return errors.New("not yet")
			}
			return nil
		}))
		must(t, s.Start(t.Context()))
		nodes = append(nodes, s)
	}
	a, b := nodes[0], nodes[1]
	ensure := func(s xxljob.Scheduler, key string, sched xxljob.Schedule) xxljob.Job {
		t.Helper()
		j, err := s.EnsureJob(t.Context(), xxljob.Job{Key: key, Name: key, Handler: "h", Param: key, Schedule: sched, Retries: 1})
		must(t, err)
		return j.Job
	}
	for _, key := range []string{"cron", "rate", "delay"} {
		ensure(a, key, map[string]xxljob.Schedule{"cron": xxljob.Cron("* * * * * ?"), "rate": xxljob.FixedRate(time.Second), "delay": xxljob.FixedDelay(time.Second)}[key])
	}
	all := func() (runs []store.Run) {
		t.Helper()
		for before := int64(0); ; {
			page, err := st.Runs(t.Context(), store.RunFilter{Before: before, Limit: 1000})
			must(t, err)
			runs = append(runs, page...)
			if len(page) < 1000 {
				return runs
			}
			before = page[len(page)-1].ID
		}
	}
	for _, step := range []time.Duration{time.Hour, 31 * 24 * time.Hour, 3653 * 24 * time.Hour} {
		time.Sleep(3 * time.Second)
		before := all()
		m.move(t, step)
		time.Sleep(time.Second)
		added := fmt.Sprint("added ", step)
		ensure(b, added, xxljob.Cron("* * * * * ?"))
		triggered := ensure(a, fmt.Sprint("triggered ", step), xxljob.Manual())
		time.Sleep(time.Second)
		ids, err := b.Trigger(t.Context(), triggered.ID, xxljob.Trigger{})
		must(t, err)
		time.Sleep(3 * time.Second)
		m.move(t, 0)
		keys := []string{"cron", "rate", "delay", added}
		counts := map[string]int{}
		for _, key := range keys {
			counts[key] = len(ran.of(key))
		}
		back := time.Now()
		for waits := slices.Clone(keys); len(waits) > 0; time.Sleep(50 * time.Millisecond) {
			waits = slices.DeleteFunc(waits, func(key string) bool { return len(ran.of(key)) > counts[key]+1 })
			if time.Since(back) > 10*time.Second {
				t.Errorf("%v: not run again within ten seconds: %q", step, waits)
				break
			}
		}
		for late := ""; ; time.Sleep(50 * time.Millisecond) {
			r, err := st.Run(t.Context(), ids[0])
			must(t, err)
			if late = r.State.String(); r.State == store.StateSucceeded {
				break
			}
			if time.Since(back) > 15*time.Second {
				t.Errorf("%v: the run that was triggered meanwhile is %s, due at %v", step, late, r.Scheduled)
				break
			}
		}
		t.Logf("%v: all were run again within %v", step, time.Since(back))
		after := map[int64]bool{}
		for _, r := range all() {
			after[r.ID] = true
		}
		for _, r := range before {
			if !after[r.ID] {
				t.Errorf("%v: run %d of %v is gone", step, r.ID, r.Scheduled)
			}
		}
	}
	for _, s := range nodes {
		must(t, s.Stop(t.Context()))
	}
	for key, ats := range ran.ran {
		seen := map[time.Time]int{}
		for _, at := range ats {
			if seen[at]++; seen[at] == 2 {
				t.Errorf("%s: %v was run twice", key, at)
			}
		}
	}
	ats := ran.of("cron")
	slices.SortFunc(ats, time.Time.Compare)
	for i := 1; i < len(ats); i++ {
		if gap := ats[i].Sub(ats[i-1]); gap != time.Second {
			t.Errorf("cron: between %v and %v there was no run", ats[i-1], ats[i])
		}
	}
}
