package main

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/xxljob/xxljob/cmd/xxljob/internal/bench"
	"github.com/xxljob/xxljob/internal/test/pgtest"
)

// TestMain lets bench start executors: they are this program too.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "bench-executor" {
		os.Exit(run(context.Background(), &program{args: os.Args[1:], in: os.Stdin, out: os.Stdout, err: os.Stderr}))
	}
	os.Exit(m.Run())
}

// called is what the program has printed, and its exit code.
func called(t *testing.T, args ...string) (out, log string, exit int) {
	t.Helper()
	var o, e bytes.Buffer
	exit = run(t.Context(), &program{args: args, in: strings.NewReader(""), out: &o, err: &e})
	return o.String(), e.String(), exit
}

// shapes are the loads at sizes that any machine keeps up with, and what is expected of each to
// run: no less than that, for the warm-up counts too.
func shapes() map[string]struct {
	flags    []string
	expected int
} {
	return map[string]struct {
		flags    []string
		expected int
	}{
		bench.Steady:   {[]string{"--rate=40", "--warmup=1s", "--duration=1s"}, 120},
		bench.Herd:     {[]string{"--jobs=40", "--warmup=1s", "--duration=1s"}, 120},
		bench.Sparse:   {[]string{"--jobs=300", "--rate=20", "--warmup=1s", "--duration=1s"}, 60},
		bench.Drain:    {[]string{"--jobs=20", "--runs=300"}, 300},
		bench.Overload: {[]string{"--capacity=30", "--warmup=1s", "--duration=1s"}, 135},
	}
}

// smoke is one load on one store, and what came of it.
type smoke struct {
	shape, store, executor string
	args                   []string
	expected               int
	out, log               bytes.Buffer
	exit                   int
}

// overHTTP are the loads that differ with executors elsewhere, and the store of each.
func overHTTP() map[string]string {
	return map[string]string{bench.Steady: bench.Memory, bench.Drain: bench.Postgres}
}

// smokes are each load on both stores, and those that differ over HTTP with executors there, on
// one of them.
func smokes(dsn string) (all []*smoke) {
	for _, shape := range slices.Sorted(maps.Keys(shapes())) {
		for _, store := range []string{bench.Memory, bench.Postgres} {
			for _, executor := range []string{bench.InProcess, bench.HTTP} {
				if executor == bench.HTTP && overHTTP()[shape] != store {
					continue
				}
				x := &smoke{shape: shape, store: store, executor: executor, expected: shapes()[shape].expected}
				x.args = append([]string{"bench", "--json", "--shape=" + shape, "--store=" + store, "--executor=" + executor}, shapes()[shape].flags...)
				if store == bench.Postgres {
					x.args = append(x.args, "--dsn="+dsn, "--connections=4")
				}
				if executor == bench.HTTP {
					x.args = append(x.args, "--executors=2")
				}
				all = append(all, x)
			}
		}
	}
	return all
}

// TestEachShape runs each load for a moment. It asserts what was run, and no time. All are run
// side by side, since each waits for the clock for most of its time.
func TestEachShape(t *testing.T) {
	t.Parallel()
	all := smokes(pgtest.DSN(t))
	var running sync.WaitGroup
	for _, x := range all {
		running.Go(func() {
			x.exit = run(t.Context(), &program{args: x.args, in: strings.NewReader(""), out: &x.out, err: &x.log})
		})
	}
	running.Wait()
	for _, x := range all {
		t.Run(x.shape+"/"+x.store+"/"+x.executor, func(t *testing.T) {
			if x.exit != 0 {
				t.Fatalf("exit code %d\n%s\n%s", x.exit, &x.out, &x.log)
			}
			check(t, x.out.String(), x.expected, x.shape, x.store)
		})
	}
}

// check looks at a report as programs read it.
func check(t *testing.T, out string, expected int, shape, store string) {
	t.Helper()
	var raw map[string]any
	if err := json.Unmarshal([]byte(out), &raw); err != nil {
		t.Fatalf("%v of %s", err, out)
	}
	fields := []string{"command", "at", "config", "machine", "seconds", "completed_per_second", "cost", "other_cores", "peak_rss_bytes", "peak_heap_bytes", "audit", "clean"}
	if store == bench.Postgres {
		fields = append(fields, "server")
	}
	if shape != bench.Drain {
		fields = append(fields, "lateness_ms", "curve", "offered_per_second", "timeline")
	}
	if shape == bench.Sparse || shape == bench.Overload {
		fields = append(fields, shape)
	}
	for _, f := range fields {
		if _, ok := raw[f]; !ok {
			t.Errorf("the report lacks %s", f)
		}
	}
	var r bench.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if a := r.Audit; !r.Clean || !a.Clean() || a.Once != a.Expected || a.Expected < expected {
		t.Errorf("the audit is %+v, want at least %d", a, expected)
	}
	_, wal := r.Cost.WALBytes.Value()
	_, done := r.Cost.AllocBytes.Value() // for a run, of which a busy machine may end none in the second that is measured
	if wal != (store == bench.Postgres && done) {
		t.Errorf("WAL is %s", r.Cost.WALBytes.Text(0))
	}
}

// TestPrintsAndDraws is for what people read.
func TestPrintsAndDraws(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, log, exit := called(t, "bench", "--shape=overload", "--capacity=20", "--warmup=1s", "--duration=1s", "--svg="+dir)
	if exit != 0 {
		t.Fatal(exit, out, log)
	}
	for _, name := range []string{"command", "machine", "load", "other load", "offered", "completed", "lateness", "CPU a run", "allocated a run", "peak memory", "capacity", "steady", "audit"} {
		if !strings.Contains("\n"+out, "\n"+name+"  ") {
			t.Errorf("%s is not printed:\n%s", name, out)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("drawn: %v %v\n%s", files, err, log)
	}
}

func TestWrongCalls(t *testing.T) {
	for _, c := range []struct {
		args []string
		exit int
		says string
	}{
		{[]string{"bench", "--shape=wave"}, 80, "--shape must be one of"},
		{[]string{"bench", "--nodes=2"}, 80, "unknown flag --nodes"},
		{[]string{"dance"}, 80, "unexpected argument dance"},
		{[]string{"bench", "--jobs=5"}, 2, "jobs says nothing to steady"},
		{[]string{"bench", "--rate=-5"}, 2, "not negative"},
		{[]string{"bench", "--store=postgres", "--dsn=not an address"}, 2, "cannot parse"},
	} {
		out, log, exit := called(t, c.args...)
		if exit != c.exit || !strings.Contains(out+log, c.says) {
			t.Errorf("%v: exit code %d, want %d with %q:\n%s%s", c.args, exit, c.exit, c.says, out, log)
		}
	}
	if out, _, exit := called(t, "bench", "--help"); exit != 0 || !strings.Contains(out, "--capacity") || strings.Contains(out, "bench-executor") {
		t.Errorf("help: %d\n%s", exit, out)
	}
}

// TestThePasswordIsNotShown: the command line is part of what is published.
func TestThePasswordIsNotShown(t *testing.T) {
	for arg, want := range map[string]string{
		"--dsn=postgres://me:secret@db:5432/x?sslmode=disable":      "--dsn=postgres://me:xxxxx@db:5432/x?sslmode=disable",
		"postgres://me:secret@db/x":                                 "postgres://me:xxxxx@db/x",
		"--dsn=host=db user=me password=secret dbname=x":            "--dsn=host=db user=me password=xxxxx dbname=x",
		"host=db password='se cret' dbname=x":                       "host=db password=xxxxx dbname=x",
		"--dsn=postgres://db/x?user=me&password=secret&sslmode=off": "--dsn=postgres://db/x?user=me&password=xxxxx&sslmode=off",
		"--rate=50": "--rate=50",
	} {
		if got := withoutPassword(arg); got != want {
			t.Errorf("%s is shown as %s, want %s", arg, got, want)
		}
	}
}

// TestInterrupted: who is interrupted measures nothing, and leaves nothing behind.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, log bytes.Buffer
	exit := run(ctx, &program{args: []string{"bench", "--rate=5"}, out: &out, err: &log})
	if exit != 2 || out.Len() > 0 || !strings.Contains(log.String(), "context canceled") {
		t.Errorf("exit code %d, %s%s", exit, out.String(), log.String())
	}
}
