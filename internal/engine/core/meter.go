package core

import (
	"context"
	"sync"
	"time"

	"github.com/xxljob/xxljob/store"
)

// How long each method of the store takes, and how often it fails. Input: calls. Output: the
// same calls, counted, for Stats.

// Meter counts the calls of a store. What else that is, beside a Store, has to be asked of
// given, and its calls are counted by metered.
type Meter struct {
	store.Store
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

func (m *Meter) begin(method string) timing {
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

// End is called when the call has returned, with where its error is.
func (t timing) End(err *error) {
	if t.meter == nil {
		return
	}
	took := time.Since(t.at)
	t.meter.mu.Lock()
	defer t.meter.mu.Unlock()
	t.meter.stats.count(took, t.rows, *err)
}

// Stats are those of all methods that were called.
func (m *Meter) Stats() map[string]CallStats {
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

// Metered begins a call of a method that not all stores have: see given.
func Metered(s store.Store, method string) timing {
	if m, ok := s.(*Meter); ok {
		return m.begin(method)
	}
	return timing{}
}

// meteredLogs is a store that keeps logs, whose calls count.
type meteredLogs struct {
	store.LogStore
	in store.Store
}

// LogsIn returns what a store is that keeps logs, and false where it does not.
func LogsIn(s store.Store) (store.LogStore, bool) {
	logs, ok := Given(s).(store.LogStore)
	return meteredLogs{logs, s}, ok
}

func (m meteredLogs) AddLogPages(ctx context.Context, pages []store.LogPage, jobBytes int64) (_ []int64, err error) {
	defer Metered(m.in, "AddLogPages").End(&err)
	return m.LogStore.AddLogPages(ctx, pages, jobBytes)
}

func (m meteredLogs) LogPages(ctx context.Context, runID int64, fromLine, limit int) (_ []store.LogPage, _ int, err error) {
	defer Metered(m.in, "LogPages").End(&err)
	return m.LogStore.LogPages(ctx, runID, fromLine, limit)
}

// Given is the store as New was given it, with all else that it is.
func Given(s store.Store) store.Store {
	if m, ok := s.(*Meter); ok {
		return m.Store
	}
	return s
}
