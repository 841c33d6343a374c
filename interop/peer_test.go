package interop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// TestPeers puts every peer through all scenarios, one after the other, and the
// peers beside each other, for most of the time is spent waiting.
func TestPeers(t *testing.T) {
	t.Parallel()
	all := kinds(t)
	sums := make([]summary, len(all))
	t.Cleanup(func() {
		for i, k := range all {
			t.Log(sums[i].of(k, len(scenarios)))
		}
	})
	for i, k := range all {
		sum := &sums[i]
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, k, newAdmin(t))
			for _, sc := range scenarios {
				sum.run(t, sc.name, func(t *testing.T) { sc.run(t, s) })
			}
			s.counted(t)
		})
	}
}

// summary is what became of the scenarios of a peer.
type summary struct {
	ran             int
	failed, skipped []string
}

// run runs one scenario.
func (s *summary) run(t *testing.T, name string, scenario func(*testing.T)) {
	t.Run(name, func(t *testing.T) {
		defer func() {
			switch {
			case t.Failed():
				s.failed = append(s.failed, name)
			case t.Skipped():
				s.skipped = append(s.skipped, name)
			default:
				s.ran++
			}
		}()
		scenario(t)
	})
}

// of says it for people.
func (s *summary) of(k kind, all int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %d scenarios as expected", k.name, s.ran, all)
	if s.ran+len(s.failed)+len(s.skipped) == 0 {
		return k.name + ": NOT RUN"
	}
	if len(s.failed) > 0 {
		fmt.Fprintf(&b, ", FAILED: %s%s", strings.Join(s.failed, "; "), &stalls)
	}
	if len(s.skipped) > 0 {
		fmt.Fprintf(&b, ", SKIPPED: %s", strings.Join(s.skipped, "; "))
	}
	for _, why := range k.why {
		fmt.Fprintf(&b, "\n  it %s", why)
	}
	return b.String()
}

// scenarios are in the order in which they run: the last ones end the peer.
var scenarios = []struct {
	name string
	run  func(t *testing.T, s *site)
}{
	{"registers", registers},
	{"token", tokens},
	{"idle beat", idleBeat},
	{"parameters survive", parameters},
	{"empty parameters", nothing},
	{"form of results", formOfResults},
	{"form of triggers", formOfTriggers},
	{"caller of another app", otherApp},
	{"unknown handler", unknownHandler},
	{"jobs run in parallel", parallelJobs},
	{"jobs share a handler", sharedHandler},
	{"shard", shard},
	{"serial", serial},
	{"discard later", discardLater},
	{"cover early", coverEarly},
	{"timeout", timeout},
	{"kill running and queued", kill},
	{"kill nothing", killNothing},
	{"failing handler", failing},
	{"rolling log", rollingLog},
	{"same id queued", repeatQueued},
	{"same id running", repeatRunning},
	{"same id at once", repeatAtOnce},
	{"ids begin anew", idsBeginAnew},
	{"heartbeat", heartbeat}, // the outage hides some
	{"admin away for 20 s", adminAway},
	{"restart on the same address", restart},
	{"leaves", leaves},
}

func success(text string) outcome { return outcome{code: wire.CodeSuccess, text: text} }

// Parameters of the handler sleep, in milliseconds.
const (
	// forever outlasts every test.
	forever = "60000"
	// meanwhile is enough for what a test does before the handler's end, on a
	// machine that does much else.
	meanwhile = "4000"
	slept     = "slept " + meanwhile
)

func registers(t *testing.T, s *site) {
	if want := s.registers(); s.address != want {
		t.Errorf("registered %q, want %q", s.address, want)
	}
	r := s.admin.asked("registry")[0]
	if r.path != s.base+"/api/registry" {
		t.Errorf("registered at %s", r.path)
	}
	if token := r.header.Get(wire.HeaderToken); token != theToken {
		t.Errorf("registered with the token %q", token)
	}
	if app := r.header.Get(wire.HeaderApp); s.identity && app != theApp || !s.identity && app != "" {
		t.Errorf("registered with the app %q in the header", app)
	}
}

func tokens(t *testing.T, s *site) {
	for _, token := range []string{"", "wrong"} {
		r, err := s.clientWith(t, token).Beat(t.Context())
		switch {
		case err != nil:
			t.Error(err)
		case s.noToken && !r.OK():
			t.Errorf("with the token %q: %+v, want none to be looked at", token, r)
		case !s.noToken && !r.Unauthorized():
			t.Errorf("with the token %q: %+v, want a refusal", token, r)
		}
	}
}

func idleBeat(t *testing.T, s *site) {
	req := s.request("sleep", meanwhile)
	idle := func() wire.Return {
		r, err := s.client.IdleBeat(t.Context(), wire.IdleBeatRequest{JobID: req.JobID})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := idle(); !r.OK() {
		t.Errorf("before: %+v", r)
	}
	s.accepted(t, req, 1)
	if r := idle(); r.OK() || !strings.Contains(r.Msg, s.busy) {
		t.Errorf("while it runs: %+v, want %q", r, s.busy)
	}
	s.resultIs(t, req, success(slept))
	eventually(t, time.Minute, "it is idle again", func() bool { return idle().OK() })
}

// awkward is a parameter with everything that is escaped somewhere.
const awkward = `a=<b>&'c' "d" \e /f 中文 😀 {} %s %d` + "\n\tsecond line \u2028 \u00e9"

// long is a parameter of several thousand bytes.
var long = strings.Repeat("长", 2000)

func parameters(t *testing.T, s *site) {
	for _, param := range []string{awkward, "", long} {
		req := s.request("echo", param)
		s.accepted(t, req, 1)
		s.resultIs(t, req, success(param))
		if log := s.log(t, req, 1); !strings.Contains(strings.ReplaceAll(log.LogContent, "\r\n", "\n"), param) {
			t.Errorf("the log has not the parameter: %q", log.LogContent)
		}
	}
}

func formOfResults(t *testing.T, s *site) {
	req := s.request("count", "")
	s.accepted(t, req, 1)
	s.resultIs(t, req, success(""))
	sent := s.admin.asked("callback")
	body := sent[len(sent)-1].body
	for _, key := range []string{"executeResult", "handleCode"} {
		if got, want := strings.Contains(body, `"`+key+`"`), slices.Contains(s.results, key); got != want {
			t.Errorf("the results %s have %s: %v, want %v", body, key, got, want)
		}
	}
	if strings.HasPrefix(body, "[") != s.list || strings.HasPrefix(body, `{"callbackList":[`) == s.list {
		t.Errorf("the results are a list: %v, want %v: %s", !s.list, s.list, body)
	}
	if date := map[bool]string{true: `"logDateTim"`, false: `"logDateTime"`}[s.list]; !strings.Contains(body, date) {
		t.Errorf("the results %s have no %s", body, date)
	}
}

// formOfTriggers sends a run that nobody has a handler for to each endpoint by which
// one is known: what does not know the endpoint does not get as far as the handler.
func formOfTriggers(t *testing.T, s *site) {
	for _, endpoint := range []string{"run", "trigger"} {
		req := s.request("nobody", "")
		s.starts[req.LogID] = 0
		answer := s.post(t, endpoint, req.Encode(nil), theApp)
		if got, want := strings.Contains(answer, s.noHandler), slices.Contains(s.triggers, endpoint); got != want {
			t.Errorf("/%s is known: %v, want %v: %s", endpoint, got, want, answer)
		}
	}
}

// otherApp calls with the right token in the name of another app.
func otherApp(t *testing.T, s *site) {
	answer := s.post(t, "beat", []byte(`""`), "another-app")
	if got := strings.Contains(answer, wire.MsgIdentityInvalid); got != s.identity {
		t.Errorf("refused: %v, want %v: %s", got, s.identity, answer)
	}
}

// nothing sends runs with an empty parameter, which no handler may see as null.
func nothing(t *testing.T, s *site) {
	for _, param := range []string{"", " "} {
		req := s.request("quote", param)
		s.accepted(t, req, 1)
		s.resultIs(t, req, success(`"`+param+`"`))
	}
}

func unknownHandler(t *testing.T, s *site) { s.refused(t, s.request("nobody", ""), s.noHandler) }
