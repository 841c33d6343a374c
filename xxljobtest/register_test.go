package xxljobtest_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/wire"
	"github.com/xxljob/xxljob/xxljobtest"
)

// handlerOf is what executors call.
func handlerOf(t testing.TB, s xxljob.Scheduler) http.Handler {
	t.Helper()
	h, err := s.AdminHandler()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func addressesOf(t testing.TB, s *xxljobtest.Scheduler, app string) (list []string) {
	t.Helper()
	regs, err := s.Store.Registrations(t.Context(), xxljob.RegistrationFilter{App: app})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range regs {
		list = append(list, r.Address)
	}
	return list
}

// TestRegister: an executor that has registered stays registered until it says good-bye,
// and is forgotten when it is closed without a word.
func TestRegister(t *testing.T) {
	for _, g := range generations {
		t.Run(g.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far", Generation: g, Token: "hush-hush"})
				s := xxljobtest.NewWith(t, xxljobtest.Options{Config: xxljob.Config{HTTP: xxljob.HTTPConfig{
					Tokens: map[string][]string{"": {"hush-hush"}}, Transport: xxljobtest.Transport(t, e),
				}}}, remote)
				if run := s.RunNow("j"); run.State != xxljob.StateRefused {
					t.Errorf("nobody is there: %v", run.State)
				}
				e.Register(handlerOf(t, s))
				for range 2 {
					time.Sleep(time.Hour)
					if run := s.RunNow("j"); run.State != xxljob.StateSucceeded {
						t.Errorf("%v: %s", run.State, run.TriggerMsg)
					}
					e.Register(handlerOf(t, s)) // again: there is one heartbeat
				}
				e.Unregister()
				time.Sleep(2 * time.Second)
				if run := s.RunNow("j"); run.State != xxljob.StateRefused || len(addressesOf(t, s, "far")) != 0 {
					t.Errorf("after its good-bye: %v, %v", run.State, addressesOf(t, s, "far"))
				}
				e.Register(handlerOf(t, s))
				e.Close()
				time.Sleep(2 * time.Minute)
				if run := s.RunNow("j"); run.State != xxljob.StateRefused || !strings.Contains(run.HandleMsg, "address") {
					t.Errorf("after its end: %v %q", run.State, run.HandleMsg)
				}
			})
		})
	}
}

// TestManualGroup: the scheduler has the address from the test, and the results come.
func TestManualGroup(t *testing.T) {
	inAndOut(t, func(t *testing.T) {
		e := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far", Token: "hush-hush"})
		s := xxljobtest.NewWith(t, xxljobtest.Options{Config: xxljob.Config{HTTP: xxljob.HTTPConfig{
			Tokens: map[string][]string{"far": {"hush-hush"}}, Transport: xxljobtest.Transport(t, e),
		}}}, remote)
		if err := s.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{e.Address()}}); err != nil {
			t.Fatal(err)
		}
		e.ReportTo(handlerOf(t, s))
		if run := s.RunNow("j"); run.State != xxljob.StateSucceeded {
			t.Errorf("%v: %s", run.State, run.TriggerMsg)
		}
		if list := addressesOf(t, s, "far"); len(list) != 0 {
			t.Errorf("registered: %v", list)
		}
	})
}

// TestNobodyToReportTo fails the test: the run would never end.
func TestNobodyToReportTo(t *testing.T) {
	inAndOut(t, func(t *testing.T) {
		r := record(t, func(t testing.TB) {
			e := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far"})
			s := xxljobtest.NewWith(t, xxljobtest.Options{Config: xxljob.Config{HTTP: xxljob.HTTPConfig{Insecure: true, Transport: xxljobtest.Transport(t, e)}}}, remote)
			if err := s.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{e.Address()}}); err != nil {
				t.Fatal(err)
			}
			id := trigger(t, s, "j")
			e.WaitRun(t.Context(), 1)
			e.Report(id, wire.CodeSuccess, "")
		})
		if !strings.Contains(r.fatal, "Report: run ") || !strings.Contains(r.fatal, "no scheduler is known: call Register, or ReportTo") {
			t.Errorf("%q", r.fatal)
		}
		if len(r.errors) > 1 || len(r.errors) == 1 && !strings.Contains(r.errors[0], "no scheduler is known") {
			t.Errorf("%q", r.errors)
		}
	})
}

// TestResultsWithoutScheduler: a result that comes by itself and that nobody can have is an
// error of the test.
func TestResultsWithoutScheduler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t, func(t testing.TB) {
			e := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far"})
			c, err := wire.NewExecutorClient(e.Address(), wire.ClientConfig{Transport: xxljobtest.Transport(t, e)})
			if err != nil {
				t.Fatal(err)
			}
			if ret, err := c.Run(t.Context(), wire.TriggerRequest{LogID: 7, JobID: 1}); err != nil || !ret.OK() {
				t.Fatalf("%+v, %v", ret, err)
			}
			time.Sleep(time.Second)
		})
		if r.fatal != "" || len(r.errors) != 1 || !strings.Contains(r.errors[0], "the result of run 7: no scheduler is known") {
			t.Errorf("%q, %q", r.fatal, r.errors)
		}
	})
}

// TestRegisterRefused: a registration that is refused fails the test, in the words of the
// scheduler.
func TestRegisterRefused(t *testing.T) {
	for name, c := range map[string]struct {
		o     xxljobtest.ExecutorOptions
		admin http.Handler // in place of the scheduler's
		want  string
	}{
		"another token": {xxljobtest.ExecutorOptions{App: "far", Token: "guess"}, nil, wire.MsgTokenWrong},
		"no token":      {xxljobtest.ExecutorOptions{App: "far"}, nil, wire.MsgTokenWrong},
		"G4":            {xxljobtest.ExecutorOptions{App: "far", Token: "guess", Generation: xxljobtest.G4}, nil, wire.MsgIdentityInvalid},
		"not there":     {xxljobtest.ExecutorOptions{App: "far"}, http.NotFoundHandler(), "HTTP status 404"},
		"no admin": {xxljobtest.ExecutorOptions{App: "far"}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<html>"))
		}), "the answer is"},
	} {
		got := failure(t, func(t testing.TB) {
			e := xxljobtest.NewExecutor(t, c.o)
			s := xxljobtest.NewWith(t, xxljobtest.Options{Config: xxljob.Config{HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"far": {"hush-hush"}}}}})
			admin := c.admin
			if admin == nil {
				admin = handlerOf(t, s)
			}
			e.Register(admin)
		})
		if !strings.Contains(got, `app "far": Register: `) || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := failure(t, func(t testing.TB) {
		xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far"}).Register(nil)
	}); !strings.Contains(got, "the admin is nil") {
		t.Errorf("%q", got)
	}
}

// heard keeps the paths at which an admin was called, and has it fail for a while.
type heard struct {
	http.Handler
	mu     sync.Mutex
	paths  []string // guarded by mu
	broken bool     // guarded by mu
}

func (h *heard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.paths = append(h.paths, r.URL.Path)
	broken := h.broken
	h.mu.Unlock()
	if broken {
		http.Error(w, "later", http.StatusServiceUnavailable)
		return
	}
	h.Handler.ServeHTTP(w, r)
}

func (h *heard) fail(yes bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.broken = yes
}

// TestSchedulerAway: an executor whose scheduler does not answer says so in the log of the
// test, and sends its results again until they are acknowledged, and no more.
func TestSchedulerAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *heard
		r := record(t, func(t testing.TB) {
			e := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far", Generation: xxljobtest.G4, Token: "hush-hush"})
			s := xxljobtest.NewWith(t, xxljobtest.Options{Executors: []*xxljobtest.Executor{e}}, remote)
			h = &heard{Handler: handlerOf(t, s)}
			e.Register(h)
			h.fail(true)
			id := trigger(t, s, "j")
			time.Sleep(65 * time.Second)
			h.fail(false)
			if run := s.WaitRun(id); run.State != xxljob.StateSucceeded {
				t.Fatalf("%v: %s", run.State, run.TriggerMsg)
			}
			time.Sleep(time.Hour)
		})
		if r.fatal != "" || len(r.errors) != 0 {
			t.Error(r.fatal, r.errors)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		calls := 0
		for _, p := range h.paths {
			calls += strings.Count(p, "/api/callback")
		}
		if calls != 4 { // at once, after 30 s, after 60 s, and after 90 s
			t.Errorf("%d callbacks", calls)
		}
		for _, want := range []string{"heartbeat: HTTP status 503", "the result of run 1, which comes again in 30s: HTTP status 503"} {
			if !slices.ContainsFunc(r.logs, func(l string) bool { return strings.Contains(l, want) }) {
				t.Errorf("the log does not say %q: %q", want, r.logs)
			}
		}
	})
}
