package xxljob

// How loops are told that there is something to do.

// wakes are the pokes of the loops, by whoever has news for them.
type wakes struct {
	scan, start     wake // something may be due; something may start now
	deliver         wake // something was started before its time
	owed            wake // something may be owed in shards that are new to this node
	ahead           wake // runs that are kept apart may have to move
	lease, list     wake // a beat has something to tell, or to find out; lists of jobs
	alarms          wake // messages have ended, or alarms may be in shards that are new to this node
	late            wake // a job may have come to have a LateAfter
	inbox           wake
	watch, transit  wake // runs at other nodes: how they end, and whether they were taken
	inDoubt         wake
	unreported      wake // runs that executors have accepted
	attachedChanged wake // for a Registry of the user's
}

func newWakes() wakes {
	return wakes{
		scan: newWake(), start: newWake(), deliver: newWake(), ahead: newWake(), owed: newWake(), alarms: newWake(), late: newWake(), lease: newWake(), list: newWake(), inbox: newWake(),
		watch: newWake(), transit: newWake(), inDoubt: newWake(), unreported: newWake(), attachedChanged: newWake(),
	}
}

// wakeLoops wakes the loops that sleep while this node has no shards, or is not trusted with
// them.
func (w *wakes) wakeLoops() {
	w.scan.poke()
	w.ahead.poke()
	w.owed.poke()
	w.alarms.poke()
	w.start.poke()
	w.inbox.poke()
	w.unreported.poke()
}
