package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// asProgram makes the test's binary the program itself.
const asProgram = "CLUSTER_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// process is the program as a process.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	input io.WriteCloser
	done  chan error

	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

// lines are those that were printed up to now.
func (p *process) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	whole, _, _ := cutLast(p.text.String())
	return strings.Split(whole, "\n")
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '\n')
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}

func start(t *testing.T, dsn string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0], args...), done: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), asProgram+"=1", storeVariable+"="+dsn)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	var err error
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it has ended, mostly
		if t.Failed() {
			t.Logf("%v:\n%s", args, strings.Join(p.lines(), "\n"))
		}
	})
	return p
}

// stop is Ctrl-C.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		p.t.Fatal(err)
	}
}

// wait waits for the end of the process.
func (p *process) wait() error {
	p.t.Helper()
	await.Until(p.t, fmt.Sprint("the end of ", p.cmd.Args[1:]), func() bool { return len(p.done) > 0 })
	return <-p.done
}

// start is one start of a handler, as a node printed it.
type started struct{ node, run, job, due string }

// starts are those that the processes printed.
func starts(all ...*process) (list []started) {
	for _, p := range all {
		for _, line := range p.lines() {
			var s started
			var late int
			if n, _ := fmt.Sscanf(line, "%s run %s %s due %s late %d", &s.node, &s.run, &s.job, &s.due, &late); n == 5 {
				list = append(list, s)
			}
		}
	}
	return list
}

// Three nodes, one of which is killed: the others go on with its jobs, and no
// instant is lost or comes twice.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a server and processes, and waits for runs of theirs; leave out -short")
	}
	t.Parallel()
	dsn, schema := pgtest.DSN(t), pgtest.Schema(t)
	if err := postgres.Migrate(t.Context(), pgtest.Pool(t), postgres.Config{Schema: schema}); err != nil {
		t.Fatal(err)
	}
	nodes := map[string]*process{}
	var all []*process
	for _, name := range []string{"a", "b", "c"} {
		nodes[name] = start(t, dsn, "-schema", schema, "-node", name)
		all = append(all, nodes[name])
	}
	await.Until(t, "every node has shards", func() bool {
		return !slices.ContainsFunc(all, func(p *process) bool { return !strings.Contains(strings.Join(p.lines(), "\n"), " shards ") })
	})

	// The moment after an instant is the one that interrupts nothing.
	latest := func() (last started) {
		for _, s := range starts(all...) {
			if s.job == "second-1" && s.due > last.due {
				last = s
			}
		}
		return last
	}
	before := latest()
	await.Until(t, "a run of second-1", func() bool { return latest() != before })
	last := latest()
	victim := nodes[last.node]
	if err := victim.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	if err := victim.wait(); err == nil {
		t.Error("the killed node has ended well")
	}
	rest := slices.DeleteFunc(slices.Clone(all), func(p *process) bool { return p == victim })
	after := func(n int) func() bool {
		return func() bool {
			found := 0
			for _, s := range starts(rest...) {
				if s.job == "second-1" && s.due > last.due {
					found++
				}
			}
			return found >= n
		}
	}
	await.Until(t, "another node goes on with second-1", after(1))
	t.Logf("node %s was killed; another went on after %v", last.node, time.Since(killed).Round(10*time.Millisecond))
	await.Until(t, "and goes on", after(3))
	await.Until(t, "somebody says so", func() bool {
		return slices.ContainsFunc(rest, func(p *process) bool { return strings.Contains(strings.Join(p.lines(), "\n"), "from "+last.node) })
	})
	for _, p := range rest {
		p.stop()
	}
	for _, p := range rest {
		if err := p.wait(); err != nil {
			t.Errorf("a clean stop: %v", err)
		}
	}
	audit(t, dsn, schema, last.node, starts(all...))
}

// audit looks for instants that are missing or doubled among what was printed,
// from the first of a job to its last. One that the killed node was about to
// print is explained by its run, which went to that node.
func audit(t *testing.T, dsn, schema, killed string, list []started) {
	t.Helper()
	stage.Audits(t)
	db, err := postgres.New(t.Context(), pgtest.Pool(t, pgtest.At(dsn)), postgres.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	runs := map[string]int{}
	instants := map[string][]string{}
	for _, s := range list {
		runs[s.run]++
		if runs[s.run] > 1 {
			t.Errorf("run %s of %s has started twice", s.run, s.job)
		}
		if strings.HasPrefix(s.job, "second-") {
			instants[s.job] = append(instants[s.job], s.due)
		}
	}
	if len(instants) != 6 {
		t.Errorf("%d jobs have run, want 6", len(instants))
	}
	checked := 0
	for job, due := range instants {
		slices.Sort(due)
		from, to := parseClock(t, due[0]), parseClock(t, due[len(due)-1])
		for at := from; !at.After(to); at = at.Add(time.Second) {
			checked++
			n := 0
			for _, d := range due {
				if d == at.Format(clock) {
					n++
				}
			}
			switch {
			case n > 1:
				t.Errorf("%s: instant %s has run %d times", job, at.Format(clock), n)
			case n == 0 && !interrupted(t, db, job, at.Format(clock), killed):
				t.Errorf("%s: instant %s has not run", job, at.Format(clock))
			}
		}
	}
	t.Logf("%d instants of %d jobs", checked, len(instants))
}

func parseClock(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(clock, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// interrupted reports whether the run of an instant was started at a node.
func interrupted(t *testing.T, db *postgres.Store, key, due, node string) bool {
	t.Helper()
	job, err := db.JobByKey(t.Context(), "cluster", key)
	if err != nil {
		t.Fatal(err)
	}
	list, err := db.Runs(t.Context(), xxljob.RunFilter{JobID: job.ID, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		if inc, ok := store.LocalIncarnation(r.Address); r.Scheduled.Format(clock) == due && ok && nodeOf(inc) == node {
			t.Logf("%s: instant %s was interrupted (%s)", key, due, r.State)
			return true
		}
	}
	return false
}

// The program starts its own nodes, kills one when it is told to, and starts it
// again.
func TestNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a server and processes, and waits for runs of theirs; leave out -short")
	}
	t.Parallel()
	p := start(t, pgtest.DSN(t), "-schema", pgtest.Schema(t), "-n", "2", "-every", "0", "-away", "200ms", "-window", "3s")
	has := func(node string) bool {
		return slices.ContainsFunc(starts(p), func(s started) bool { return s.node == node })
	}
	await.Until(t, "both nodes run something", func() bool { return has("a") && has("b") })
	if _, err := io.WriteString(p.input, "x\nb\n"); err != nil {
		t.Fatal(err)
	}
	text := func() string { return strings.Join(p.lines(), "\n") }
	await.Until(t, "b is killed", func() bool { return strings.Contains(text(), "# node b is gone") })
	at := strings.Index(text(), "# node b is gone")
	await.Until(t, "b is back", func() bool { return strings.Contains(text()[at:], "\nb shards") })
	const report = "runs due in the next 3s"
	await.Until(t, "it says how late the runs were", func() bool { return strings.Contains(text(), report) })
	for _, name := range route.Names() {
		if !regexp.MustCompile(`(?m)^#   ` + name + ` +[0-9]+ runs  late p99 +\d+ ms  at most +\d+ ms$`).MatchString(text()) {
			t.Errorf("it does not say how late the runs of %s were", name)
		}
	}
	p.stop()
	if err := p.wait(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{`# there is no node "x"`, "# killing node b", "\na stopped", "\nb stopped"} {
		if !strings.Contains(text(), want) {
			t.Errorf("it does not say %q", want)
		}
	}
}

func TestParse(t *testing.T) {
	t.Setenv(storeVariable, "")
	for _, c := range []struct{ args, want string }{
		{"-node a", "-store is missing"},
		{"-store x", "want -node"},
		{"-store x -node a -n 3", "want -node"},
		{"-store x -n 27", "want 1 to 26"},
		{"-store x -n 3 more", "unexpected argument"},
		{"-store x -node a", ""},
		{"-store x -n 3 -every 0", ""},
	} {
		var out strings.Builder
		_, err := parse(strings.Fields(c.args), &out)
		if (err != nil) != (c.want != "") || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %v, printed %q", c.args, err, out.String())
		}
	}
	t.Setenv(storeVariable, "y")
	if o, err := parse([]string{"-node", "a"}, io.Discard); err != nil || o.store != "y" {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestUnreachable(t *testing.T) {
	ctx := t.Context()
	o := options{store: "postgres://nobody@127.0.0.1:1/none", schema: "xxljob", node: "a", nodes: 2}
	for name, run := range map[string]func() error{
		"one":     func() error { return runNode(ctx, o, io.Discard) },
		"several": func() error { return runNodes(ctx, o, strings.NewReader(""), io.Discard) },
	} {
		if err := run(); err == nil || !strings.Contains(err.Error(), "check the DSN") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLateness: what the killed node had taken is left out, and what nobody has taken
// is waited for.
func TestLateness(t *testing.T) {
	due := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := &routeLateness{}
	for _, run := range []xxljob.Run{
		{State: xxljob.StateSucceeded, Scheduled: due, Taken: due.Add(-9 * time.Millisecond)}, // marked ahead of its time
		{State: xxljob.StateSucceeded, Scheduled: due, Taken: due.Add(20 * time.Millisecond)},
		{State: xxljob.StateStarted, Scheduled: due, Taken: due.Add(900 * time.Millisecond)},
		{State: xxljob.StateLost, Scheduled: due, Taken: due.Add(time.Millisecond)},
		{State: xxljob.StateStarted, Scheduled: due},
		{State: xxljob.StatePlanned, Scheduled: due},
		{State: xxljob.StateCancelled, Scheduled: due},
	} {
		l.add(run)
	}
	found := map[string]*routeLateness{xxljob.RouteFirst: l}
	if least := slices.Min(l.late); least != 0 {
		t.Errorf("a run is %v late", least)
	}
	if !anyWaits(found) {
		t.Error("nothing waits")
	}
	got := describe(kill{"b", due}, 15*time.Second, found)
	want := "# node b was killed at 03:04:05.000; runs due in the next 15s that it had not taken:\n" +
		"#   FIRST                    5 runs  late p99   900 ms  at most   900 ms  2 still wait\n"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
