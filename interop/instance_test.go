package interop_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// instance is one peer as a process, at an address of its own.
type instance struct {
	kind
	t       *testing.T // with which it ends; scenarios have tests of their own
	dir     string     // logs, journal and the peer's own files
	port    int
	process *process
}

func newInstance(t *testing.T, k kind, port int) *instance {
	t.Helper()
	return &instance{kind: k, t: t, dir: t.TempDir(), port: port}
}

// launch starts the process, again with the same address and the same files.
func (i *instance) launch(t *testing.T, admin string) {
	t.Helper()
	logs := filepath.Join(i.dir, "logs")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	argv := append(i.argv(t),
		"-admin", "http://"+admin+i.base, "-token", theToken, "-app", theApp,
		"-ip", "127.0.0.1", "-port", fmt.Sprint(i.port), "-logs", logs, "-journal", i.journalFile())
	i.process = start(i.t, i.name, nil, nil, i.dir, argv...)
}

// lives fails the test when the process has ended.
func (i *instance) lives(t *testing.T) {
	t.Helper()
	select {
	case <-i.process.done:
		t.Fatalf("%s has ended:\n%s", i.name, i.process.out)
	default:
	}
}

// answers waits until the peer answers: some register before they listen.
func (i *instance) answers(t *testing.T, client *wire.ExecutorClient) {
	t.Helper()
	eventually(t, time.Minute, i.name+" answers", func() bool {
		i.lives(t)
		r, err := client.Beat(t.Context())
		return err == nil && r.OK()
	})
}

// registers is the address that the peer has to register.
func (i *instance) registers() string {
	address := fmt.Sprintf("http://127.0.0.1:%d", i.port)
	if i.slash {
		address += "/"
	}
	return address
}

// ports are those given away: a peer may be restarted at its own.
var ports sync.Map

// listenFree listens on a port that no other peer or front was given. It is out of the range
// that systems give to outgoing connections, and out of that of package pgtest: a server
// that another test starts would take it before the peer has come up, or while it is down.
func listenFree(t *testing.T) net.Listener {
	t.Helper()
	for range 100 {
		port := 10000 + rand.IntN(5000)
		if _, taken := ports.LoadOrStore(port, true); taken {
			continue
		}
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return l
		}
	}
	t.Fatal("no free port found")
	return nil
}

// freePort is the port of a listenFree that nobody listens on. It is for processes, which
// take their time to begin: a child that this process starts at the same moment has the
// listener open for as long as it takes to become another program.
func freePort(t *testing.T) int {
	t.Helper()
	l := listenFree(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().(*net.TCPAddr).Port
}

// entry is a line of the journal.
type entry struct {
	run, job       int64
	handler, phase string
	at             int64 // ms
}

func (i *instance) journalFile() string { return filepath.Join(i.dir, "journal") }

// journal reads what the handlers have written so far.
func (i *instance) journal(t *testing.T) []entry {
	t.Helper()
	b, err := os.ReadFile(i.journalFile())
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var all []entry
	for line := range strings.Lines(string(b)) {
		var e entry
		if _, err := fmt.Sscan(line, &e.run, &e.job, &e.handler, &e.phase, &e.at); err != nil {
			if strings.HasSuffix(line, "\n") {
				t.Fatalf("journal: %q: %v", line, err)
			}
			break // it is being written
		}
		all = append(all, e)
	}
	return all
}

// entries returns the lines of a run with a phase, "" for all but start.
func (i *instance) entries(t *testing.T, run int64, phase string) []entry {
	t.Helper()
	var found []entry
	for _, e := range i.journal(t) {
		if e.run == run && (e.phase == phase || phase == "" && e.phase != "start") {
			found = append(found, e)
		}
	}
	return found
}

// hasStarted waits until the handler of a run is started.
func (i *instance) hasStarted(t *testing.T, run int64) {
	t.Helper()
	eventually(t, time.Minute, fmt.Sprintf("run %d starts", run), func() bool {
		return len(i.entries(t, run, "start")) > 0
	})
}

// hasPhase waits until the handler of a run has once ended in a way.
func (i *instance) hasPhase(t *testing.T, run int64, phase string) {
	t.Helper()
	eventually(t, time.Minute, fmt.Sprintf("the handler of run %d is at its end: %s", run, phase), func() bool {
		return len(i.entries(t, run, phase)) == 1
	})
}

// starts is how often each run's handler has to be started, by run id.
type starts map[int64]int

// compare holds it against what the journals of all peers say.
func (s starts) compare(t *testing.T, journal []entry) {
	t.Helper()
	got := map[int64]int{}
	for _, e := range journal {
		if e.phase == "start" {
			got[e.run]++
		}
	}
	for run, n := range s {
		if got[run] != n {
			t.Errorf("the handler of run %d was started %d times, want %d", run, got[run], n)
		}
		delete(got, run)
	}
	for run, n := range got {
		t.Errorf("the handler of run %d was started %d times, and nobody had asked for it", run, n)
	}
}
