package xxljob_test

// Tokens of apps that the store keeps, beside those of the config.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// keptTokens counts what is asked of the tokens of a store, which may be away.
type keptTokens struct {
	st           *memory.Store
	mu           sync.Mutex
	reads, notes int
	away         bool
}

func (k *keptTokens) AppTokens(ctx context.Context) ([]store.AppToken, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.reads++; k.away {
		return nil, errors.New("the store is away")
	}
	return k.st.AppTokens(ctx)
}

func (k *keptTokens) UseAppToken(ctx context.Context, name, hash string) error {
	k.mu.Lock()
	k.notes++
	k.mu.Unlock()
	return k.st.UseAppToken(ctx, name, hash)
}

// asked is how often the tokens were read, and their use noted, since it was called last.
func (k *keptTokens) asked() (reads, notes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	reads, notes, k.reads, k.notes = k.reads, k.notes, 0, 0
	return reads, notes
}

// give adds a token, and returns its secret.
func (k *keptTokens) give(t *testing.T, name string, lasts time.Duration, apps ...string) string {
	t.Helper()
	secret := store.AppTokenPrefix + strings.Repeat(name, 8)
	hash := sha256.Sum256([]byte(secret))
	_, err := k.st.AddAppToken(store.WithActor(t.Context(), "ann"), store.AppToken{Name: name, Apps: apps, Hash: string(hash[:]), Expires: time.Now().Add(lasts)})
	stage.Must(t, err)
	return secret
}

// registersWith reports whether an address of an app is taken from who shows a token.
func (e *elsewhere) registersWith(token, header, app string) bool {
	e.t.Helper()
	msg := wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: app, RegistryValue: at1}
	return stage.Post(e.t, e.admin, token, header, "registry", msg.Encode(nil)).OK()
}

// TestTokensOfTheStore open the doors of executors and of the jobs API for their apps and no others, and stop on
// each node within moments when they are revoked or expire.
func TestTokensOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &keptTokens{st: memory.New()}
		st := bent.AllOf(kept.st, kept)
		cfg := xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPI: []string{"far"}, Tokens: map[string][]string{"": {stage.Token}, "other": {"of-other-and-long"}}}}
		e, beside := newElsewhere(t, st, cfg, nil), newElsewhere(t, st, cfg, nil)
		one, two, brief := kept.give(t, "one", time.Hour, "far"), kept.give(t, "two", time.Hour, "far", "wide"), kept.give(t, "brief", time.Minute, "far")
		for _, c := range []struct {
			what, token, header, app string
			want                     bool
		}{
			{"its app", one, "far", "far", true}, {"its only app, unnamed", one, "", "far", true}, {"another app", one, "wide", "wide", false}, {"another app, unnamed", one, "", "wide", false},
			{"one of its apps", two, "wide", "wide", true}, {"one of two apps, unnamed", two, "", "wide", false}, {"an app in the name of another", two, "far", "wide", false},
			{"an app with tokens in the config", two, "other", "other", false}, {"a wrong one", one + "x", "far", "far", false}, {"the beginning", one[:len(one)-1], "far", "far", false}, {"the prefix", store.AppTokenPrefix, "far", "far", false},
			{"the config's", stage.Token, "far", "far", true}, {"the config's for an app", "of-other-and-long", "other", "other", true},
		} {
			if got := e.registersWith(c.token, c.header, c.app); got != c.want {
				t.Errorf("%s: %v", c.what, got)
			}
		}
		if ret := stage.Post(t, e.admin, one, "far", "addJob", wire.AddJobRequest{JobDefinition: definition("nightly")}.Encode(nil)); !ret.OK() {
			t.Errorf("a job: %+v", ret)
		}
		if ret := stage.Post(t, e.admin, two, "wide", "addJob", wire.AddJobRequest{JobDefinition: definition("nightly")}.Encode(nil)); ret.OK() {
			t.Error("a job of an app that JobsAPI does not list")
		}
		both := func(token string, want bool) {
			t.Helper()
			for i, n := range []*elsewhere{e, beside} {
				if n.registersWith(token, "far", "far") != want {
					t.Errorf("node %d: want %v", i, want)
				}
			}
		}
		both(brief, true)
		stage.Must(t, st.RemoveAppToken(t.Context(), "one"))
		time.Sleep(5 * time.Second)
		both(one, false)
		both(two, true)
		time.Sleep(time.Minute)
		both(brief, false)
	})
}

// TestTokensOfTheStoreAreCheap: who shows a token of the config costs the store nothing, however many others are
// shown it is asked once in five seconds, and a use is noted once a minute.
func TestTokensOfTheStoreAreCheap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &keptTokens{st: memory.New()}
		st := bent.AllOf(kept.st, kept)
		e := newElsewhere(t, st, xxljob.Config{}, nil)
		token := kept.give(t, "one", time.Hour, "far")
		for range 100 {
			e.registersWith(stage.Token, "far", "far")
			e.registersWith("no-such-token-at-all", "far", "far")
		}
		if reads, notes := kept.asked(); reads != 0 || notes != 0 {
			t.Errorf("without a token of the store: %d reads, %d notes", reads, notes)
		}
		begun := time.Now()
		for range 119 {
			if !e.registersWith(token, "far", "far") {
				t.Fatal("refused")
			}
			time.Sleep(time.Second)
		}
		if reads, notes := kept.asked(); reads != 24 || notes != 2 || time.Since(begun) != 119*time.Second {
			t.Errorf("in %v: %d reads, %d notes, want 24 and 2", time.Since(begun), reads, notes)
		}
	})
}

// TestTokensOfAStoreThatWasNeverThere: until the store has told its tokens none that may be one of them is
// refused: who shows it is told to come again, by a status that executors take for no answer. The store is
// asked no more often for that, and whoever tries tokens out is answered no more often than otherwise.
func TestTokensOfAStoreThatWasNeverThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &keptTokens{st: memory.New()}
		st := bent.AllOf(kept.st, kept)
		e := newElsewhere(t, st, xxljob.Config{}, nil)
		token := kept.give(t, "one", time.Hour, "far")
		ask := func(from, token string) (status int) { // 0 where there is no answer
			defer func() {
				if v := recover(); v != nil && v != http.ErrAbortHandler {
					panic(v)
				}
			}()
			msg := wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: "far", RegistryValue: at1}
			r := httptest.NewRequest(http.MethodPost, "/api/registry", bytes.NewReader(msg.Encode(nil)))
			r.RemoteAddr = from
			r.Header.Set(wire.HeaderToken, token)
			r.Header.Set(wire.HeaderApp, "far")
			w := httptest.NewRecorder()
			e.admin.ServeHTTP(w, r)
			return w.Code
		}
		kept.mu.Lock()
		kept.away = true
		kept.mu.Unlock()
		for range 60 {
			if got := ask("192.0.2.1:1", token); got != http.StatusServiceUnavailable {
				t.Fatalf("by a node that does not know the tokens: status %d", got)
			}
			time.Sleep(time.Second)
		}
		if reads, _ := kept.asked(); reads > 12 {
			t.Errorf("%d reads in a minute", reads)
		}
		if n := e.Stats().TokensRefused; n != 0 {
			t.Errorf("%d tokens are counted as refused", n)
		}
		began := time.Now()
		var answered atomic.Int64
		var guesses sync.WaitGroup
		for i := range 100 {
			guesses.Go(func() {
				if status := ask("192.0.2.2:1", fmt.Sprint(store.AppTokenPrefix, "guess", i)); status == http.StatusServiceUnavailable {
					answered.Add(1)
				} else if status != 0 {
					t.Errorf("a guess: status %d", status)
				}
			})
		}
		guesses.Wait()
		if n := answered.Load(); n < 2 || n > 21 || time.Since(began) < time.Duration(n-1)*100*time.Millisecond {
			t.Errorf("%d of 100 guesses were answered within %v", n, time.Since(began))
		}
		if got := ask("192.0.2.3:1", "no-such-token-at-all"); got != http.StatusOK || e.Stats().TokensRefused != 1 {
			t.Errorf("what the store cannot have: status %d, refused %d", got, e.Stats().TokensRefused)
		}
		kept.mu.Lock()
		kept.away = false
		kept.mu.Unlock()
		time.Sleep(5 * time.Second)
		if !e.registersWith(token, "far", "far") {
			t.Error("refused when the store is there")
		}
		if e.registersWith(token+"x", "far", "far") || e.Stats().TokensRefused != 2 {
			t.Errorf("a wrong one when the store is there: refused %d", e.Stats().TokensRefused)
		}
	})
}

// TestTokensWhileTheStoreIsAway: those that are known go on, and none that nobody has seen begins.
func TestTokensWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &keptTokens{st: memory.New()}
		st := bent.AllOf(kept.st, kept)
		e := newElsewhere(t, st, xxljob.Config{}, nil)
		token := kept.give(t, "one", time.Hour, "far")
		if !e.registersWith(token, "far", "far") {
			t.Fatal("refused")
		}
		late := kept.give(t, "late", time.Hour, "far")
		kept.mu.Lock()
		kept.away = true
		kept.mu.Unlock()
		time.Sleep(time.Minute)
		if !e.registersWith(token, "far", "far") || e.registersWith(late, "far", "far") {
			t.Error("what was known is refused, or what was not is accepted")
		}
		time.Sleep(time.Hour) // the end of both was known
		if e.registersWith(token, "far", "far") {
			t.Error("a token that has expired is accepted since the store does not say so")
		}
		late = kept.give(t, "later", time.Hour, "far")
		kept.mu.Lock()
		kept.away = false
		kept.mu.Unlock()
		time.Sleep(5 * time.Second)
		if !e.registersWith(late, "far", "far") {
			t.Error("a new one is refused when the store is there again")
		}
	})
}
