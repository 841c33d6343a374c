package wire_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// slowStore is an admin whose results take as long to be stored as a store that hangs
// keeps their callers.
type slowStore struct {
	*peer
	lock     sync.Mutex
	at, most map[string]int // by the app of the caller
}

func newSlowStore() *slowStore {
	return &slowStore{peer: newPeer(), at: map[string]int{}, most: map[string]int{}}
}

func (a *slowStore) Callback(ctx context.Context, results []wire.CallbackRequest) (wire.Return, error) {
	caller, _ := wire.CallerFrom(ctx)
	a.lock.Lock()
	a.at[caller.App]++
	a.most[caller.App] = max(a.most[caller.App], a.at[caller.App])
	a.lock.Unlock()
	time.Sleep(2500 * time.Millisecond)
	a.lock.Lock()
	a.at[caller.App]--
	a.lock.Unlock()
	return a.ask(ctx, results)
}

// serving returns how many callbacks of each app are being stored.
func (a *slowStore) serving() map[string]int {
	a.lock.Lock()
	defer a.lock.Unlock()
	return maps.Clone(a.at)
}

var largeCallback = large(`[{"logId":1,"handleCode":200}]`)

// wideCallback is longer than what a slot alone is good for.
var wideCallback = largeCallback + strings.Repeat(" ", 1<<20)

// callers posts large callbacks at once, as many as it is told, and counts the answers.
type callers struct {
	t       testing.TB
	h       http.Handler
	calls   sync.WaitGroup
	lock    sync.Mutex
	took    map[string]int // by the app that was named, or the token: callbacks that were stored
	refused map[string]int // the same: those that were told to come again
	body    string
}

func newCallers(t testing.TB, h http.Handler) *callers {
	return &callers{t: t, h: h, took: map[string]int{}, refused: map[string]int{}, body: largeCallback}
}

func (c *callers) post(n int, app, token string) {
	body := c.body
	for range n {
		c.calls.Go(func() {
			got := returned(c.t, post(c.t, c.h, "/api/callback", body, wire.HeaderApp, app, wire.HeaderToken, token))
			c.lock.Lock()
			defer c.lock.Unlock()
			switch {
			case got.OK():
				c.took[app]++
			case got == wire.Return{Code: wire.CodeTimeout, Msg: wire.MsgTooMany}:
				c.refused[app]++
			default:
				c.t.Errorf("%s: %+v", app, got)
			}
		})
	}
}

// TestShareOfBodies: an app that posts without end while the store hangs has a quarter of
// the slots and keeps nobody else out; what waits for longer than peers would is refused
// in the words by which they come again.
func TestShareOfBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newSlowStore()
		h := adminHandler(t, a, tokensOf(t, "hostile", "honest"))
		c := newCallers(t, h)
		c.post(400, "hostile", "of-hostile")
		synctest.Wait()
		began := time.Now()
		c.post(16, "honest", "of-honest")
		c.calls.Wait()
		if c.took["honest"] != 16 || time.Since(began) > 2500*time.Millisecond {
			t.Errorf("honest: %d of 16 stored after %v, %d refused", c.took["honest"], time.Since(began), c.refused["honest"])
		}
		if c.took["hostile"] != 16 || c.refused["hostile"] != 384 || a.most["hostile"] != 16 {
			t.Errorf("hostile: %d stored, %d refused, %d at a time", c.took["hostile"], c.refused["hostile"], a.most["hostile"])
		}
		if n := wire.Holders(h, "callback"); n != 0 {
			t.Errorf("account is kept of %d callers", n)
		}
	})
}

// TestWidestBodies: of bodies above 1 MiB an app has a quarter of an eighth of the slots, whether their
// length is sent ahead or not; those of others, and shorter ones of its own, go on beside.
func TestWidestBodies(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a := newSlowStore()
			h := adminHandler(t, a, tokensOf(t, "hostile", "honest"))
			served := h
			if chunked {
				served = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { r.ContentLength = -1; h.ServeHTTP(w, r) })
			}
			c := newCallers(t, served)
			c.body = wideCallback
			c.post(10, "hostile", "of-hostile")
			synctest.Wait()
			if at := a.serving(); at["hostile"] != 2 {
				t.Errorf("of the widest %d are served at a time", at["hostile"])
			}
			other := newCallers(t, served)
			other.post(6, "hostile", "of-hostile") // eight wait with a slot: a quarter is sixteen
			other.body = wideCallback
			other.post(2, "honest", "of-honest")
			synctest.Wait()
			if at := a.serving(); at["hostile"] != 8 || at["honest"] != 2 {
				t.Errorf("beside them: %v", at)
			}
			c.calls.Wait()
			other.calls.Wait()
			if c.took["hostile"] != 2 || c.refused["hostile"] != 8 || wire.Holders(h, "callback") != 0 {
				t.Errorf("%d stored, %d refused", c.took["hostile"], c.refused["hostile"])
			}
		})
	}
}

// TestShareOfSharedToken: all who show a token that apps share, whatever they call
// themselves, leave half of the slots to those with tokens of their own; and among
// themselves each name has a quarter.
func TestShareOfSharedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newSlowStore()
		h := adminHandler(t, a, tokensOf(t, "own"))
		c := newCallers(t, h)
		c.post(100, "loud", token)
		c.post(100, "", token)
		synctest.Wait()
		if at := a.serving(); at["loud"] != 16 || at[""] != 16 {
			t.Errorf("at a time: %v", at)
		}
		for i := range 300 {
			c.post(1, fmt.Sprint("invented-", i), token)
		}
		synctest.Wait()
		if at := a.serving(); len(at) != 2 {
			t.Errorf("more than half of the slots: %v", at)
		}
		c.post(16, "own", "of-own")
		synctest.Wait()
		if at := a.serving(); at["own"] != 16 {
			t.Errorf("the app with a token of its own has %d slots", at["own"])
		}
		c.calls.Wait()
		if c.took["own"] != 16 || c.took["loud"] != 16 || c.took[""] != 16 || wire.Holders(h, "callback") != 0 {
			t.Errorf("stored: %v", c.took)
		}
	})
}

// TestTurnsOfBodies: a slot that is given back goes to the waiting caller that has the
// fewest, and not to the one that has asked most often.
func TestTurnsOfBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newSlowStore()
		cfg := tokensOf(t, "a", "b", "c", "d", "late")
		cfg.MaxBodies = 8 // two each
		h := adminHandler(t, a, cfg)
		c := newCallers(t, h)
		c.post(1, "a", "of-a")
		time.Sleep(time.Second)
		for _, app := range []string{"b", "c", "d"} {
			c.post(2, app, "of-"+app)
			synctest.Wait()
			c.post(50, app, "of-"+app)
			synctest.Wait()
		}
		c.post(1, "a", "of-a")
		synctest.Wait()
		c.post(50, "a", "of-a") // waits, and came before the late one
		synctest.Wait()
		c.post(1, "late", "of-late")
		synctest.Wait()
		if a.serving()["late"] != 0 {
			t.Fatal("there was a slot left")
		}
		time.Sleep(1600 * time.Millisecond) // the first of a is stored
		synctest.Wait()
		if at := a.serving(); at["late"] != 1 || at["a"] != 1 {
			t.Errorf("at a time: %v", at)
		}
		c.calls.Wait()
		for app, most := range a.most {
			if most > 2 {
				t.Errorf("%s: %d at a time", app, most)
			}
		}
	})
}

// TestSlotIsGivenBack whatever becomes of its request.
func TestSlotIsGivenBack(t *testing.T) {
	for name, p := range map[string]*peer{"stored": newPeer(), "panic": {boom: "x"}} {
		cfg := config(t)
		cfg.MaxBodies = 1
		h := adminHandler(t, p, cfg)
		for _, in := range []string{largeCallback, large("{"), strings.Repeat("x", 5<<20), largeCallback} {
			if got := returned(t, post(t, h, "/api/callback", in)); got.Msg == wire.MsgTooMany {
				t.Errorf("%s: there is no slot left", name)
			}
		}
		if n := wire.Holders(h, "callback"); n != 0 {
			t.Errorf("%s: account is kept of %d callers", name, n)
		}
	}
}

// TestGivenUpWhileItWaits: a request whose caller has gone waits no longer, and leaves
// nothing behind.
func TestGivenUpWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newSlowStore()
		cfg := config(t)
		cfg.MaxBodies = 1
		h := adminHandler(t, a, cfg)
		c := newCallers(t, h)
		c.post(1, "", "")
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		c.calls.Go(func() {
			r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://peer/api/callback", strings.NewReader(largeCallback))
			h.ServeHTTP(quiet{}, r)
		})
		synctest.Wait()
		began := time.Now()
		cancel()
		synctest.Wait()
		time.Sleep(2400 * time.Millisecond)
		c.post(1, "", "") // is next, a moment later
		c.calls.Wait()
		if took := time.Since(began); a.count() != 2 || took != 5*time.Second || wire.Holders(h, "callback") != 0 {
			t.Errorf("%d stored after %v", a.count(), took)
		}
	})
}

// quiet is a ResponseWriter that nobody reads from.
type quiet struct{}

func (quiet) Header() http.Header         { return http.Header{} }
func (quiet) Write(b []byte) (int, error) { return len(b), nil }
func (quiet) WriteHeader(int)             {}

// TestSmallBodiesNeedNoSlot: registrations are served however many others of their kind
// hang, also where there is but one slot and that is taken.
func TestSmallBodiesNeedNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := stuckAdmin{newPeer(), make(chan struct{})}
		cfg := tokensOf(t, "app")
		cfg.MaxBodies = 1
		h := adminHandler(t, a, cfg)
		var calls sync.WaitGroup
		const n = 200
		for range n {
			calls.Go(func() { post(t, h, "/api/registry", large(registration), wire.HeaderToken, token) })
		}
		synctest.Wait()
		for i := range n {
			in := registration
			if i%2 == 0 {
				in += strings.Repeat(" ", 64<<10-len(in)) // just small
			}
			calls.Go(func() {
				if got := returned(t, post(t, h, "/api/registry", in, wire.HeaderToken, "of-app")); !got.OK() {
					t.Errorf("%d bytes: %+v", len(in), got)
				}
			})
		}
		time.Sleep(3 * time.Second) // those that wait for a slot give up
		close(a.store)
		calls.Wait()
		if got := a.count(); got != n+1 {
			t.Errorf("%d were served, want %d small ones and a large one", got, n)
		}
	})
}
