package xxljob

// What should not happen, counted where it is logged. Input: from all parts. Output: for
// Scheduler.Stats.

import "sync/atomic"

// mishaps are the counters of FaultStats that no part has by itself. They are safe for
// concurrent use.
type mishaps struct {
	pickedUp, adopted, forgotten         atomic.Uint64
	unplannable, endless, absent, alarms atomic.Uint64
}

// fill adds what was counted.
func (m *mishaps) fill(out *FaultStats) {
	out.PickedUp, out.Adopted, out.Forgotten = m.pickedUp.Load(), m.adopted.Load(), m.forgotten.Load()
	out.Unplannable, out.Endless, out.Absent = m.unplannable.Load(), m.endless.Load(), m.absent.Load()
	out.AlarmsFailed = m.alarms.Load()
}
