package registry

import (
	"context"
	"sync"
)

// turns let one at a time do something for an app. They are safe for concurrent use, and the zero value
// is ready.
type turns struct {
	mu   sync.Mutex
	apps map[string]*turnOf // guarded by mu: of which somebody has the turn, or waits for it
}

type turnOf struct {
	free chan struct{} // has one element while nobody has the turn
	n    int           // guarded by turns.mu: who has it and who waits
}

// take waits for the turn of an app until ctx ends, and returns how to give it back.
func (t *turns) take(ctx context.Context, app string) (give func(), err error) {
	t.mu.Lock()
	of := t.apps[app]
	if of == nil {
		of = &turnOf{free: make(chan struct{}, 1)}
		of.free <- struct{}{}
		if t.apps == nil {
			t.apps = map[string]*turnOf{}
		}
		t.apps[app] = of
	}
	of.n++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if of.n--; of.n == 0 {
			delete(t.apps, app)
		}
	}
	select {
	case <-of.free:
		return func() { of.free <- struct{}{}; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
