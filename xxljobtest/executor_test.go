package xxljobtest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/wire"
	"github.com/xxljob/xxljob/xxljobtest"
)

// generations are all there are.
var generations = []xxljobtest.Generation{xxljobtest.G1, xxljobtest.G2, xxljobtest.G3, xxljobtest.G4}

// eachGeneration runs a test with a fake of each generation and a scheduler of its own, in
// a bubble and outside.
func eachGeneration(t *testing.T, f func(t *testing.T, s *xxljobtest.Scheduler, e *xxljobtest.Executor)) {
	for _, g := range generations {
		t.Run(g.String(), func(t *testing.T) {
			inAndOut(t, func(t *testing.T) {
				e := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far", Generation: g, Token: "hush-hush", Answer: every(xxljobtest.Accept())})
				f(t, xxljobtest.NewWith(t, xxljobtest.Options{Executors: []*xxljobtest.Executor{e}}, remote), e)
			})
		})
	}
}

// TestExecutorRecordsRuns: everything that a scheduler says of a run is there.
func TestExecutorRecordsRuns(t *testing.T) {
	eachGeneration(t, func(t *testing.T, s *xxljobtest.Scheduler, e *xxljobtest.Executor) {
		job, err := s.AddJob(t.Context(), xxljob.Job{App: "far", Name: "k", Handler: "h", Param: "<a> & 中文\n", Timeout: 7 * time.Second, Schedule: xxljob.Manual()})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		id := trigger(t, s, "k")
		run := e.WaitRun(t.Context(), 1)
		if run.JobID != job.ID || run.LogID != id || run.ExecutorHandler != "h" || run.ExecutorParams != job.Param || run.ExecutorTimeout != 7 ||
			run.GlueType != wire.GlueBean || run.BroadcastIndex != 0 || run.BroadcastTotal != 1 || run.ExecutorBlockStrategy != "SERIAL_EXECUTION" {
			t.Errorf("%+v", run)
		}
		if run.Arrived.Before(began) || run.Arrived.After(time.Now()) {
			t.Errorf("arrived %v, now it is %v", run.Arrived, time.Now())
		}
		e.Report(id, wire.CodeSuccess, "<b>")
		if got := s.WaitRun(id); got.State != xxljob.StateSucceeded || got.HandleMsg != "<b>" {
			t.Errorf("%v %q", got.State, got.HandleMsg)
		}
		if runs := e.Runs(); len(runs) != 1 || runs[0] != run {
			t.Errorf("%+v", runs)
		}
	})
}

// TestExecutorsOfOneApp: a broadcast has a part for each, and a route asks the next one
// where the first is closed.
func TestExecutorsOfOneApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fakes []*xxljobtest.Executor
		for _, host := range []string{"a", "b", "c"} {
			fakes = append(fakes, xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far", Address: "http://" + host + ".test"}))
		}
		s := xxljobtest.NewWith(t, xxljobtest.Options{Executors: fakes},
			xxljob.Job{App: "far", Name: "all", Handler: "h", Route: route.ShardingBroadcast, Schedule: xxljob.Cron("0 0 1 * * ?")},
			xxljob.Job{App: "far", Name: "one", Handler: "h", Route: route.Failover})
		time.Sleep(time.Hour)
		for i, e := range fakes {
			if run := e.WaitRun(t.Context(), 1); run.BroadcastIndex != i || run.BroadcastTotal != 3 {
				t.Errorf("%s: part %d of %d", e.Address(), run.BroadcastIndex, run.BroadcastTotal)
			}
		}
		fakes[0].Close()
		if run := s.RunNow("one"); run.State != xxljob.StateSucceeded || run.Address != "http://b.test" {
			t.Errorf("%v at %s: %s", run.State, run.Address, run.TriggerMsg)
		}
		if n := []int{len(fakes[0].Runs()), len(fakes[1].Runs()), len(fakes[2].Runs())}; !slices.Equal(n, []int{1, 2, 1}) {
			t.Errorf("runs: %v", n)
		}
	})
}

// TestExecutorIsBusy: its job is busy from when a run comes until it is reported.
func TestExecutorIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		accept := every(xxljobtest.Accept())
		a := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far", Address: "http://a.test/", Answer: accept})
		b := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far", Address: "http://b.test/", Answer: accept})
		s := xxljobtest.NewWith(t, xxljobtest.Options{Executors: []*xxljobtest.Executor{a, b}},
			xxljob.Job{App: "far", Name: "j", Handler: "h", Route: route.Busyover})
		first := trigger(t, s, "j")
		a.WaitRun(t.Context(), 1)
		second := trigger(t, s, "j")
		b.WaitRun(t.Context(), 1)
		if run := s.RunNow("j"); run.State != xxljob.StateRefused {
			t.Errorf("both are busy: %v at %s", run.State, run.Address)
		}
		a.Report(first, wire.CodeSuccess, "")
		b.Report(second, wire.CodeSuccess, "")
		time.Sleep(10 * time.Second) // schedulers remember what executors said a moment ago
		trigger(t, s, "j")
		a.WaitRun(t.Context(), 2)
	})
}

// TestNewExecutorWithBadOptions fails the test with every fault at once.
func TestNewExecutorWithBadOptions(t *testing.T) {
	for _, c := range []struct {
		o    xxljobtest.ExecutorOptions
		want []string
	}{
		{xxljobtest.ExecutorOptions{}, []string{"App is required"}},
		{xxljobtest.ExecutorOptions{App: " "}, []string{"App is required"}},
		{xxljobtest.ExecutorOptions{App: strings.Repeat("a", 65)}, []string{"App has more than 64 bytes"}},
		{xxljobtest.ExecutorOptions{App: "a\nb"}, []string{"App has", "control characters"}},
		{xxljobtest.ExecutorOptions{App: "a", Generation: 5}, []string{`app "a"`, "Generation 5 is unknown: want G1 to G4"}},
		{xxljobtest.ExecutorOptions{App: "a", Generation: -1}, []string{"Generation -1 is unknown"}},
		{xxljobtest.ExecutorOptions{App: "a", Generation: xxljobtest.G4}, []string{"Token is empty"}},
		{xxljobtest.ExecutorOptions{App: "a", Token: "a\r\nb"}, []string{"Token has control characters"}},
		{xxljobtest.ExecutorOptions{App: "a", Token: " a"}, []string{"Token has", "blanks"}},
		{xxljobtest.ExecutorOptions{App: "a", Address: "a.test"}, []string{`Address "a.test"`, "must begin with http://"}},
		{xxljobtest.ExecutorOptions{App: "a", Address: "https://a.test"}, []string{"want http"}},
		{xxljobtest.ExecutorOptions{App: "a", Address: "http://a.test/", Listen: true}, []string{"options Address and Listen exclude"}},
		{xxljobtest.ExecutorOptions{Generation: 9, Token: "\x00", Address: "x"}, []string{"App is", "Generation 9", "Token has", "Address"}},
	} {
		got := failure(t, func(t testing.TB) { xxljobtest.NewExecutor(t, c.o) })
		if !strings.HasPrefix(got, "xxljobtest: NewExecutor: app ") {
			t.Errorf("%+v: %q", c.o, got)
		}
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%+v: %q, want %q", c.o, got, want)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		got := failure(t, func(t testing.TB) {
			xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "a", Listen: true})
		})
		if !strings.Contains(got, "option Listen does not work in a bubble") {
			t.Errorf("%q", got)
		}
	})
}

func TestNewExecutorWithoutATest(t *testing.T) {
	defer func() {
		if p := recover(); p != "xxljobtest: NewExecutor: t is nil" {
			t.Errorf("panic %v", p)
		}
	}()
	xxljobtest.NewExecutor(nil, xxljobtest.ExecutorOptions{App: "a"})
}

// TestAddresses: what is made of an app's name, and what is given, can be registered.
func TestAddresses(t *testing.T) {
	for app, want := range map[string]string{
		"reports": "http://reports.test:9999/", "My_App 2": "http://my-app-2.test:9999/", "报表": "http://executor.test:9999/",
	} {
		e := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: app})
		if e.Address() != want || e.App() != app {
			t.Errorf("%q: %s of app %q, want %s", app, e.Address(), e.App(), want)
		}
	}
	for _, address := range []string{"http://A.test", "http://a.test:80/", "http://[::1]:9999/", "http://a.test/mounted/here/", "http://a.test/mounted"} {
		e := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far", Address: address})
		s := xxljobtest.NewWith(t, xxljobtest.Options{Executors: []*xxljobtest.Executor{e}}, remote)
		if run := s.RunNow("j"); run.State != xxljob.StateSucceeded || run.Address != address {
			t.Errorf("%s: %v at %s: %s", address, run.State, run.Address, run.TriggerMsg)
		}
	}
}

// TestListen: a scheduler without a Transport of ours reaches an executor on a port.
func TestListen(t *testing.T) {
	e := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far", Listen: true})
	if !strings.HasPrefix(e.Address(), "http://127.0.0.1:") {
		t.Fatal(e.Address())
	}
	transport := wire.NewTransport(wire.TransportConfig{})
	t.Cleanup(transport.CloseIdle)
	for _, tr := range []*wire.Transport{transport, xxljobtest.Transport(t, e)} {
		s := xxljobtest.NewWith(t, xxljobtest.Options{
			Config: xxljob.Config{HTTP: xxljob.HTTPConfig{Insecure: true, Transport: tr}}, Executors: []*xxljobtest.Executor{e},
		}, remote)
		if run := s.RunNow("j"); run.State != xxljob.StateSucceeded {
			t.Errorf("%v: %s", run.State, run.TriggerMsg)
		}
	}
}

// TestTransport refuses what cannot be told apart, and leads nowhere else.
func TestTransport(t *testing.T) {
	a := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far"})
	twin := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far"})
	for want, list := range map[string][]*xxljobtest.Executor{
		`two executors, of the apps "far" and "far", have the address http://far.test:9999/`: {a, twin},
		"executor 1 is nil": {a, nil},
	} {
		if got := failure(t, func(t testing.TB) { xxljobtest.Transport(t, list...) }); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for want, list := range map[string][]*xxljobtest.Executor{"two executors": {a, twin}, "NewWith: executor 0 is nil": {nil}} {
		if got := failure(t, func(t testing.TB) { xxljobtest.NewWith(t, xxljobtest.Options{Executors: list}) }); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	c, err := wire.NewExecutorClient("http://elsewhere.test:9999/", wire.ClientConfig{Transport: xxljobtest.Transport(t, a, a)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Beat(t.Context()); !wire.NotSent(err) || !strings.Contains(err.Error(), "no executor of the test is at elsewhere.test:9999; there are far.test:9999") {
		t.Error(err)
	}
}

// TestWaitRunThatEnds: the test fails when there is nothing to wait for any more.
func TestWaitRunThatEnds(t *testing.T) {
	inAndOut(t, func(t *testing.T) {
		s, e := far(t, nil, remote)
		s.RunNow("j")
		got := failure(t, func(tb testing.TB) {
			e := xxljobtest.NewExecutor(tb, xxljobtest.ExecutorOptions{App: "idle"})
			ctx, cancel := context.WithCancel(tb.Context())
			cancel()
			e.WaitRun(ctx, 1)
		})
		if !strings.Contains(got, `app "idle": WaitRun: context canceled; it was asked for 0 runs, want 1`) {
			t.Errorf("%q", got)
		}
		got = failure(t, func(tb testing.TB) {
			xxljobtest.NewExecutor(tb, xxljobtest.ExecutorOptions{App: "idle"}).WaitRun(tb.Context(), 0)
		})
		if !strings.Contains(got, "counted from 1, and not 0") {
			t.Errorf("%q", got)
		}
		e.WaitRun(t.Context(), 1) // is there already
	})
}
