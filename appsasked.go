package xxljob

// The apps whose addresses a registry of the user's is being asked for.

import (
	"sync"
	"time"
)

// appsAsked are the apps whose addresses are asked for beside the start loop, and the
// latest answers. It is safe for concurrent use.
type appsAsked struct {
	mu    sync.Mutex
	under map[string]bool      // guarded by mu
	said  map[string]appAnswer // guarded by mu: for the runs that have waited for them
}

// appAnswer is what has come of it.
type appAnswer struct {
	answer
	err     error
	version int       // of the book, when it was asked for
	asked   time.Time // when
}

func newAppsAsked() *appsAsked {
	return &appsAsked{under: map[string]bool{}, said: map[string]appAnswer{}}
}

// begin reports whether nobody was asking about an app until now.
func (a *appsAsked) begin(app string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	began := !a.under[app]
	a.under[app] = true
	return began
}

func (a *appsAsked) end(app string, said appAnswer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.under, app)
	if len(a.said) > 10_000 {
		clear(a.said)
	}
	a.said[app] = said
}

func (a *appsAsked) asks(app string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.under[app]
}

func (a *appsAsked) latest(app string) (appAnswer, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	said, ok := a.said[app]
	return said, ok
}
