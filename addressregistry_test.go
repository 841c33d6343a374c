package xxljob_test

// Executors elsewhere that register, over HTTP or by hand, and that leave.

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
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// TestRegistryAtOnce: an executor that registers gets the next run, and one that leaves
// does not, on the node that has heard of it; the others follow within seconds.
func TestRegistryAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, peers := memory.New(), map[string]*peer{at1: {}, at2: {}}
		a, b := newElsewhere(t, st, xxljob.Config{Node: "a"}, peers), newElsewhere(t, st, xxljob.Config{Node: "b"}, peers)
		time.Sleep(10 * time.Second)
		n := 0
		// route runs a job on both nodes' shards, and returns where it went.
		route := func() (went []string) {
			for range 8 { // in shards of both nodes
				n++
				id := a.trigger(xxljob.Job{App: "far", Name: fmt.Sprint(n), Route: "FIRST"})
				synctest.Wait()
				time.Sleep(time.Millisecond)
				went = append(went, a.state(id).Address)
			}
			slices.Sort(went)
			return slices.Compact(went)
		}
		a.register("far", at2)
		time.Sleep(2 * time.Second)
		if got := route(); !slices.Equal(got, []string{at2}) {
			t.Errorf("after the registration: %v", got)
		}
		a.register("far", at1)
		if got := route(); !slices.Contains(got, at1) {
			t.Errorf("a new executor is not there: %v", got)
		}
		time.Sleep(2 * time.Second)
		if got := route(); !slices.Equal(got, []string{at1}) {
			t.Errorf("two seconds later: %v", got)
		}
		b.deregister("far", strings.TrimSuffix(at1, "/")) // in another spelling
		time.Sleep(2 * time.Second)
		if got := route(); !slices.Equal(got, []string{at2}) {
			t.Errorf("after the removal: %v", got)
		}
	})
	// On the node itself there is nothing to wait for.
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: {}, at2: {}})
		for i := range 10 { // flapping
			e.register("far", at1, at2)
			id := e.trigger(xxljob.Job{App: "far", Name: fmt.Sprint("with ", i), Route: "FIRST"})
			synctest.Wait()
			if run := e.mustBe(id, xxljob.StateDispatched); run.Address != at1 {
				t.Fatalf("round %d: sent to %s", i, run.Address)
			}
			e.deregister("far", at1)
			id = e.trigger(xxljob.Job{App: "far", Name: fmt.Sprint("without ", i), Route: "FIRST"})
			synctest.Wait()
			if run := e.mustBe(id, xxljob.StateDispatched); run.Address != at2 {
				t.Fatalf("round %d: sent to %s, which has left", i, run.Address)
			}
		}
	})
}

// TestRegistryDies: an executor that beats every 30 s stays; one that is silent for 90 s
// is not routed to, and is still to be seen in the store.
func TestRegistryDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: {}, at2: {}})
		e.register("far", at1, at2)
		for range 20 {
			time.Sleep(30 * time.Second)
			e.register("far", at2)
		}
		synctest.Wait()
		regs, err := e.store.Addresses(t.Context(), "far", 90*time.Second)
		stage.Must(t, err)
		if len(regs) != 1 || regs[0].Address != at2 || time.Since(regs[0].Updated) > time.Second {
			t.Errorf("alive: %+v", regs)
		}
		id := e.trigger(xxljob.Job{App: "far", Route: "FIRST"})
		synctest.Wait()
		if run := e.mustBe(id, xxljob.StateDispatched); run.Address != at2 {
			t.Errorf("sent to %s", run.Address)
		}
		regs, err = e.store.Registrations(t.Context(), xxljob.RegistrationFilter{})
		stage.Must(t, err)
		if len(regs) != 2 { // the app has no group
			t.Errorf("to be seen: %+v", regs)
		}
		if _, err := e.store.Group(t.Context(), "far"); err == nil {
			t.Error("a registration has made a group")
		}
	})
}

// TestRegistryForgets: what has been dead for a day is dropped by the next registration.
func TestRegistryForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{}, nil)
		for i := range 100 {
			e.register("far", fmt.Sprintf("http://10.1.0.%d/", i))
		}
		time.Sleep(25 * time.Hour)
		e.register("far", at1)
		time.Sleep(time.Second)
		regs, err := e.store.Registrations(t.Context(), xxljob.RegistrationFilter{Limit: 1000})
		stage.Must(t, err)
		if len(regs) != 1 {
			t.Errorf("%d registrations are left", len(regs))
		}
	})
}

// TestRegistryOfAnOldProcess: an executor that stops while its successor has registered at
// the same address does not take the successor away.
func TestRegistryOfAnOldProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: {}})
		e.registerOurs("far", at1, "old")
		e.registerOurs("far", at1, "new")
		e.call("registryRemove", wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: "far", RegistryValue: at1, BootID: "old"})
		id := e.trigger(xxljob.Job{App: "far"})
		synctest.Wait()
		e.mustBe(id, xxljob.StateDispatched)
	})
}

// TestManualAddresses: a manual group goes by its own list, whatever registers.
func TestManualAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := map[string]*peer{at1: {}, at2: {}}
		e := newElsewhere(t, nil, xxljob.Config{}, peers)
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at2}}))
		e.register("far", at1)
		id := e.trigger(xxljob.Job{App: "far", Route: "FIRST"})
		synctest.Wait()
		if run := e.mustBe(id, xxljob.StateDispatched); run.Address != at2 {
			t.Errorf("sent to %s", run.Address)
		}
	})
}

// countedStore counts what is asked of the registry.
type countedStore struct {
	st    xxljob.Store
	mu    sync.Mutex
	calls int
	most  int // registrations of one call
}

func (s *countedStore) PutAddresses(ctx context.Context, regs []xxljob.Registration) error {
	s.mu.Lock()
	s.calls++
	s.most = max(s.most, len(regs))
	s.mu.Unlock()
	return s.st.PutAddresses(ctx, regs)
}

// TestTenThousandExecutors: beats are stored in batches, at most twenty a second, and all
// of them arrive.
func TestTenThousandExecutors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &countedStore{st: memory.New()}
		e := newElsewhere(t, bent.StoreOf(st.st, st), xxljob.Config{}, nil)
		n, beat := 10_000, 30*time.Second
		if stage.Detector {
			n /= 5
		}
		address := func(i int) string { return fmt.Sprintf("http://10.%d.%d.1:9999/", i/100, i%100) }
		for range 4 {
			for i := range n {
				go e.register("far", address(i))
				time.Sleep(beat / time.Duration(n))
			}
		}
		time.Sleep(time.Second)
		regs, err := st.st.Addresses(t.Context(), "far", beat+2*time.Second)
		stage.Must(t, err)
		if perSecond := float64(st.calls) / (4 * beat.Seconds()); len(regs) != n || perSecond > 20 {
			t.Errorf("%d registrations; %.1f calls a second, %d in one", len(regs), perSecond, st.most)
		}
	})
}

// TestRegistryStoreAway: a registration that cannot be stored is not acknowledged, but for
// the beat of an executor that is known; when the store is back so is everything.
func TestRegistryStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.Wrap(memory.New())
		e := newElsewhere(t, faults, xxljob.Config{}, nil)
		e.register("far", at1)
		faults.Inject("PutAddresses", storetest.Fault{Before: true})
		if ret := stage.Post(t, e.admin, stage.Token, "", "registry", wire.RegistryRequest{RegistryGroup: "EXECUTOR", RegistryKey: "far", RegistryValue: at2}.Encode(nil)); ret.OK() {
			t.Error("acknowledged though it is not stored")
		}
		time.Sleep(time.Second)
		e.register("far", at1) // answered from memory
		time.Sleep(time.Second)
		if ret := stage.Post(t, e.admin, stage.Token, "", "registry", wire.RegistryRequest{RegistryGroup: "EXECUTOR", RegistryKey: "far", RegistryValue: at1}.Encode(nil)); ret.OK() {
			t.Error("acknowledged again though the last one was not stored")
		}
		faults.Clear()
		e.register("far", at1, at2)
	})
	synctest.Test(t, func(t *testing.T) { // a store that hangs
		faults := storetest.Wrap(memory.New())
		hang := make(chan struct{})
		e := newElsewhere(t, faults, xxljob.Config{}, nil)
		faults.Inject("PutAddresses", storetest.Fault{Hang: hang})
		began := time.Now()
		if ret := stage.Post(t, e.admin, stage.Token, "", "registry", wire.RegistryRequest{RegistryGroup: "EXECUTOR", RegistryKey: "far", RegistryValue: at2}.Encode(nil)); ret.OK() || time.Since(began) > 3*time.Second {
			t.Errorf("%+v after %v: its peer waits for 3 s", ret, time.Since(began))
		}
		close(hang)
	})
}

// TestRegistryFirst: a registration may be the first thing that a store hears of, before
// Start too.
func TestRegistryFirst(t *testing.T) {
	s, err := xxljob.New(memory.New(), xxljob.Config{HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"": {stage.Token}}}, Logger: stage.QuietLog()})
	stage.Must(t, err)
	h, err := s.AdminHandler()
	stage.Must(t, err)
	msg := wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: "far", RegistryValue: at1}
	if ret := stage.Post(t, h, stage.Token, "", "registry", msg.Encode(nil)); !ret.OK() {
		t.Errorf("%+v", ret)
	}
}
