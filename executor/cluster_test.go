package executor_test

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

const self = "http://10.0.0.7:9999/"

// node is one process of an admin, which can be down.
type node struct {
	admin
	onBeat func() // called by each registration, if not nil

	mu         sync.Mutex
	down       bool   // guarded by mu
	refusal    string // guarded by mu: of registrations
	cutOff     bool   // guarded by mu: a registration was cancelled
	registered []beat // guarded by mu
	removed    []beat // guarded by mu
}

// beat is one registration, and when it was.
type beat struct {
	at  time.Time
	req wire.RegistryRequest
}

func newNode() *node {
	n := new(node)
	n.answer = func([]wire.CallbackRequest) (wire.Return, error) { return n.state() }
	return n
}

func (n *node) set(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
}

func (n *node) refuse(msg string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refusal = msg
}

func (n *node) state() (wire.Return, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		return wire.Return{}, errBoom
	}
	return wire.Success(), nil
}

func (n *node) Registry(ctx context.Context, req wire.RegistryRequest) (wire.Return, error) {
	if n.onBeat != nil {
		n.onBeat()
	}
	n.mu.Lock()
	n.registered = append(n.registered, beat{time.Now(), req})
	n.cutOff = n.cutOff || ctx.Err() != nil
	refusal := n.refusal
	n.mu.Unlock()
	if refusal != "" {
		return wire.Failf("%s", refusal), nil
	}
	return n.state()
}

func (n *node) RegistryRemove(_ context.Context, req wire.RegistryRequest) (wire.Return, error) {
	n.mu.Lock()
	n.removed = append(n.removed, beat{time.Now(), req})
	n.mu.Unlock()
	return n.state()
}

func (n *node) beats() []beat {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.registered)
}

func (n *node) goodbyes() []beat {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.removed)
}

// admins are clusters by name, each with its nodes.
type admins map[string][]*node

// cluster returns the configuration of n nodes that do not exist yet.
func (a admins) cluster(name string, nodes ...*node) executor.AdminCluster {
	a[name] = nodes
	c := executor.AdminCluster{Name: name}
	for i := range nodes {
		c.Addresses = append(c.Addresses, name+"/"+string(rune('0'+i)))
	}
	return c
}

func (a admins) dial(addr string) wire.Admin {
	name, i, _ := strings.Cut(addr, "/")
	return a[name][i[0]-'0']
}

// over makes an executor with admins that are not reached over HTTP. It is stopped
// at the end of the test.
func over(t *testing.T, a admins, cfg executor.Config) *executor.Executor {
	t.Helper()
	if cfg.Address == "" {
		cfg.Address = self
	}
	cfg.App = "app"
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	e, err := executor.NewOver(cfg, a.dial)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Stop(within(t, time.Second)) })
	return e
}

func start(t *testing.T, e *executor.Executor) {
	t.Helper()
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// give hands a run over as the admin of a cluster does.
func give(t *testing.T, e *executor.Executor, cluster string, r wire.TriggerRequest) wire.Return {
	t.Helper()
	ret, err := e.As(cluster).Run(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return ret
}

func mustGive(t *testing.T, e *executor.Executor, cluster string, r wire.TriggerRequest) {
	t.Helper()
	want := wire.Success()
	if r.StartToken != 0 { // which a scheduler of ours sends
		want.BootID = e.Boot()
	}
	if ret := give(t, e, cluster, r); ret != want {
		t.Fatalf("run %d of %s: %+v", r.LogID, cluster, ret)
	}
}

func stop(t *testing.T, e *executor.Executor) {
	t.Helper()
	if err := e.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := admins{}
		one := newNode()
		e := over(t, a, executor.Config{Admins: []executor.AdminCluster{a.cluster("one", one)}})
		began := time.Now()
		start(t, e)
		time.Sleep(65 * time.Second)
		synctest.Wait()
		got := one.beats()
		if len(got) != 3 {
			t.Fatalf("%d registrations in 65 s", len(got))
		}
		for i, b := range got {
			if at := time.Duration(i) * 30 * time.Second; b.at.Sub(began) != at {
				t.Errorf("registration %d after %v, want %v", i, b.at.Sub(began), at)
			}
			want := wire.RegistryRequest{RegistryGroup: "EXECUTOR", RegistryKey: "app", RegistryValue: self}
			if id := b.req.BootID; id == "" || id != got[0].req.BootID {
				t.Errorf("boot id %q", id)
			}
			if !slices.Equal(b.req.Capabilities, []string{wire.CapRepeat, wire.CapConcurrent, wire.CapBoot}) {
				t.Errorf("capabilities %q", b.req.Capabilities)
			}
			if b.req.BootID, b.req.Capabilities = "", nil; b.req.RegistryValue != want.RegistryValue || b.req.RegistryKey != want.RegistryKey || b.req.RegistryGroup != want.RegistryGroup {
				t.Errorf("registered %+v, want %+v", b.req, want)
			}
		}
		stop(t, e)
		bye := one.goodbyes()
		if len(bye) != 1 || bye[0].req.RegistryValue != self {
			t.Errorf("deregistered %+v", bye)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(one.beats()); n != 3 {
			t.Errorf("%d registrations after Stop", n-3)
		}
	})
}

func TestBootIDsDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := admins{}
		one := newNode()
		for range 2 {
			e := over(t, a, executor.Config{Admins: []executor.AdminCluster{a.cluster("one", one)}})
			start(t, e)
			synctest.Wait()
			stop(t, e)
		}
		if b := one.beats(); len(b) != 2 || b[0].req.BootID == b[1].req.BootID {
			t.Errorf("registrations %+v", b)
		}
	})
}

// One warning a streak, and one line when it is over.
func TestRegistrationBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged sharedLines
		a := admins{}
		one := newNode()
		one.refuse(wire.MsgIdentityInvalid) // as G4 does for half a minute
		e := over(t, a, executor.Config{Logger: slog.New(slog.NewTextHandler(&logged, nil)),
			Admins: []executor.AdminCluster{a.cluster("one", one)}})
		start(t, e)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		one.refuse("")
		time.Sleep(time.Minute)
		synctest.Wait()
		pause := time.Second
		got := one.beats()
		for i := 1; i < 15; i++ {
			if d := got[i].at.Sub(got[i-1].at); d > pause || d < pause*3/4 {
				t.Errorf("pause %d is %v, want about %v", i, d, pause)
			}
			pause = min(2*pause, 30*time.Second)
		}
		if lines := logged.String(); strings.Count(lines, "\n") != 2 || !strings.Contains(lines, "level=WARN") ||
			!strings.Contains(lines, wire.MsgIdentityInvalid) || !strings.Contains(lines, `msg="executor: registered"`) {
			t.Errorf("logged:\n%s", lines)
		}
		logged.Reset()
		one.refuse(wire.MsgIdentityInvalid)
		time.Sleep(time.Minute)
		synctest.Wait()
		one.refuse("")
		time.Sleep(time.Minute)
		synctest.Wait()
		if lines := logged.String(); strings.Count(lines, "\n") != 2 || !strings.Contains(lines, `msg="executor: registered again"`) {
			t.Errorf("logged at the second streak:\n%s", lines)
		}
	})
}

// An admin in memory has forgotten its executors when it was started anew: one that saw
// it away, by a beat or by a result, registers within 5 s of its return, and not with
// the next beat.
func TestRegistersSoonAfterAReturn(t *testing.T) {
	for _, c := range []struct {
		name   string
		away   time.Duration // since just after a beat
		result bool          // a run ends meanwhile
	}{
		{"away over a beat", 31 * time.Second, false},
		// Whenever it comes back between two attempts that are half a minute apart.
		{"away for long", 10 * time.Minute, false},
		{"away for long", 10*time.Minute + 5*time.Second, false},
		{"away for long", 10*time.Minute + 10*time.Second, false},
		{"away for long", 10*time.Minute + 15*time.Second, false},
		{"away for long", 10*time.Minute + 20*time.Second, false},
		{"away for a moment, and a result", 2 * time.Second, true},
		{"away for longer, and a result", 20 * time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := admins{}
				one := newNode()
				e := over(t, a, executor.Config{Admins: []executor.AdminCluster{a.cluster("one", one)}})
				handle(t, e, "h", noop)
				start(t, e)
				time.Sleep(time.Second)
				one.set(true)
				if c.result {
					mustGive(t, e, "one", req(1, 1))
				}
				time.Sleep(c.away)
				synctest.Wait()
				one.set(false)
				back, before := time.Now(), len(one.beats())
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if got := one.beats(); len(got) == before {
					t.Errorf("no registration within 5 s; the last was %v before", back.Sub(got[len(got)-1].at))
				}
				if n := len(one.beats()) - before; n > 3 {
					t.Errorf("%d registrations within 5 s", n)
				}
				stop(t, e)
			})
		})
	}
}

// Within a cluster the first node that answers is told, across clusters all are.
func TestAllClustersOneNodeEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := admins{}
		down, up, other := newNode(), newNode(), newNode()
		down.set(true)
		e := over(t, a, executor.Config{Admins: []executor.AdminCluster{a.cluster("one", down, up), a.cluster("two", other, newNode())}})
		handle(t, e, "h", noop)
		start(t, e)
		time.Sleep(40 * time.Second)
		synctest.Wait()
		mustGive(t, e, "one", req(1, 1))
		synctest.Wait()
		if len(down.beats()) != 1 || len(up.beats()) != 2 || len(other.beats()) != 2 || len(a["two"][1].beats()) != 0 {
			t.Errorf("registrations: %d, %d; %d, %d", len(down.beats()), len(up.beats()), len(other.beats()), len(a["two"][1].beats()))
		}
		if one, two := up.beats()[0].req.RegistryValue, other.beats()[0].req.RegistryValue; one != self+"one/" || two != self+"two/" {
			t.Errorf("registered %q and %q", one, two)
		}
		if got := up.ids(); !slices.Equal(got, []int64{1}) || len(down.ids())+len(other.ids()) != 0 {
			t.Errorf("results %v", got)
		}
		down.set(false)
		up.set(true) // now the other way round, in the middle of a call of callback
		mustGive(t, e, "one", req(1, 2))
		synctest.Wait()
		if got := down.ids(); !slices.Equal(got, []int64{2}) {
			t.Errorf("results at the first node %v", got)
		}
		stop(t, e)
		if len(down.goodbyes()) != 1 || len(up.goodbyes()) != 0 || len(other.goodbyes()) != 1 {
			t.Error("not all clusters, or more than one node, was told at Stop")
		}
	})
}

// A registration under way is let finish before the good-bye.
func TestGoodbyeIsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := admins{}
		one := newNode()
		one.onBeat = func() { time.Sleep(500 * time.Millisecond) }
		e := over(t, a, executor.Config{Admins: []executor.AdminCluster{a.cluster("one", one)}})
		start(t, e)
		time.Sleep(100 * time.Millisecond)
		stop(t, e)
		beats, byes := one.beats(), one.goodbyes()
		if one.cutOff {
			t.Error("the registration was cancelled")
		}
		if len(beats) != 1 || len(byes) != 1 || !byes[0].at.Equal(beats[0].at) {
			t.Errorf("registered %+v, deregistered %+v", beats, byes)
		}
	})
}

// An admin that hangs holds a Stop up for 3 s, all of them together.
func TestGoodbyeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := admins{}
		e, err := executor.NewOver(executor.Config{Address: self, Logger: slog.New(slog.DiscardHandler),
			Admins: []executor.AdminCluster{a.cluster("one", nil), a.cluster("two", nil)}}, func(string) wire.Admin { return hung{} })
		if err != nil {
			t.Fatal(err)
		}
		start(t, e)
		time.Sleep(time.Minute)
		synctest.Wait()
		began := time.Now()
		stop(t, e)
		if d := time.Since(began); d != 3*time.Second {
			t.Errorf("Stop took %v", d)
		}
	})
}

// When the time of a call is over no further node is asked.
func TestNoNodeAfterTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		e, err := executor.NewOver(executor.Config{Address: self, Logger: slog.New(slog.DiscardHandler),
			Admins: []executor.AdminCluster{{Addresses: []string{"hung", "well"}}}}, func(addr string) wire.Admin {
			if addr == "hung" {
				return hung{}
			}
			return n
		})
		if err != nil {
			t.Fatal(err)
		}
		start(t, e)
		time.Sleep(time.Second)
		stop(t, e)
		if len(n.beats())+len(n.goodbyes()) != 0 {
			t.Errorf("the second node was told %+v, %+v", n.beats(), n.goodbyes())
		}
	})
}

// hung is an admin that answers nothing.
type hung struct{}

func (hung) Callback(ctx context.Context, _ []wire.CallbackRequest) (wire.Return, error) {
	<-ctx.Done()
	return wire.Return{}, ctx.Err()
}

func (hung) Registry(ctx context.Context, _ wire.RegistryRequest) (wire.Return, error) {
	<-ctx.Done()
	return wire.Return{}, ctx.Err()
}

func (hung) RegistryRemove(ctx context.Context, _ wire.RegistryRequest) (wire.Return, error) {
	<-ctx.Done()
	return wire.Return{}, ctx.Err()
}

// The admins are told first, with runs still accepted; then the handlers are waited
// for, and the results delivered.
func TestStopOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := admins{}
		one := newNode()
		e := over(t, a, executor.Config{Admins: []executor.AdminCluster{a.cluster("one", one)}})
		handle(t, e, "h", func(context.Context, *executor.Task) error { time.Sleep(10 * time.Second); return nil })
		start(t, e)
		synctest.Wait()
		mustGive(t, e, "one", req(1, 1))
		began := time.Now()
		go func() {
			time.Sleep(time.Second)
			wantRefused(t, give(t, e, "one", req(2, 2)), "executor is stopping.")
			if ret, _ := e.As("one").Beat(t.Context()); ret.OK() {
				t.Error("a stopping executor beats")
			}
			if ret, _ := e.As("one").IdleBeat(t.Context(), wire.IdleBeatRequest{JobID: 1}); ret.Msg != wire.MsgBusy {
				t.Errorf("idle beat: %+v", ret)
			}
			if len(one.results()) != 0 {
				t.Error("a result before the end")
			}
		}()
		stop(t, e)
		if bye := one.goodbyes(); len(bye) != 1 || !bye[0].at.Equal(began) {
			t.Errorf("deregistered %+v, Stop began at %v", bye, began)
		}
		if d := time.Since(began); d != 10*time.Second || !slices.Equal(one.ids(), []int64{1}) {
			t.Errorf("Stop took %v, results %v", d, one.ids())
		}
	})
}
