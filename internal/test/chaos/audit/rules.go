package audit

// Rules are the promises that the audited program was configured for. All in
// milliseconds.
type Rules struct {
	// Misfire is the threshold under which no instant may be skipped.
	Misfire int64
	// LostAfter is the silence after which a node's runs are judged.
	LostAfter int64
	// Death, Silence and Leave are within what time others take over from a process
	// that died, from one that is paused or cut off, and from one that stops in good
	// order.
	Death, Silence, Leave int64
	// LeaseTTL is how long a node may be silent before others act. Locks says that they
	// see at once that a process died, because a connection holds its shards.
	LeaseTTL int64
	Locks    bool
	// Grace is how long an executor waits for a handler whose run has timed out. Then its
	// job goes on without it.
	Grace int64
	// Horizon is for how long after a fault the runs that fall due are looked at, route
	// by route.
	Horizon int64
	// Lateness is the most that the 99th percentile of all starts may be late, in a
	// stretch without a fault that holds the whole cluster for longer.
	Lateness int64
	// Timed asks that this, and Fault.Within, is held against the scheduler: on a
	// machine that is busy with other tests it is only measured.
	Timed bool
	// Busy says that the machine runs other clusters too: fail-over is measured then
	// and not held against the scheduler, and three times Overdue is good health.
	Busy bool
	// Overdue is by how much a start may be late in good health: an operation that
	// comes in between takes the instant away.
	Overdue int64
	// Slack is what is granted where two records of one thing are compared: a
	// result is stored a moment after its handler has ended.
	Slack int64
	// Unwritten is for how long a line of a log may be in memory alone, with the call that
	// stores it.
	Unwritten int64
	// Refused is of which runs the database refuses the logs, those whose id is a multiple; zero
	// for none.
	Refused int64
	// Stepped says that the database's clock was stepped, by which nodes and rows go, and not the
	// machine's, by which handlers and the supervisor do: see checkStepped.
	Stepped bool
	// Back is within what time scheduling is back after a fault of the database.
	Back int64
	// Sinks are the names of those who are told of alarms; where there are none, nobody asks
	// for any.
	Sinks []string
	// SinkOf is the service of which alone a sink is told; others are told of all.
	SinkOf map[string]string
	// MayForget says that the database may lose what it has acknowledged (a
	// standby is promoted that had not received it): losses are counted then, and
	// are no violation.
	MayForget bool
}

// overdue is Overdue on the machine as it is.
func (r Rules) overdue() int64 {
	if r.Busy {
		return 3 * r.Overdue
	}
	return r.Overdue
}

// takeOver is within what time the shards of a fault's victim are taken over.
func (r Rules) takeOver(effect string) int64 {
	switch effect {
	case Dies:
		return r.Death
	case Leaves:
		return r.Leave
	case Silent:
		return r.Silence
	}
	return 0
}

// untaken is by how much a run may be late that a fault's victim had not taken: a
// death is seen at once where a connection holds the shards, any silence after a LeaseTTL,
// and so long a node tries which can do nothing.
func (r Rules) untaken(effect string) int64 {
	if effect == Dies && r.Locks {
		return r.Death
	}
	return r.LeaseTTL + 3_000
}

// DefaultRules are those of the scheduler's zero configuration.
func DefaultRules() Rules {
	return Rules{
		Misfire: 15_000, LostAfter: 30_000, Death: 2_000, Silence: 10_000, Leave: 500, LeaseTTL: 5_000, Locks: true, Grace: 10_000, Horizon: 15_000, Lateness: 10_000,
		Timed: true, Overdue: 1_000, Slack: 5_000, Unwritten: 2_000, Back: 2_000,
	}
}

// RowRules are those of a cluster that goes by the rows of the lease table alone: a
// process that died is a silent one until its name is back.
func RowRules() Rules {
	r := DefaultRules()
	r.Locks, r.Death = false, r.Silence
	return r
}
