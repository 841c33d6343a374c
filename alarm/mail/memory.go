package mail

import (
	"strings"
	"sync"
)

// maxRemembered bounds what a Mailer remembers: messages, and addresses.
const maxRemembered = 256

// told is whom a server has taken a mail for that has to be sent again to others. It is
// lost with the process: then they get it twice.
type told struct {
	mu    sync.Mutex
	by    map[string]map[string]bool // guarded by mu: addresses in lower case, by Message-ID
	order []string                   // guarded by mu: the keys of by, oldest first
}

// without returns the addresses that were not told.
func (t *told) without(id string, all []string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	rest := make([]string, 0, len(all))
	for _, address := range all {
		if !t.by[id][strings.ToLower(address)] {
			rest = append(rest, address)
		}
	}
	return rest
}

// add notes who was told. The oldest message is forgotten for the one that is too many.
func (t *told) add(id string, addresses []string) {
	if len(addresses) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[string]map[string]bool{}
	}
	if t.by[id] == nil {
		if len(t.order) == maxRemembered {
			delete(t.by, t.order[0])
			t.order = t.order[1:]
		}
		t.by[id], t.order = map[string]bool{}, append(t.order, id)
	}
	for _, address := range addresses {
		t.by[id][strings.ToLower(address)] = true
	}
}

// forget is for a message that is done.
func (t *told) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by[id] == nil {
		return
	}
	delete(t.by, id)
	for i, other := range t.order {
		if other == id {
			t.order = append(t.order[:i], t.order[i+1:]...)
			return
		}
	}
}

// once is what was complained of. When it is full it begins anew.
type once struct {
	mu   sync.Mutex
	seen map[string]bool // guarded by mu
}

// first reports whether a text comes for the first time.
func (o *once) first(s string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[s] {
		return false
	}
	if o.seen == nil || len(o.seen) >= maxRemembered {
		o.seen = map[string]bool{}
	}
	o.seen[s] = true
	return true
}
