package xxljob

// How long each method of the store takes, and how often it fails. Input: calls. Output: the
// same calls, counted, for Stats.

import (
	"sync"
	"time"
)

// storeMeter counts the calls of a store. What it does not count it passes on as it is.
type storeMeter struct {
	Store
	meters sync.Map // *callMeter by method
}

// callMeter is what is known of one method.
type callMeter struct {
	mu    sync.Mutex
	stats CallStats // guarded by mu
}

// timing is a call that is under way.
type timing struct {
	meter *callMeter
	at    time.Time
	rows  int
}

func (m *storeMeter) begin(method string) timing {
	of, known := m.meters.Load(method)
	if !known {
		of, _ = m.meters.LoadOrStore(method, &callMeter{})
	}
	return timing{meter: of.(*callMeter), at: time.Now()}
}

// of says how many rows the call is about.
func (t timing) of(rows int) timing {
	t.rows = rows
	return t
}

// end is called when the call has returned, with where its error is.
func (t timing) end(err *error) {
	took := time.Since(t.at)
	t.meter.mu.Lock()
	defer t.meter.mu.Unlock()
	t.meter.stats.count(took, t.rows, *err)
}

// stats are those of all methods that were called.
func (m *storeMeter) stats() map[string]CallStats {
	all := map[string]CallStats{}
	m.meters.Range(func(method, of any) bool {
		meter := of.(*callMeter)
		meter.mu.Lock()
		defer meter.mu.Unlock()
		all[method.(string)] = meter.stats
		return true
	})
	return all
}

// given is the store as New was given it, with all else that it is.
func given(s Store) Store {
	if m, ok := s.(*storeMeter); ok {
		return m.Store
	}
	return s
}
