package audit

import "cmp"

// Job is a job of the workload, as the supervisor asked for it.
type Job struct {
	ID   int64
	Name string
	// Shard is the scheduling shard that the answer to its addition named.
	Shard int
	// Delay is how long after the end of a run the next is due, in milliseconds;
	// zero for jobs with instants of their own. Jobs that only triggers run have
	// neither.
	Delay int64
	// Block is the job's block strategy.
	Block string
	// Broadcast jobs have a run a node, at each instant.
	Broadcast bool
	// Nearest jobs run at the node that owns their shard.
	Nearest bool
	// Route is the job's routing strategy.
	Route string
	// Remote jobs have their handlers in processes of their own, whose logs are not in the store.
	Remote bool
	// Prompt jobs have short runs, which nobody edits or triggers: only a fault makes
	// them late.
	Prompt bool
	// Max is how many runs of a concurrent job may be side by side in a process.
	Max int
	// MaxRuns is how many runs its schedule makes; zero is no bound.
	MaxRuns int
	// Again says what follows when a handler fails; nil where none does.
	Again *Again
	// Key is "app/name", by which other jobs may name it.
	Key string
	// Children are run once for each of its triggers that has succeeded, and it runs once for
	// each Window in which all those of After have: by their ids and keys. A window is over
	// AfterTimeout behind the first of them.
	Children             []int64
	ChildKeys            []string
	After                []int64
	AfterKeys            []string
	Window, AfterTimeout int64
	// LateAfter is how long behind its instant a run counts as late that has not ended.
	LateAfter int64
	// App is the service that has its handler.
	App string
	// Nobody says what becomes of it while that is away; empty where it is never away.
	Nobody string
	// FireOnce jobs have one run for all instants that were missed, others none.
	FireOnce bool
	// Chosen jobs have a router that only nodes of their service have.
	Chosen bool
}

// RouteBusyover is the route that refuses a run where every executor is busy with its
// job: after a stall the job's runs come at once.
const RouteBusyover = "BUSYOVER"

// The block strategies that let an instant end without a start.
const (
	BlockSerial  = "SERIAL_EXECUTION"
	BlockDiscard = "DISCARD_LATER"
	BlockCover   = "COVER_EARLY"
)

// BlockConcurrent lets the runs of a job be side by side.
const BlockConcurrent = "CONCURRENT"

// Grid is a set of instants: Anchor, and every Period before and after it, in
// milliseconds, of which those before From and after To are left out, each unless it is
// zero. A zero Period has none.
type Grid struct{ Period, Anchor, From, To int64 }

// has reports whether the instant is on the grid.
func (g Grid) has(at int64) bool {
	return g.Period > 0 && (at-g.Anchor)%g.Period == 0 && (g.From == 0 || at >= g.From) && (g.To == 0 || at <= g.To)
}

// first is the first instant of the grid at or after the given one; To does not count.
func (g Grid) first(at int64) int64 {
	if g.From != 0 {
		at = max(at, g.From)
	}
	rest := (at - g.Anchor) % g.Period
	if rest < 0 {
		rest += g.Period
	}
	if rest == 0 {
		return at
	}
	return at + g.Period - rest
}

// The outcomes of an operation.
const (
	Done    = "done"
	Refused = "refused" // certainly without effect: a rolled back transaction
	Unknown = "unknown" // nobody knows: may have taken effect, or may yet
)

// The kinds of operations.
const (
	// OpSet gives the job the Grid: an addition, a start, a stop or removal (no
	// Grid), an edit.
	OpSet = "set"
	// OpTrigger is a trigger by hand, OpTx one in a transaction of the caller's.
	OpTrigger = "trigger"
	OpTx      = "tx"
	// OpChain is a trigger of a job whose handlers fail, so that it makes several runs.
	OpChain = "chain"
	// OpKill asks for the end of Run, and of what follows it.
	OpKill = "kill"
)

// Op is one operation of the supervisor, repeated until it was answered or given
// up: Call is when the first attempt began, Return when the last one ended.
type Op struct {
	Kind string
	Verb string // what was called, for people
	Job  int64
	Call int64
	// Return is the end of uncertainty: also of attempts that were never
	// answered and may have landed late.
	Return  int64
	Outcome string
	Grid    Grid   // OpSet
	Param   string // triggers: unique, and what the handler is given
	Run     int64  // triggers: the id that was returned
}

// What a fault does to those it hits.
const (
	// Dies: the process is gone.
	Dies = "dies"
	// Leaves: the process was asked to stop.
	Leaves = "leaves"
	// Silent: the process is paused or cut off from the database.
	Silent = "silent"
	// Starves: the host of the process keeps the connections of its pool. The process
	// lives and is heard of, and may do nothing else.
	Starves = "starves"
	// Blocked: the database, or a part of it, is away, slow or locked.
	Blocked = "blocked"
	// Absent: the service of App has no process. The end of each is a fault of its own.
	Absent = "absent"
	// Harmless: nothing may be seen of it.
	Harmless = "harmless"
)

// Fault is one injected fault, from Begin to End. For a process that dies or
// leaves, End is when another has taken its place.
type Fault struct {
	Name   string
	Effect string
	App    string // of Absent
	// Victim is the process that is hit; zero for all of them.
	Victim     Process
	Begin, End int64
	// Gone is when a victim that dies was seen to have ended; zero where nobody waited for that.
	Gone int64
	// Shards are those that the victim owned when the fault began.
	Shards []int
	// Again asks for the time after End until scheduling is back; Within is how
	// long that may take, in milliseconds, zero without a bound.
	Again  bool
	Within int64
	// Forgets is since when what the database acknowledged may be gone after the fault;
	// zero where it is not.
	Forgets int64
	// Trouble is the cause of a trouble that a node has to tell of, from its Begin on, within
	// ToldWithin milliseconds.
	Trouble    string
	ToldWithin int64
	// ByRoute asks how late, by route, the runs due next were which the victim had not
	// taken, and whether those of each serial job kept their order.
	ByRoute bool
}

// Row is a row of the log table, with the few columns that the auditor needs.
type Row struct {
	Run, Job int64
	State    int
	Type     string
	Due      int64
	Index    int
	Total    int
	// First, Last and Count are the instants that a record stands for.
	First, Last int64
	Count       int
	Reason      string
	// Owner is the incarnation of the starter; Address is where it was sent.
	Owner, Address string
	// Started, Taken and Ended are milliseconds, zero when it did not happen.
	Started, Taken, Ended int64
	// Trigger is the first run of the row's trigger, which may be the row itself.
	Trigger                  int64
	Attempt, Reruns, Snoozes int
	// NoRetry says that nothing follows a failure. A Snoozed run has the state of a success.
	NoRetry, Snoozed bool
	// Parent is the run whose success has led to it, Depth how many did, and Business the
	// time that its work is for; zero where nothing did.
	Parent   int64
	Depth    int
	Business int64
	// StandsFor is the instant that the run stands for where that is another than the one at which
	// it is due, zero elsewhere.
	StandsFor int64
	// Doomed says that somebody asked for its end.
	Doomed bool
	// Message is what a record says, or a refusal.
	Message string
}

// The values of the state column.
const (
	Planned = iota
	Started
	Dispatched
	Succeeded
	Failed
	TimedOut
	Killed
	Lost
	NoAddress
	Discarded
	Skipped
	Cancelled
)

// typeRetry is the type of a run that follows another.
const typeRetry = "RETRY"

// instant is what the run stands for: a retry is due later than that.
func (r Row) instant() int64 {
	if r.Type == typeRetry {
		return r.Last
	}
	return r.Due
}

// told is the instant that its handler is told.
func (r Row) told() int64 { return cmp.Or(r.StandsFor, r.instant()) }

// scheduleBorn reports whether a schedule made the run.
func (r Row) scheduleBorn() bool {
	switch r.Type {
	case "CRON", "FIX_RATE", "FIX_DELAY", "ONCE", "MISFIRE":
		return true
	}
	return false
}

// covers reports whether the row stands for the instant.
func (r Row) covers(at int64) bool {
	if r.Count > 0 {
		return r.First <= at && at <= r.Last
	}
	return r.Due == at
}

// Owed is a row of what the success of a run owes to another job.
type Owed struct{ Run, Job, Business int64 }

// Open is a window of a job that is open.
type Open struct{ Job, Begins int64 }

// Alarm is a row of the table of alarms.
type Alarm struct {
	ID, Job, Run int64
	Cause        string
	Status       int
	Instant      int64
}

// Told is an alarm that a sink has accepted.
type Told struct {
	Sink       string
	Alarm, Run int64
	Cause      string
	Instant    int64
	// At is when, zero where nobody knows.
	At int64
	// Message is the name of one about a trouble, of the kind Trouble and about App. Alarm is its row,
	// zero where a node told of what it had seen itself.
	Message, Trouble, App string
}

// Trouble is a row of the table of alarms that says that a trouble has begun or is over. At is in
// milliseconds.
type Trouble struct {
	ID        int64
	Kind, App string
	Over      bool
	Status    int
	At        int64
}
