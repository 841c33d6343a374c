package interop_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// site is one peer at an admin of the test's.
type site struct {
	*instance
	admin   *admin
	address string // as the peer registered it
	client  *wire.ExecutorClient

	lastID atomic.Int64
	starts starts
}

// newSite starts a peer at an admin, and waits until it has registered.
func newSite(t *testing.T, k kind, a *admin) *site {
	t.Helper()
	s := &site{instance: newInstance(t, k, freePort(t)), admin: a, starts: starts{}}
	s.lastID.Store(time.Now().Unix())
	s.run(t)
	return s
}

// run starts the peer, again on the same address, and waits until it is there.
func (s *site) run(t *testing.T) {
	t.Helper()
	began := time.Now()
	s.launch(t, s.admin.addr)
	eventually(t, time.Minute, s.name+" registers", func() bool {
		s.lives(t)
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
	s.answers(t, s.client)
}

func (s *site) clientWith(t *testing.T, token string) *wire.ExecutorClient {
	t.Helper()
	c, err := wire.NewExecutorClient(s.address, wire.ClientConfig{App: theApp, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// post sends a body to an endpoint, in the name of an app, and returns the answer as
// it came.
func (s *site) post(t *testing.T, endpoint string, body []byte, app string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimSuffix(s.address, "/")+"/"+endpoint, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json;charset=UTF-8")
	req.Header.Set(wire.HeaderToken, theToken)
	req.Header.Set(wire.HeaderApp, app)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
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
		t.Fatalf("run %s was refused: %+v", brief(req), r)
	}
	s.starts[req.LogID] = starts
}

// refused sends a run that has to be refused, with a text that contains another.
func (s *site) refused(t *testing.T, req wire.TriggerRequest, text string) {
	t.Helper()
	r := s.send(t, req)
	if r.OK() || !strings.Contains(r.Msg, text) {
		t.Errorf("run %s was answered %+v, want a refusal with %q", brief(req), r, text)
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
	s.hasStarted(t, req.LogID)
}

// counted compares how often each handler was started with what the scenarios
// have said.
func (s *site) counted(t *testing.T) {
	t.Helper()
	s.starts.compare(t, s.journal(t))
	for run := range s.starts {
		// An admin has to live with these: they are logged, not judged.
		if all := s.admin.resultsOf(run); len(all) > s.starts[run] && len(all) > 1 {
			for _, r := range all {
				t.Logf("run %d, started %d times, was reported as %d %q", run, s.starts[run], r.HandleCode, r.HandleMsg)
			}
		}
	}
}
