package xxljob_test

// How many executors may register, and as what.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/plain"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// registration asks for one, with a token.
func (e *elsewhere) registration(token, app, address string) wire.Return {
	e.t.Helper()
	msg := wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: app, RegistryValue: address}
	return stage.Post(e.t, e.admin, token, "", "registry", msg.Encode(nil))
}

// registerMany registers addresses at once, and returns how many were accepted.
func (e *elsewhere) registerMany(token, app string, addresses []string) (n int) {
	e.t.Helper()
	accepted := make(chan bool, len(addresses))
	for _, a := range addresses {
		go func() { accepted <- e.registration(token, app, a).OK() }()
	}
	for range addresses {
		if <-accepted {
			n++
		}
	}
	return n
}

// addressesOf are n addresses of a net.
func addressesOf(net, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("http://10.%d.%d.%d:9999/", net, i/250, i%250)
	}
	return list
}

// rows are the registrations that are stored.
func (e *elsewhere) rows(app string) []xxljob.Registration {
	e.t.Helper()
	regs, err := e.store.Registrations(context.Background(), xxljob.RegistrationFilter{App: app, Limit: 1 << 20})
	stage.Must(e.t, err)
	return regs
}

// TestRegistrationsOfAnApp: an app has so many living executors and no more; what is there
// beats on, and other apps do not notice.
func TestRegistrationsOfAnApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines, most := &stage.LogLines{}, 10_000
		cfg := xxljob.Config{HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"": {stage.Token}, "far": {"of-far"}}}}
		if stage.Detector {
			most /= 10
			cfg.HTTP.MaxRegistrations = most
		}
		lines.LogTo(&cfg)
		e := newElsewhere(t, nil, cfg, nil)
		e.register("near", at1)
		if n := e.registerMany("of-far", "far", addressesOf(1, 2*most)); n != most || len(e.rows("far")) != n {
			t.Errorf("%d of %d accepted, %d stored, want %d", n, 2*most, len(e.rows("far")), most)
		}
		ret := e.registration("of-far", "far", at3)
		if ret.Code != wire.CodeFail || !strings.Contains(ret.Msg, fmt.Sprintf("app far has %d living registrations", most)) || !strings.Contains(ret.Msg, "Config.HTTP.MaxRegistrations") {
			t.Errorf("%+v", ret)
		}
		e.register("near", at2, at1) // a new one and a heartbeat
		var there []string
		for _, reg := range e.rows("far") {
			there = append(there, reg.Address)
		}
		for range 3 { // which is longer than Dead
			time.Sleep(40 * time.Second)
			if n := e.registerMany("of-far", "far", there); n != len(there) {
				t.Fatalf("%d of %d heartbeats accepted", n, len(there))
			}
			if e.registration("of-far", "far", at3).OK() {
				t.Fatal("one more accepted")
			}
		}
		if n := len(lines.With("refusing registrations", "app=far")); n < 1 || n > 3 { // in 120 s
			t.Errorf("%d lines about it", n)
		}
	})
}

// TestRegistrationsWhileTheStoreIsAway: a heartbeat that could not be stored does not cost
// its executor the room it has; a new one that could not be stored has none.
func TestRegistrationsWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.Wrap(memory.New())
		e := newElsewhere(t, faults, xxljob.Config{HTTP: xxljob.HTTPConfig{MaxRegistrations: 2}}, nil)
		e.register("far", at1)
		faults.Inject("PutAddresses", storetest.Fault{Before: true})
		if e.registration(stage.Token, "far", at3).OK() {
			t.Error("acknowledged though it is not stored")
		}
		e.register("far", at1) // answered from memory
		time.Sleep(time.Second)
		faults.Clear()
		if !e.registration(stage.Token, "far", at2).OK() || e.registration(stage.Token, "far", at3).OK() {
			t.Error("want room for the second, and not for the third")
		}
		e.register("far", at1)
	})
}

// TestRegistrationsMakeRoom: dead ones keep nobody out, and are forgotten early where they
// are many: also those of one who lets all of his die in turn, and come back.
func TestRegistrationsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 100
		e := newElsewhere(t, nil, xxljob.Config{HTTP: xxljob.HTTPConfig{MaxRegistrations: most}}, nil)
		var former []string
		for round := range 10 {
			now := addressesOf(1+round, most)
			if n := e.registerMany(stage.Token, "far", now); n != most {
				t.Errorf("round %d: %d accepted, want %d", round, n, most)
			}
			if n := e.registerMany(stage.Token, "far", former); n != 0 {
				t.Errorf("round %d: %d of the dead ones have come back", round, n)
			}
			time.Sleep(2 * time.Second)
			if n := len(e.rows("far")); n > 2*most {
				t.Errorf("round %d: %d stored, want %d at most", round, n, 2*most)
			}
			e.call("registryRemove", wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: "far", RegistryValue: now[0]})
			if one, two := e.registration(stage.Token, "far", at1), e.registration(stage.Token, "far", at2); !one.OK() || two.OK() {
				t.Errorf("round %d: one has left, want room for one: %v %v", round, one, two)
			}
			former = append(former, now...)
			time.Sleep(100 * time.Second)
		}
	})
}

// TestRegistrationsOfAllApps: those that share a token have a bound together, which an app
// with a token of its own does not come under.
func TestRegistrationsOfAllApps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{HTTP: xxljob.HTTPConfig{MaxRegistrations: 10, Tokens: map[string][]string{"": {stage.Token}, "own": {"of-own"}}}}, nil)
		e.register("zzz", at1)
		total := 1
		for i := range 300 {
			total += e.registerMany(stage.Token, fmt.Sprint("app-", i), addressesOf(i%200, 2))
		}
		if total != 100 || len(e.rows("")) != total {
			t.Errorf("%d accepted, %d stored, want 100", total, len(e.rows("")))
		}
		if ret := e.registration(stage.Token, "zzz", at2); ret.OK() || !strings.Contains(ret.Msg, "the registry is full") {
			t.Errorf("%+v", ret)
		}
		e.register("zzz", at1)
		if n := e.registerMany("of-own", "own", addressesOf(1, 20)); n != 10 {
			t.Errorf("%d of an app with its own token accepted, want 10", n)
		}
	})
}

// TestRegistrationsAtTwoNodes: together they may exceed the bound by what each accepts
// before it reads what the other has.
func TestRegistrationsAtTwoNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 100
		st := memory.New()
		cfg := xxljob.Config{HTTP: xxljob.HTTPConfig{MaxRegistrations: most}, Node: "a"}
		a := newElsewhere(t, st, cfg, nil)
		cfg.Node = "b"
		b := newElsewhere(t, st, cfg, nil)
		atA, atB := addressesOf(1, 3*most), addressesOf(2, 3*most)
		if n, m := a.registerMany(stage.Token, "far", atA), b.registerMany(stage.Token, "far", atB); n != most || m > most {
			t.Errorf("%d and %d accepted at once", n, m)
		}
		total := len(a.rows("far"))
		var there []string
		for _, reg := range a.rows("far") {
			there = append(there, reg.Address)
		}
		for i := range 6 {
			time.Sleep(30 * time.Second)
			nodes := []*elsewhere{a, b}
			if i%2 > 0 { // a balancer gives the beats to them in turn
				slices.Reverse(nodes)
			}
			half := len(there) / 2
			if n := nodes[0].registerMany(stage.Token, "far", there[:half]) + nodes[1].registerMany(stage.Token, "far", there[half:]); n != total {
				t.Errorf("%d of %d heartbeats accepted", n, total)
			}
			time.Sleep(time.Second)
			if n := a.registerMany(stage.Token, "far", addressesOf(3, 50)) + b.registerMany(stage.Token, "far", addressesOf(4, 50)); n != 0 {
				t.Errorf("%d more accepted", n)
			}
		}
	})
}

// readsOf counts what is read of the registry.
type readsOf struct {
	st          xxljob.Store
	mu          sync.Mutex
	calls, rows int // guarded by mu
}

func (s *readsOf) Registrations(ctx context.Context, f xxljob.RegistrationFilter) ([]xxljob.Registration, error) {
	regs, err := s.st.Registrations(ctx, f)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.rows += len(regs)
	return regs, err
}

func (s *readsOf) take() (calls, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls, rows = s.calls, s.rows
	s.calls, s.rows = 0, 0
	return calls, rows
}

// fill stores registrations that no scheduler has let in.
func fill(t *testing.T, st xxljob.Store, app string, addresses []string) {
	t.Helper()
	var regs []xxljob.Registration
	for _, a := range addresses {
		regs = append(regs, xxljob.Registration{App: app, Address: a})
	}
	stage.Must(t, st.SetShards(t.Context(), 32))
	stage.Must(t, st.PutAddresses(t.Context(), regs))
}

// TestRegistrationsOfBefore: of a registry that has more than may be a node reads a part,
// of each app, says so, and lets those that it has read beat on; the others die.
func TestRegistrationsOfBefore(t *testing.T) {
	if testing.Short() {
		t.Skip("it registers, and reads again, tens of thousands of executors; leave out -short")
	}
	t.Run("one app has too many", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			lines := &stage.LogLines{}
			cfg := xxljob.Config{HTTP: xxljob.HTTPConfig{MaxRegistrations: 1000}}
			lines.LogTo(&cfg)
			reads := &readsOf{st: memory.New()}
			st := bent.StoreOf(reads.st, reads)
			many := addressesOf(1, 50_000)
			fill(t, st, "aaa", many)
			fill(t, st, "zzz", addressesOf(2, 5))
			e := newElsewhere(t, st, cfg, nil)
			e.register("mmm", at1) // which has the node read
			time.Sleep(2 * time.Second)
			if calls, rows := reads.take(); calls > 3 || rows > 2*5000 {
				t.Errorf("%d rows read in %d calls", rows, calls)
			}
			if len(lines.With("the registry has more registrations than may be", "apps=aaa")) != 1 {
				t.Error("nothing in the log about it")
			}
			slices.Sort(many)
			if n := e.registerMany(stage.Token, "aaa", many[:2000]); n != 2000 {
				t.Errorf("%d of 2,000 that were read beat on", n)
			}
			if n := e.registerMany(stage.Token, "aaa", many[2000:3000]); n != 0 {
				t.Errorf("%d of those that were not read beat on", n)
			}
			e.register("zzz", addressesOf(2, 6)...)
			for range 8 {
				time.Sleep(30 * time.Second)
				e.registerMany(stage.Token, "aaa", many[:500])
				e.register("zzz", addressesOf(2, 6)...)
			}
			if n := len(e.rows("aaa")); n > 2000 {
				t.Errorf("%d rows are left", n)
			}
			if n := len(e.rows("zzz")); n != 6 {
				t.Errorf("%d rows of the other app are left", n)
			}
		})
	})
	t.Run("all have too many together", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			const most, apps, each = 100, 200, 150
			reads := &readsOf{st: memory.New()}
			st := bent.StoreOf(reads.st, reads)
			for i := range apps {
				fill(t, st, fmt.Sprintf("app-%03d", i), addressesOf(i, each))
			}
			fill(t, st, "own", addressesOf(1, each))
			fill(t, st, "zzz", addressesOf(1, 3))
			e := newElsewhere(t, st, xxljob.Config{HTTP: xxljob.HTTPConfig{MaxRegistrations: most, Tokens: map[string][]string{"": {stage.Token}, "own": {"of-own"}}}}, nil)
			e.register("app-000", addressesOf(0, 1)[0])
			time.Sleep(2 * time.Second)
			if calls, rows := reads.take(); calls > 100 || rows > apps*each+each+3+20*most {
				t.Errorf("%d rows read in %d calls", rows, calls)
			}
			e.register("zzz", addressesOf(1, 3)...)
			if n := e.registerMany("of-own", "own", addressesOf(1, each)); n != each {
				t.Errorf("%d of %d of an app with its own token beat on", n, each)
			}
			beats := 0
			for i := range apps {
				list := addressesOf(i, each)
				slices.Sort(list)
				if !e.registration(stage.Token, fmt.Sprintf("app-%03d", i), list[0]).OK() {
					t.Fatalf("no executor of app %d beats on", i)
				}
				beats += e.registerMany(stage.Token, fmt.Sprintf("app-%03d", i), list)
			}
			if beats > 20*most {
				t.Errorf("%d beat on, want at most %d", beats, 20*most)
			}
		})
	})
}

// TestRegistrationsInPlainText: what is registered is shown to people; it is no markup, and
// moves no cursor.
func TestRegistrationsInPlainText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{}, nil)
		good := wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: "far", RegistryValue: at1, BootID: "b", Capabilities: []string{"c"}}
		before := stage.SnapshotOf(t, e.store)
		for _, odd := range []string{"<", ">", "'", `"`, "`", "\x1b", "\n", "\r", "\t", "\x7f", "\u0085", "\u009b", "\u202e", "\u200b", "\u2028"} {
			for field, set := range map[string]func(*wire.RegistryRequest){
				"registryKey":   func(r *wire.RegistryRequest) { r.RegistryKey += odd + "x" },
				"registryValue": func(r *wire.RegistryRequest) { r.RegistryValue += odd + "x" },
				"bootId":        func(r *wire.RegistryRequest) { r.BootID += odd + "x" },
				"capabilities":  func(r *wire.RegistryRequest) { r.Capabilities = []string{"d", odd + "x"} },
			} {
				req := good
				set(&req)
				if ret := stage.Post(t, e.admin, stage.Token, "", "registry", req.Encode(nil)); ret.OK() || !strings.Contains(ret.Msg, field) || strings.ContainsAny(ret.Msg, "\x1b\u009b\u202e") {
					t.Errorf("%s with %q: %+v", field, odd, ret)
				}
			}
		}
		if after := stage.SnapshotOf(t, e.store); after != before {
			t.Errorf("stored:\n%s", after)
		}
		for _, app := range []string{"größe", "订单 服务", "a_b-c.d/e:f"} {
			e.register(app, at1)
		}
	})
}

// TestRegistrationsInARegistryOfTheUsers: the node bounds what it is told, for it cannot
// read what is there; and calls nobody under a name that cannot be shown.
func TestRegistrationsInARegistryOfTheUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 100
		registry := &plain.Registry{}
		e := newElsewhere(t, nil, xxljob.Config{HTTP: xxljob.HTTPConfig{MaxRegistrations: most}, Registry: registry}, map[string]*peer{at1: {}})
		odd := "http://10.0.0.1:9999/<script>"
		stage.Must(t, registry.Register(t.Context(), "near", odd))
		stage.Must(t, registry.Register(t.Context(), "near", at1))
		id := e.trigger(xxljob.Job{App: "near", Route: "LAST"})
		synctest.Wait()
		if run := e.mustBe(id, xxljob.StateDispatched); run.Address != at1 {
			t.Errorf("sent to %q", run.Address)
		}
		for round := range 5 {
			if n := e.registerMany(stage.Token, "far", addressesOf(round, 2*most)); n != most {
				t.Errorf("round %d: %d accepted, want %d", round, n, most)
			}
			time.Sleep(2 * time.Second)
			if n := xxljob.Rolled(e.Scheduler); n > 2*most {
				t.Errorf("round %d: %d are remembered", round, n)
			}
			time.Sleep(100 * time.Second)
		}
	})
}

// TestGoodbyesOfFormerProcesses: a good-bye of another process than the one that is
// registered frees no room, neither for whoever has more executors than may be nor from the
// one that is there.
func TestGoodbyesOfFormerProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{HTTP: xxljob.HTTPConfig{MaxRegistrations: 10}}, nil)
		of := func(verb, boot string, addrs []string) (ok int) {
			for _, a := range addrs {
				if stage.Post(t, e.admin, stage.Token, "far", verb, wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: "far", RegistryValue: a, BootID: boot}.Encode(nil)).OK() {
					ok++
				}
			}
			return ok
		}
		there := addressesOf(1, 10)
		if n := of("registry", "now", there); n != 10 {
			t.Fatalf("%d of ten are registered", n)
		}
		for i := range 3 {
			of("registryRemove", "before", there)
			if n := of("registry", "more", addressesOf(2+i, 10)); n != 0 {
				t.Errorf("%d more than may be are registered", n)
			}
		}
		if n := len(e.rows("far")); n != 10 {
			t.Errorf("%d rows", n)
		}
		if n := of("registry", "now", there); n != 10 {
			t.Errorf("%d of ten that live beat on", n)
		}
		if of("registryRemove", "now", there); of("registry", "more", addressesOf(2, 10)) != 10 {
			t.Error("those that have left take room")
		}
	})
}

// TestRegistrationsWithoutLoops: a scheduler that serves, and is not started, does not
// remember dead executors without end.
func TestRegistrationsWithoutLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, err := xxljob.New(st, xxljob.Config{HTTP: xxljob.HTTPConfig{MaxRegistrations: 10, Tokens: tokensOf("far")}, Logger: stage.QuietLog()})
		stage.Must(t, err)
		h, err := s.AdminHandler()
		stage.Must(t, err)
		for round := range 20 {
			for _, a := range addressesOf(1+round, 10) {
				if ret := stage.Post(t, h, stage.Token, "far", "registry", wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: "far", RegistryValue: a}.Encode(nil)); !ret.OK() {
					t.Fatalf("round %d: %+v", round, ret)
				}
			}
			time.Sleep(100 * time.Second)
		}
		regs, err := st.Registrations(t.Context(), xxljob.RegistrationFilter{Limit: 1000})
		stage.Must(t, err)
		if n := xxljob.Rolled(s); n > 30 || len(regs) > 30 {
			t.Errorf("%d are remembered, %d stored", n, len(regs))
		}
	})
}

// TestGoodbyesOfOthers: who takes back what never was there is not remembered, and an app
// whose executors come and go without end has its own goodbyes forgotten, not those of
// others.
func TestGoodbyesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		e.register("near", at1)
		id := e.trigger(xxljob.Job{App: "near"})
		synctest.Wait()
		e.mustBe(id, xxljob.StateDispatched)
		e.deregister("near", at1)
		for _, a := range addressesOf(1, 100) {
			e.deregister("far", a)
		}
		if n := xxljob.Goodbyes(e.Scheduler); n != 1 {
			t.Errorf("%d goodbyes are remembered, want one", n)
		}
		if err := e.Kill(t.Context(), id); err != nil || len(p.killed()) != 1 {
			t.Errorf("its executor, which lets its runs end, was not asked: %v", err)
		}
	})
}
