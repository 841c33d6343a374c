package postgres

import (
	"slices"
	"sync"
)

// turns is a lock that is had in the order of those who ask for it, and that one may
// stop waiting for.
type turns struct {
	mu    sync.Mutex
	taken bool            // guarded by mu
	queue []chan struct{} // guarded by mu: of those who wait
}

// ask returns a channel that is closed when it is the caller's turn. Who asks either
// waits for that and calls done after it, or calls leave.
func (t *turns) ask() chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn := make(chan struct{})
	if t.taken {
		t.queue = append(t.queue, turn)
	} else {
		t.taken = true
		close(turn)
	}
	return turn
}

// done ends a turn.
func (t *turns) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass()
}

// leave ends the waiting for a turn, and the turn where it has come meanwhile.
func (t *turns) leave(turn chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.queue, turn); i >= 0 {
		t.queue = slices.Delete(t.queue, i, i+1)
		return
	}
	t.pass()
}

// pass gives the turn to the next. Called with mu held.
func (t *turns) pass() {
	if len(t.queue) == 0 {
		t.taken = false
		return
	}
	close(t.queue[0])
	t.queue = t.queue[1:]
}
