package xxljob

// Questions for lines of logs. Input: those of other nodes, from the inbox. Output:
// answers, in the store, a few at a time. And the books about all that is asked for
// at this node.

import (
	"sync"
)

// logWidth bounds the questions of other nodes that are answered at once for
// one app, and the calls that are under way at its executor.
const logWidth = 4

// logDesk keeps the books about logs that are asked for. It is safe for concurrent
// use.
type logDesk struct {
	mu        sync.Mutex
	calls     map[string]chan struct{} // guarded by mu: of each app, a token for each call under way
	answering map[int64]bool           // guarded by mu: questions of other nodes
	busy      map[string]int           // guarded by mu: how many of them, by app
	left      bool                     // guarded by mu: one was left in the inbox
	listeners map[wake]bool            // guarded by mu: those here who wait for answers
}

func newLogDesk() *logDesk {
	return &logDesk{calls: map[string]chan struct{}{}, answering: map[int64]bool{}, busy: map[string]int{}, listeners: map[wake]bool{}}
}

func (d *logDesk) callsOf(app string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls[app] == nil {
		d.calls[app] = make(chan struct{}, logWidth)
	}
	return d.calls[app]
}

// begin takes on a question, unless it is being answered or there is no room: an
// executor that hangs does not keep others from being asked.
func (d *logDesk) begin(ask Ask) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.answering[ask.ID] {
		return false
	}
	if d.busy[ask.Run.App] >= logWidth {
		d.left = true
		return false
	}
	d.answering[ask.ID] = true
	d.busy[ask.Run.App]++
	return true
}

// end is done with a question. It reports whether others wait for the room.
func (d *logDesk) end(ask Ask) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.answering, ask.ID)
	if d.busy[ask.Run.App]--; d.busy[ask.Run.App] == 0 {
		delete(d.busy, ask.Run.App)
	}
	left := d.left
	d.left = false
	return left
}

func (d *logDesk) listen() wake {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := newWake()
	d.listeners[w] = true
	return w
}

func (d *logDesk) leave(w wake) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.listeners, w)
}

// tell makes all who wait for answers look.
func (d *logDesk) tell() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for w := range d.listeners {
		w.poke()
	}
}
