package xxljob_test

// What executors elsewhere send, when one of them means harm.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// counting notes what is finished, and fails when a run of its choice is among it.
type counting struct {
	st xxljob.Store

	mu       sync.Mutex
	finished []int // how many results each Finish has
	poison   int64 // the run
}

func (s *counting) Finish(ctx context.Context, dst []xxljob.Run, results []store.Result) ([]xxljob.Run, error) {
	s.mu.Lock()
	s.finished = append(s.finished, len(results))
	poisoned := slices.ContainsFunc(results, func(r store.Result) bool { return r.RunID == s.poison })
	s.mu.Unlock()
	if poisoned {
		return nil, errors.New("poisoned")
	}
	return s.st.Finish(ctx, dst, results)
}

// asked returns how many results each Finish has had since the last time.
func (s *counting) asked() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.finished
	s.finished = nil
	return was
}

// twoApps is a scheduler with the executors of two apps, each with a token of its own.
func twoApps(t *testing.T, st xxljob.Store) *elsewhere {
	tokens := map[string][]string{"": {stage.Token}, "honest": {"of-honest"}, "rude": {"of-rude"}}
	e := newElsewhere(t, st, xxljob.Config{HTTP: xxljob.HTTPConfig{Tokens: tokens}}, map[string]*peer{at1: {token: "of-honest"}, at2: {token: "of-rude"}})
	stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "honest", Manual: true, Addresses: []string{at1}}))
	stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "rude", Manual: true, Addresses: []string{at2}}))
	return e
}

// reports sends results of an app.
func (e *elsewhere) reports(app string, list ...wire.CallbackRequest) wire.Return {
	e.t.Helper()
	return stage.Post(e.t, e.admin, "of-"+app, app, "callback", wire.EncodeCallback(nil, wire.CallbackList, list))
}

// repeated is one result many times over.
func repeated(r wire.CallbackRequest, n int) []wire.CallbackRequest {
	return slices.Repeat([]wire.CallbackRequest{r}, n)
}

// TestRepeatsInARequest: a page of 419 kB that names one run 909 times made as many
// transactions, whether the run was under way or lost.
func TestRepeatsInARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &counting{st: memory.New()}
		e := twoApps(t, bent.StoreOf(st.st, st))
		first, lost := e.trigger(xxljob.Job{App: "rude", Name: "one"}), e.trigger(xxljob.Job{App: "rude", Name: "lost"})
		synctest.Wait()
		run, err := st.st.Run(t.Context(), lost)
		stage.Must(t, err)
		st.asked()
		if _, err := st.st.Finish(t.Context(), nil, []store.Result{{RunID: lost, State: xxljob.StateLost, Owner: run.Owner, Token: run.Token}}); err != nil {
			t.Fatal(err)
		}
		e.mustBe(lost, xxljob.StateLost)

		page := repeated(wire.CallbackRequest{LogID: first, HandleCode: 200, HandleMsg: strings.Repeat("x", 400)}, 909)
		page[0].HandleMsg = "first"
		for range 3 {
			if ret := e.reports("rude", page...); !ret.OK() {
				t.Errorf("%+v", ret)
			}
		}
		if asked := st.asked(); !slices.Equal(asked, []int{1}) {
			t.Errorf("three pages that repeat a result had %v stored, want one result", asked)
		}
		if run := e.mustBe(first, xxljob.StateSucceeded); run.HandleMsg != "first" {
			t.Errorf("%.40q: want the first of them", run.HandleMsg)
		}
		// With other dates they are other results, until their run is read.
		for i := range page {
			page[i].LogID, page[i].LogDateTim = lost, int64(i)
		}
		for range 3 {
			if ret := e.reports("rude", page...); !ret.OK() {
				t.Errorf("%+v", ret)
			}
		}
		if asked := st.asked(); !slices.Equal(asked, []int{1}) {
			t.Errorf("three pages about a lost run had %v stored, want one note", asked)
		}
		if run := e.mustBe(lost, xxljob.StateLost); !run.LateNoted {
			t.Error("the result of the lost run is not noted")
		}
	})
}

// TestAnErrorIsOfOneApp: what cannot be stored of one app keeps out nobody else's results,
// though they are stored together.
func TestAnErrorIsOfOneApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &counting{st: memory.New()}
		faults := storetest.Wrap(bent.StoreOf(st.st, st))
		e := twoApps(t, faults)
		bad, good := e.trigger(xxljob.Job{App: "rude", Name: "r"}), e.trigger(xxljob.Job{App: "honest", Name: "h"})
		synctest.Wait()
		st.poison = bad
		hang := make(chan struct{})
		faults.Inject("RunsByID", storetest.Fault{Hang: hang, Calls: 1})
		answers := make(chan wire.Return, 3)
		go e.reports("rude", wire.CallbackRequest{LogID: 1 << 40, HandleCode: 200})
		synctest.Wait() // the loop hangs, and the next ones come together
		go func() { answers <- e.reports("rude", wire.CallbackRequest{LogID: bad, HandleCode: 200}) }()
		synctest.Wait()
		go func() { answers <- e.reports("honest", wire.CallbackRequest{LogID: good, HandleCode: 200}) }()
		synctest.Wait()
		close(hang)
		if a, b := <-answers, <-answers; a.OK() == b.OK() {
			t.Errorf("%+v and %+v: want the one that is poisoned to be refused", a, b)
		}
		e.mustBe(good, xxljob.StateSucceeded)
		e.mustBe(bad, xxljob.StateDispatched)
		st.mu.Lock()
		st.poison = 0
		st.mu.Unlock()
		if ret := e.reports("rude", wire.CallbackRequest{LogID: bad, HandleCode: 200}); !ret.OK() {
			t.Errorf("%+v", ret)
		}
	})
}

// TestAnErrorIsOfOneRequest: one result that cannot be stored keeps out nobody else's of its
// app either, though no other app shows that the store works.
func TestAnErrorIsOfOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &counting{st: memory.New()}
		faults := storetest.Wrap(bent.StoreOf(st.st, st))
		e := twoApps(t, faults)
		ids := make([]int64, 6)
		for i := range ids {
			ids[i] = e.trigger(xxljob.Job{App: "rude", Name: fmt.Sprint("r", i)})
		}
		synctest.Wait()
		st.poison = ids[0]
		hang := make(chan struct{})
		faults.Inject("RunsByID", storetest.Fault{Hang: hang, Calls: 1})
		go e.reports("rude", wire.CallbackRequest{LogID: 1 << 40, HandleCode: 200})
		synctest.Wait() // the loop hangs, and the next ones come together
		for _, id := range ids {
			go e.reports("rude", wire.CallbackRequest{LogID: id, HandleCode: 200})
			synctest.Wait()
		}
		close(hang)
		time.Sleep(time.Second)
		e.mustBe(ids[0], xxljob.StateDispatched)
		for _, id := range ids[1:] {
			e.mustBe(id, xxljob.StateSucceeded)
		}
	})
}

// TestAStoreThatIsBackInBetween: whoever is tried first when a batch has failed, while the
// store is still away, loses nothing to those for whom it is back.
func TestAStoreThatIsBackInBetween(t *testing.T) {
	for calls := range 4 {
		synctest.Test(t, func(t *testing.T) {
			faults := storetest.Wrap(memory.New())
			e := twoApps(t, faults)
			var ids []int64
			for _, app := range []string{"rude", "honest", "rude", "honest"} {
				ids = append(ids, e.trigger(xxljob.Job{App: app, Name: fmt.Sprint("j", len(ids))}))
			}
			synctest.Wait()
			hang := make(chan struct{})
			faults.Inject("RunsByID", storetest.Fault{Hang: hang, Calls: 1})
			go e.reports("rude", wire.CallbackRequest{LogID: 1 << 40, HandleCode: 200})
			synctest.Wait()
			for i, id := range ids {
				go e.reports([]string{"rude", "honest"}[i%2], wire.CallbackRequest{LogID: id, HandleCode: 200})
				synctest.Wait()
			}
			time.Sleep(3 * time.Second) // they have given up
			faults.Inject("RunsByID", storetest.Fault{Before: true, Calls: 1 + calls})
			close(hang)
			time.Sleep(time.Minute)
			for _, id := range ids {
				e.mustBe(id, xxljob.StateSucceeded)
			}
		})
	}
}

// TestAppsHaveTurns: a hundred pages of one app are not stored before the one of another
// that comes behind them.
func TestAppsHaveTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.Wrap(memory.New())
		e := twoApps(t, faults)
		id := e.trigger(xxljob.Job{App: "honest", Name: "h"})
		synctest.Wait()
		faults.Inject("RunsByID", storetest.Fault{Delay: 100 * time.Millisecond})
		pages := 60
		if stage.Detector {
			pages = 20
		}
		for i := range pages {
			page := make([]wire.CallbackRequest, wire.MaxCallbacks)
			for k := range page {
				page[k] = wire.CallbackRequest{LogID: int64(1<<40 + i<<20 + k), HandleCode: 200}
			}
			go e.reports("rude", page...)
		}
		synctest.Wait()
		began := time.Now()
		if ret := e.reports("honest", wire.CallbackRequest{LogID: id, HandleCode: 200}); !ret.OK() {
			t.Errorf("%+v", ret)
		}
		// The batch that was under way, and the one that its own result is in.
		if took := time.Since(began); took > 300*time.Millisecond {
			t.Errorf("answered after %v", took)
		}
	})
}

// TestResultsThatWaitAreBounded: while the store hangs, eight connections that send pages
// of 3 MB and hang up made the heap grow without end; a few of these are read at a time, and three
// hundred short ones beside them fill what one app may have.
// A result of another app that nobody waits for any more is stored once the store is back.
func TestResultsThatWaitAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it fills the heap with hundreds of large pages; leave out -short")
	}
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.Wrap(memory.New())
		e := twoApps(t, faults)
		id := e.trigger(xxljob.Job{App: "honest", Name: "h"})
		synctest.Wait()
		faults.Inject("RunsByID", storetest.Fault{Hang: make(chan struct{})})
		page := repeated(wire.CallbackRequest{HandleCode: 200, HandleMsg: strings.Repeat("x", 15_000)}, 120)
		for i := range page {
			page[i].LogID = int64(1<<40 + i)
		}
		wide, short := wire.EncodeCallback(nil, wire.CallbackList, page), wire.EncodeCallback(nil, wire.CallbackList, page[:2])
		before, rounds := stage.Heap(), 10
		if stage.Detector {
			rounds = 3
		}
		go func() {
			if e.reports("honest", wire.CallbackRequest{LogID: id, HandleCode: 200}).OK() {
				t.Error("a result is acknowledged that is not stored")
			}
		}()
		for range rounds {
			ctx, hangUp := context.WithCancel(t.Context())
			for i := range 308 {
				body := short
				if i < 8 {
					body = wide
				}
				go func() {
					req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/callback", bytes.NewReader(body))
					req.Header.Set(wire.HeaderToken, "of-rude")
					e.admin.ServeHTTP(httptest.NewRecorder(), req)
				}()
			}
			synctest.Wait()
			hangUp()
			synctest.Wait()
		}
		if e.Stats().ResultsRefused == 0 {
			t.Error("there was room for all of them, so nothing was bounded")
		}
		if grown := stage.Heap() - before; grown > 32<<20 {
			t.Errorf("the heap has grown by %d MiB", grown>>20)
		}
		if ret := e.reports("honest", wire.CallbackRequest{LogID: 1 << 41, HandleCode: 200}); ret.OK() {
			t.Errorf("%+v", ret)
		}
		faults.Clear()
		time.Sleep(10 * time.Second)
		e.mustBe(id, xxljob.StateSucceeded)
	})
}

// TestManyAppsFillTheIntake: where many apps have filled all of it, those who have most
// give way to one that has less.
func TestManyAppsFillTheIntake(t *testing.T) {
	if testing.Short() {
		t.Skip("it fills the heap with thousands of pages; leave out -short")
	}
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.Wrap(memory.New())
		tokens := map[string][]string{"honest": {"of-honest"}}
		for i := range 12 {
			tokens[fmt.Sprintf("rude%d", i)] = []string{fmt.Sprintf("of-rude%d", i)}
		}
		e := newElsewhere(t, faults, xxljob.Config{HTTP: xxljob.HTTPConfig{Tokens: tokens}}, map[string]*peer{at1: {token: "of-honest"}})
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "honest", Manual: true, Addresses: []string{at1}}))
		id := e.trigger(xxljob.Job{App: "honest", Name: "h"})
		synctest.Wait()
		faults.Inject("RunsByID", storetest.Fault{Hang: make(chan struct{})})
		page := repeated(wire.CallbackRequest{HandleCode: 200, HandleMsg: strings.Repeat("x", 15_000)}, 2) // short enough to be read whatever else is
		for i := range page {
			page[i].LogID = int64(1<<40 + i)
		}
		body := wire.EncodeCallback(nil, wire.CallbackList, page)
		before := stage.Heap()
		var all sync.WaitGroup
		for i := range 12 {
			for range 280 {
				all.Go(func() {
					stage.Post(t, e.admin, fmt.Sprintf("of-rude%d", i), fmt.Sprintf("rude%d", i), "callback", body)
				})
			}
		}
		synctest.Wait()
		go e.reports("honest", wire.CallbackRequest{LogID: id, HandleCode: 200})
		all.Wait()
		if e.Stats().ResultsRefused == 0 {
			t.Error("there was room for all of them, so nobody gave way")
		}
		if grown := stage.Heap() - before; grown > 80<<20 {
			t.Errorf("the heap has grown by %d MiB", grown>>20)
		}
		faults.Clear()
		time.Sleep(10 * time.Second)
		e.mustBe(id, xxljob.StateSucceeded)
	})
}

// TestBeatsThatWaitAreBounded: beats of executors that the store is known to have are
// answered before they are stored, also while the store hangs.
func TestBeatsThatWaitAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it sends very many beats; leave out -short")
	}
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.Wrap(memory.New())
		e := twoApps(t, faults)
		beat := func(app, address string) wire.Return {
			return stage.Post(t, e.admin, "of-"+app, app, "registry", wire.RegistryRequest{
				RegistryGroup: wire.GroupExecutor, RegistryKey: app, RegistryValue: address}.Encode(nil))
		}
		for _, app := range []string{"rude", "honest"} {
			if ret := beat(app, at1); !ret.OK() {
				t.Fatalf("%+v", ret)
			}
		}
		time.Sleep(time.Second)
		faults.Inject("PutAddresses", storetest.Fault{Hang: make(chan struct{})})
		before, answered := stage.Heap(), 0
		const beats = 75_000
		for range beats {
			if beat("rude", at1).OK() {
				answered++
			}
		}
		if grown := stage.Heap() - before; grown > 10<<20 {
			t.Errorf("the heap has grown by %d MiB for %d beats", grown>>20, answered)
		}
		if answered != beats {
			t.Errorf("%d of %d beats are answered: the oldest ones give way", answered, beats)
		}
		if ret := beat("honest", at1); !ret.OK() {
			t.Errorf("%+v", ret)
		}
	})
}

// TestGoodByesOfUnknownAddresses: each had the registry of its app read.
func TestGoodByesOfUnknownAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.Wrap(memory.New())
		e := twoApps(t, faults)
		before := faults.Calls("Addresses")
		for i := range 100 {
			go e.deregister("far", fmt.Sprintf("http://10.1.0.%d:9999/", i))
		}
		time.Sleep(500 * time.Millisecond)
		if n := faults.Calls("Addresses") - before; n > 2 {
			t.Errorf("the registry was read %d times", n)
		}
	})
}

// TestStopWhileResultsWait: Stop does not wait for the results of each app by itself while
// the store hangs.
func TestStopWhileResultsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.Wrap(memory.New())
		tokens := map[string][]string{}
		for i := range 40 {
			tokens[fmt.Sprint("app", i)] = []string{fmt.Sprint("of-app", i)}
		}
		e := newElsewhere(t, faults, xxljob.Config{HTTP: xxljob.HTTPConfig{Tokens: tokens}}, nil)
		faults.Inject("RunsByID", storetest.Fault{Hang: make(chan struct{})})
		for i := range 40 {
			go e.reports(fmt.Sprint("app", i), wire.CallbackRequest{LogID: 1, HandleCode: 200})
		}
		synctest.Wait()
		began := time.Now()
		stage.Must(t, e.Stop(t.Context()))
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
