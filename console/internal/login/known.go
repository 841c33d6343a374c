package login

import (
	"sync"
	"time"
)

// knownFor is for how long it is remembered who a session was of.
const (
	knownFor  = time.Hour
	mostKnown = 256
)

// known are users whose sessions the store has confirmed within the last hour, by the hash of the
// session. They are for pages which say that the store does not answer, and give no right to what
// is in it. The zero value is complete.
type known struct {
	mu sync.Mutex
	by map[string]confirmed // guarded by mu
}

type confirmed struct {
	id Identity
	at time.Time
}

// note remembers who a session is of, or forgets that where it is nil. Where there are too many, one of
// them goes.
func (k *known) note(hash string, id *Identity) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.by, hash)
	if id == nil {
		return
	}
	if k.by == nil {
		k.by = map[string]confirmed{}
	}
	for other, x := range k.by {
		if age := time.Since(x.at); age < 0 || age > knownFor || len(k.by) >= mostKnown {
			delete(k.by, other)
		}
	}
	of := *id
	of.User.Password = ""
	k.by[hash] = confirmed{of, time.Now()}
}

// find returns who a session is of, if that is remembered.
func (k *known) find(hash string) *Identity {
	k.mu.Lock()
	defer k.mu.Unlock()
	x, there := k.by[hash]
	if age := time.Since(x.at); !there || age < 0 || age > knownFor {
		return nil
	}
	return &x.id
}
