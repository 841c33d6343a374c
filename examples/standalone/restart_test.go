package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/postgres"
)

// asProgram makes the test's binary the program itself.
const asProgram = "STANDALONE_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// start runs the program as a process.
func start(t *testing.T, args ...string) (cmd *exec.Cmd, out *screen, done chan error) {
	t.Helper()
	cmd, out, done = exec.Command(os.Args[0], args...), &screen{}, make(chan error, 1)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { done <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, mostly
	return cmd, out, done
}

// read waits until the program has printed all the texts, and returns what it
// printed.
func read(t *testing.T, out *screen, done chan error, texts ...string) (text string) {
	t.Helper()
	missing := func() string {
		text += out.take()
		for _, want := range texts {
			if !strings.Contains(text, want) {
				return want
			}
		}
		return ""
	}
	defer func() {
		if missing() != "" {
			t.Logf("printed:\n%s", text)
		}
	}()
	ended := false
	await.Until(t, fmt.Sprintf("that it prints %q", texts), func() bool {
		ended = len(done) > 0 // by then all is printed
		return missing() == "" || ended
	})
	if what := missing(); what != "" {
		t.Fatalf("it has ended, and not printed %q", what)
	}
	return text
}

const ticks = 4

// A process that is killed without a word is followed by another one, which goes
// on with the schedule: no instant is lost or comes twice, and a one-off job
// that has had its instant may stay in the file.
func TestKillAndRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for half a minute; leave out -short")
	}
	dsn, schema, dir := pgtest.DSN(t), pgtest.Schema(t), t.TempDir()
	once := time.Now().Add(30 * time.Second).Truncate(time.Second) // ahead, when the program has started
	jobs := []string{fmt.Sprintf(`{"key": "once", "name": "once", "handler": "demoJobHandler", "schedule": {"type": "ONCE", "conf": %q}}`, once.UTC().Format(time.RFC3339))}
	for i := range ticks {
		jobs = append(jobs, fmt.Sprintf(`{"key": "tick-%d", "name": "tick-%[1]d", "handler": "demoJobHandler", "param": "tick-%[1]d", "schedule": {"type": "CRON", "conf": "* * * * * ?"}}`, i))
	}
	file := filepath.Join(dir, "jobs.json")
	if err := os.WriteFile(file, []byte("["+strings.Join(jobs, ",\n")+"]"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Two directories: it is the database alone that the second process goes on with.
	logs := func(n int) string { return filepath.Join(dir, fmt.Sprint("logs", n)) }
	args := []string{"-store", dsn, "-schema", schema, "-jobs", file, "-logs"}
	// after returns the lines that stand for the runs of an instant.
	after := func(at time.Time) (lines []string) {
		for i := range ticks {
			lines = append(lines, fmt.Sprintf("%-40s  %s", fmt.Sprint("tick-", i), at.UTC().Format(stamp)))
		}
		return lines
	}

	cmd, out, done := start(t, append(args, logs(1))...)
	// A moment after an instant nothing is under way.
	read(t, out, done, append(after(once.Add(2*time.Second)), "once  ", "kept in Postgres")...)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("the killed process has ended well")
	}
	killed := time.Now()
	cmd, out, done = start(t, append(args, logs(2))...)
	read(t, out, done, after(killed.Truncate(time.Second).Add(3*time.Second))...)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	read(t, out, nil, "# stopped")
	if err := <-done; err != nil {
		t.Errorf("a clean stop: %v", err)
	}
	audit(t, dsn, schema, logs(1), logs(2))
}

var beginsPattern = regexp.MustCompile(`demo begins param=(tick-\d) scheduled=(\S+)\n`)

// audit looks for instants that are missing or doubled among what the handlers
// have logged, from the first of a job to its last.
func audit(t *testing.T, dsn, schema string, dirs ...string) {
	t.Helper()
	stage.Audits(t)
	starts := map[string]map[time.Time]int{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(name)
			for _, m := range beginsPattern.FindAllStringSubmatch(string(text), -1) {
				at, err := time.Parse(time.RFC3339Nano, m[2])
				if err != nil {
					return err
				}
				if starts[m[1]] == nil {
					starts[m[1]] = map[time.Time]int{}
				}
				starts[m[1]][at.UTC()]++
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	store, err := postgres.New(t.Context(), pgtest.Pool(t, pgtest.At(dsn)), postgres.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if len(starts) != ticks {
		t.Errorf("%d jobs have run, want %d", len(starts), ticks)
	}
	instants := 0
	for job, at := range starts {
		var first, last time.Time
		for i := range at {
			if first.IsZero() || i.Before(first) {
				first = i
			}
			if i.After(last) {
				last = i
			}
		}
		for i := first; !i.After(last); i = i.Add(time.Second) {
			instants++
			if n := at[i]; n > 1 || n == 0 && !interrupted(t, store, job, i) {
				t.Errorf("%s: instant %v has run %d times", job, i, n)
			}
		}
	}
	t.Logf("%d instants of %d jobs", instants, len(starts))
}

// interrupted reports whether the run of an instant had been handed to a process
// that was killed before its handler could say anything.
func interrupted(t *testing.T, store *postgres.Store, key string, due time.Time) bool {
	t.Helper()
	job, err := store.JobByKey(t.Context(), appName, key)
	if err != nil {
		t.Fatal(err)
	}
	list, err := store.Runs(t.Context(), xxljob.RunFilter{JobID: job.ID, From: due, To: due.Add(time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].State != xxljob.StateStarted && list[0].State != xxljob.StateLost {
		return false
	}
	t.Logf("%s: instant %v was interrupted", key, due)
	return true
}
