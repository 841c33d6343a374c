package xxljob

// The executors of this process.

import (
	"fmt"
	"slices"
	"sync"
)

// attachedSet are the executors of this process, one an app.
type attachedSet struct {
	mu         sync.RWMutex
	list       []Executor      // guarded by mu
	registered map[string]bool // guarded by mu: apps in a Registry of the user's
}

// unregistered reports whether the app's executor was never registered.
func (a *attachedSet) unregistered(app string) bool {
	has := a.get(app) != nil
	a.mu.RLock()
	defer a.mu.RUnlock()
	return has && !a.registered[app]
}

// register notes that the app's executor was registered.
func (a *attachedSet) register(app string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.registered == nil {
		a.registered = map[string]bool{}
	}
	a.registered[app] = true
}

// get returns the executor of an app, nil when there is none.
func (a *attachedSet) get(app string) Executor {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, e := range a.list {
		if e.App() == app {
			return e
		}
	}
	return nil
}

func (a *attachedSet) add(e Executor) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, has := range a.list {
		if has.App() == e.App() {
			return fmt.Errorf("xxljob: attach: app %q has an executor in this process", e.App())
		}
	}
	a.list = append(a.list, e)
	return nil
}

// drop takes back what add has added.
func (a *attachedSet) drop(e Executor) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = slices.DeleteFunc(a.list, func(has Executor) bool { return has == e })
}

func (a *attachedSet) all() []Executor {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return slices.Clone(a.list)
}

// placesOf is how many runs of an app may be under way at this node's executor.
func (a *attachedSet) placesOf(app string) int {
	if p, ok := a.get(app).(interface{ Places() int }); ok {
		return max(1, p.Places())
	}
	return attachedPlaces
}
