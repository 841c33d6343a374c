package interop_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// site is one peer at an admin.
type site struct {
	kind
	t       *testing.T // with which the peer ends; scenarios have tests of their own
	admin   *admin     // may be that of other sites too
	dir     string     // logs, journal and the peer's own files
	port    int
	process *process
	address string // as the peer registered it
	client  *wire.ExecutorClient

	lastID atomic.Int64
	starts map[int64]int // how often each run's handler has to be started, by run id
}

// newSite starts a peer at an admin, and waits until it has registered.
func newSite(t *testing.T, k kind, a *admin) *site {
	t.Helper()
	s := &site{kind: k, t: t, admin: a, dir: t.TempDir(), port: freePort(t), starts: map[int64]int{}}
	s.lastID.Store(time.Now().Unix())
	s.run(t)
	return s
}

// run starts the peer, again on the same address, and waits until it is there.
func (s *site) run(t *testing.T) {
	t.Helper()
	began := time.Now()
	logs := filepath.Join(s.dir, "logs")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	argv := append(s.command(t),
		"-admin", "http://"+s.admin.addr+s.base, "-token", theToken, "-app", theApp,
		"-ip", "127.0.0.1", "-port", fmt.Sprint(s.port), "-logs", logs, "-journal", s.journalFile())
	s.process = start(s.t, s.name, nil, nil, s.dir, argv...)
	eventually(t, time.Minute, s.name+" registers", func() bool {
		select {
		case <-s.process.done:
			t.Fatalf("%s has ended:\n%s", s.name, s.process.out)
		default:
		}
		for _, r := range s.admin.asked("registry") {
			var reg wire.RegistryRequest
			if err := reg.Decode([]byte(r.body)); err != nil {
				t.Fatal(err)
			}
			if r.at.After(began) && strings.Contains(reg.RegistryValue, fmt.Sprintf(":%d", s.port)) {
				s.address = reg.RegistryValue
				return true
			}
		}
		return false
	})
	s.client = s.clientWith(t, theToken)
	eventually(t, time.Minute, s.name+" answers", func() bool { // some register before they listen
		r, err := s.client.Beat(t.Context())
		return err == nil && r.OK()
	})
}

func (s *site) clientWith(t *testing.T, token string) *wire.ExecutorClient {
	t.Helper()
	c, err := wire.NewExecutorClient(s.address, wire.ClientConfig{App: theApp, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// freePort returns a port that nobody listens on, out of the range that systems
// give to outgoing connections.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 20000 + rand.IntN(10000)
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatal("no free port found")
	return 0
}

// id returns a number that no run and no job of this site has had.
func (s *site) id() int64 { return s.lastID.Add(1) }

// request makes a run of a new job that does not wait for its like.
func (s *site) request(handler, param string) wire.TriggerRequest {
	return wire.TriggerRequest{
		JobID: s.id(), LogID: s.id(), LogDateTime: time.Now().UnixMilli(),
		ExecutorHandler: handler, ExecutorParams: param, ExecutorBlockStrategy: "SERIAL_EXECUTION",
		GlueType: wire.GlueBean, BroadcastTotal: 1,
	}
}

// send sends a run and returns the answer.
func (s *site) send(t *testing.T, req wire.TriggerRequest) wire.Return {
	t.Helper()
	r, err := s.client.Run(t.Context(), req)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return r
}

// accepted sends a run that has to be accepted, and to start as often as said.
func (s *site) accepted(t *testing.T, req wire.TriggerRequest, starts int) {
	t.Helper()
	if r := s.send(t, req); !r.OK() {
		t.Fatalf("run %+.100v was refused: %+v", req, r)
	}
	s.starts[req.LogID] = starts
}

// refused sends a run that has to be refused, with a text that contains another.
func (s *site) refused(t *testing.T, req wire.TriggerRequest, text string) {
	t.Helper()
	r := s.send(t, req)
	if r.OK() || !strings.Contains(r.Msg, text) {
		t.Errorf("run %+.100v was answered %+v, want a refusal with %q", req, r, text)
	}
	s.starts[req.LogID] = 0
}

// resultIs waits for the result of a run and compares it.
func (s *site) resultIs(t *testing.T, req wire.TriggerRequest, want outcome) {
	t.Helper()
	s.resultWithin(t, 20*time.Second, req, want)
}

func (s *site) resultWithin(t *testing.T, patience time.Duration, req wire.TriggerRequest, want outcome) {
	t.Helper()
	var got []result
	eventually(t, patience, fmt.Sprintf("a result of run %d (%s)", req.LogID, req.ExecutorHandler), func() bool {
		got = s.admin.resultsOf(req.LogID)
		return len(got) > 0
	})
	if got[0].HandleCode != want.code || !want.fits(got[0].HandleMsg) {
		t.Errorf("run %d has the result %d %q, want %v", req.LogID, got[0].HandleCode, got[0].HandleMsg, want)
	}
	if !s.ownDate && got[0].LogDateTim != req.LogDateTime {
		t.Errorf("the result of run %d has the date %d, want %d", req.LogID, got[0].LogDateTim, req.LogDateTime)
	}
}

// started waits until the handler of a run is started.
func (s *site) started(t *testing.T, req wire.TriggerRequest) {
	t.Helper()
	eventually(t, 10*time.Second, fmt.Sprintf("run %d starts", req.LogID), func() bool {
		return len(s.entries(t, req.LogID, "start")) > 0
	})
}

// entry is a line of the journal.
type entry struct {
	run, job       int64
	handler, phase string
	at             int64 // ms
}

func (s *site) journalFile() string { return filepath.Join(s.dir, "journal") }

// journal reads what the handlers have written so far.
func (s *site) journal(t *testing.T) []entry {
	t.Helper()
	b, err := os.ReadFile(s.journalFile())
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
func (s *site) entries(t *testing.T, run int64, phase string) []entry {
	t.Helper()
	var found []entry
	for _, e := range s.journal(t) {
		if e.run == run && (e.phase == phase || phase == "" && e.phase != "start") {
			found = append(found, e)
		}
	}
	return found
}

// counted compares how often each handler was started with what the scenarios
// have said.
func (s *site) counted(t *testing.T) {
	t.Helper()
	got := map[int64]int{}
	for _, e := range s.journal(t) {
		if e.phase == "start" {
			got[e.run]++
		}
	}
	for run, n := range s.starts {
		if got[run] != n {
			t.Errorf("the handler of run %d was started %d times, want %d", run, got[run], n)
		}
		delete(got, run)
	}
	for run := range s.starts {
		// An admin has to live with these: they are logged, not judged.
		if all := s.admin.resultsOf(run); len(all) > s.starts[run] && len(all) > 1 {
			for _, r := range all {
				t.Logf("run %d, started %d times, was reported as %d %q", run, s.starts[run], r.HandleCode, r.HandleMsg)
			}
		}
	}
	for run, n := range got {
		t.Errorf("the handler of run %d was started %d times, and nobody had asked for it", run, n)
	}
}
