package store

// How planned runs are started, handed over and settled.

import (
	"context"
	"time"
)

// StartStore, for authors of stores, starts planned runs, hands them over between nodes, and settles those whose
// node is gone.
type StartStore interface {
	// Start marks planned runs started, or refused, each by a compare-and-set
	// (see Start), in one transaction a shard, and returns one Started for each
	// Start, in the same order, appended to dst (see Store).
	Start(ctx context.Context, dst []Started, starts []Start) ([]Started, error)
	// Readdress moves a started run to another address, when its owner and token
	// are as given, the shard's epoch is the caller's, and it is untaken or is
	// addressed to its owner's own incarnation (which was handed it and refused).
	// It reports whether it did. The run is untaken then, unless the new address
	// is the owner's own; the node of an attached address has to be there, as for
	// Start.
	Readdress(ctx context.Context, r Readdress) (bool, error)
	// Dispatched marks started runs as accepted by remote executors, each when its
	// owner and token are as given, adds Msg to its TriggerMsg, and stores the BootID where
	// there is one. It returns the runs that it changed, as they then are, in the order given; one that has ended
	// meanwhile stays as it is. Runs whose rows others have locked are left out; the error
	// is ErrLocked then, and the changed runs are returned beside it.
	Dispatched(ctx context.Context, accepted []Dispatch) ([]Run, error)
	// StartedBy returns, in order of ID, started runs of the shards whose owner or
	// addressee is one of the incarnations, with IDs greater than after, at most
	// limit.
	StartedBy(ctx context.Context, shards []Shard, incarnations []string, after int64, limit int) ([]Run, error)
	// DispatchedRuns returns, in order of ID, the dispatched runs of the shards, whoever
	// owns the shards and the runs, with IDs greater than after, at most limit.
	DispatchedRuns(ctx context.Context, shards []Shard, after int64, limit int) ([]Run, error)
	// Settle decides about started runs whose owner or addressee is gone, or that
	// their owner gives back, each by a compare-and-set (see Verdict). It returns
	// the runs that it changed, as they then are. A Scan may or may not find a run that
	// was given back: the caller goes by the answer.
	Settle(ctx context.Context, verdicts []Verdict) ([]Run, error)
	// Inbox returns what waits for the incarnation, in order of ID: runs handed
	// over to it by other nodes that are started and not taken, with IDs greater than
	// after, at most limit; all runs that it has taken, that have not ended and have a
	// KillReason; and, whatever after is, its unanswered questions, at most limit.
	Inbox(ctx context.Context, incarnation string, after int64, limit int) (Inbox, error)
	// Take marks runs as taken by the incarnation they are addressed to. Its commit
	// comes before the call of the handler. A run with a KillReason is ended as
	// killed instead. It returns the runs that it changed, in order of ID.
	Take(ctx context.Context, incarnation string, ids []int64) ([]Run, error)
}

// Start, for authors of stores, is the start of one planned run. It takes effect when the run is
// planned, its shard has Epoch, its job exists and has JobVersion, and, for a
// schedule-born run, has a schedule and is not stopped, for a retry that is Born, is not
// stopped; and the nodes of its attached addresses, other
// than the owner's own, are there and have not left, so that there is always a
// node to take the run or to be judged.
type Start struct {
	RunID, JobID int64
	Shard        int
	Epoch        int64
	JobVersion   int64
	// State is StateStarted, or StateRefused to end the run without a start.
	State State
	// Owner and Token are the starter's incarnation and the number of the start.
	Owner string
	Token int64
	// Address is where the run goes. Where it is the owner's own, the start is
	// the taking as well.
	Address string
	// BootID is stored as the run's; TargetBoots are those of Targets, in their order,
	// where they are not empty: the first is BootID.
	BootID      string
	TargetBoots []string
	// Targets are all addresses of a broadcast, Address being the first: the run
	// becomes part 0 of len(Targets), and the others are inserted, started, in
	// the same transaction, each taken where it is the owner's own. Empty for
	// other runs; a run that is part of a broadcast already, because it was started
	// and put back, is StartStale with them.
	Targets []string
	// Serial refuses the start (StartBusy) while another run of the job is
	// started and unended at the same attached address, or at one of Targets.
	Serial bool
	// AfterRetries refuses the start (StartBusy, with Started.Run) while a RETRY of another
	// trigger of the job is planned that was due earlier: one whose
	// (Run.Due, TriggerID) is less than these, which are the run's own.
	AfterRetries bool
	Instant      time.Time
	TriggerID    int64
	// Covers are planned runs of the job, without Targets, whose place the run takes: with the
	// start, in the same transaction, each that is still planned ends as StateDiscarded, with
	// HandleMsg, and nothing follows it. One that is planned no more, or whose row others have
	// locked, stays as it is. Where the start has no effect, nothing happens to any of them.
	Covers []int64
	// Handler, Block, Param and Retries are stored as they were used, Msg is added
	// to the TriggerMsg. HandleMsg is stored where it is not empty: why a run is
	// refused. With Covers it is why these are discarded, and added to their TriggerMsg too.
	Handler, Block, Param string
	Retries               int
	Msg, HandleMsg        string
	// Known, where it is not nil, is the planned run as the caller has it from the store, which
	// does not change it, nor keep it. A store may answer with it, as the start has changed it,
	// and need not read again what nothing changes of a planned run: see Start.Started.
	Known *Run
}

// Started, for authors of stores, returns a run as a start of it that took effect has left it:
// what is known of it, what the start says, and what the store has read. That is the PlanEpoch,
// Sharding, Started, AlarmStatus, TriggerMsg and HandleMsg, which differ where the run was
// started before, and put back. It is pure.
func (s *Start) Started(read *Run) Run {
	r := *s.Known
	r.State, r.Owner, r.Token, r.Address, r.BootID = s.State, s.Owner, s.Token, PlainText(s.Address), PlainText(s.BootID)
	r.JobVersion, r.Handler, r.Block, r.Param, r.Retries = s.JobVersion, PlainText(s.Handler), PlainText(s.Block), PlainText(s.Param), s.Retries
	r.PlanEpoch, r.Sharding, r.Started, r.AlarmStatus = read.PlanEpoch, read.Sharding, read.Started, read.AlarmStatus
	r.TriggerMsg, r.HandleMsg = read.TriggerMsg, read.HandleMsg
	r.Taken = time.Time{}
	if at, attached := LocalIncarnation(s.Address); attached && at == s.Owner {
		r.Taken = r.Started
	}
	return r
}

// Started, for authors of stores, is the answer to a Start.
type Started struct {
	Status StartStatus
	// Run is the run as it now is; set for StartOK, and for StartGone where it
	// exists. For StartBusy it is the retry that is in the way, where it is one.
	Run Run
	// Siblings are the inserted parts of a broadcast, in order of their index.
	Siblings []Run
	// Covered are those of Covers that were discarded, in order of ID.
	Covered []Run
}

// Verdict, for authors of stores, decides about one started run. It takes effect when the run is
// started, its shard has Epoch, and Owner, Token and Taken are as the caller
// saw them.
type Verdict struct {
	RunID int64
	Shard int
	Epoch int64
	Owner string
	Token int64
	Taken bool
	// To is StatePlanned to give the run back (one with a KillReason is ended as
	// killed instead, and one whose job is gone or, for a schedule-born run or one that is
	// Born, stopped, as cancelled, and is taken out of the job's Runs, as by an edit: see
	// Edit.Next), StateLost to end it as interrupted, or StateStarted to adopt it under
	// NewOwner and NewToken.
	To       State
	NewOwner string
	NewToken int64
	Msg      string
}

// StartStatus is what became of a Start. Where several would do, it is the first
// of StartFenced, StartGone, StartStale, StartNoNode and StartBusy.
type StartStatus uint8

const (
	// StartOK: the run is started (or refused, as asked).
	StartOK StartStatus = iota
	// StartGone: the run is not planned any more, or does not exist.
	StartGone
	// StartStale: the job has another version, or is stopped, or has no
	// schedule any more; read it again.
	StartStale
	// StartNoNode: the node of an attached address has left, or is not there.
	StartNoNode
	// StartBusy: another run of the job is at the address.
	StartBusy
	// StartFenced: the shard's epoch is another.
	StartFenced
	// StartLocked: somebody else has the row locked; try again in the next pass.
	StartLocked
)

// Dispatch says that a remote executor has accepted a run.
type Dispatch struct {
	RunID int64
	Owner string
	Token int64
	// BootID, where it is not empty, is stored as the run's: the process that has accepted it says
	// so.
	BootID string
	Msg    string
}

// Readdress moves a started run to another address.
type Readdress struct {
	RunID   int64
	Shard   int
	Epoch   int64
	Owner   string
	Token   int64
	Address string
	// BootID is stored as the run's.
	BootID string
	// Msg is added to the TriggerMsg, as a line.
	Msg string
}
