package xxljob

// Messages that are on their way to alarmers.

import "sync"

// alarmCalls is how many calls of one alarmer are under way at once: one that hangs holds up
// messages of its own rule and of no other.
const alarmCalls = 8

// alarmFlights are the calls that are under way. It is safe for concurrent use.
type alarmFlights struct {
	mu    sync.Mutex
	ended []endedMessage // guarded by mu; since the loop has looked
	calls map[int]int    // guarded by mu; that have not returned, by the place of the rule
	under int            // guarded by mu; messages that have not ended
}

// endedMessage is a message and what became of it.
type endedMessage struct {
	alarmMessage
	err error
}

// begin takes the place of a call, where there is one.
func (f *alarmFlights) begin(rule int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[rule] >= alarmCalls {
		return false
	}
	f.calls[rule]++
	f.under++
	return true
}

func (f *alarmFlights) returned(rule int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[rule]--
}

// land notes the end of a message, landed returns those that have ended since it was asked.
func (f *alarmFlights) land(m alarmMessage, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = append(f.ended, endedMessage{m, err})
	f.under--
}

// none reports whether no message is on its way, nor has ended since landed was asked.
func (f *alarmFlights) none() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.under == 0 && len(f.ended) == 0
}

func (f *alarmFlights) landed() []endedMessage {
	f.mu.Lock()
	defer f.mu.Unlock()
	ended := f.ended
	f.ended = nil
	return ended
}
