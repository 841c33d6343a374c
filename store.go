package xxljob

import (
	"context"
	"time"
)

// Store keeps everything that outlives a moment: jobs, runs, groups, nodes,
// shards and the registry. It is composed of small interfaces; each loop of the
// scheduler takes only what it needs. Package store/storetest holds a case for
// each sentence below.
//
// For every method:
//   - it is safe for concurrent use, by many Schedulers;
//   - values are copied in and out: neither side sees the other's later changes;
//   - one call is one transaction: it takes effect as a whole or not at all,
//     except that a batch of several shards may be one transaction a shard, and
//     a batch of runs may leave out those that do not match;
//   - a ctx that has ended changes nothing and returns its error, and a nil one is an
//     error too; with either Watch returns channels that nothing comes through;
//   - any other error, but for those above, means that the outcome is unknown: the call may have taken
//     effect. The caller reads again, it never assumes;
//   - times are kept to the millisecond, in UTC; the zero time stays zero;
//   - the arguments named now, Before and the like decide about dueness and
//     planned times only. Leases, epochs, ids, Created, Started, Taken and Ended
//     use the store's own clock.
type Store interface {
	JobStore
	ListStore
	GroupStore
	RunStore
	PlanStore
	StartStore
	LogStore
	NodeStore
	RegistryStore
	Waker
}

// JobStore keeps the definitions.
type JobStore interface {
	// AddJob inserts the job with a new ID, with Version 1 and with the Stopped it
	// was given, in shard ID modulo the number of shards. Its Next is what first
	// returns; the one it was given where first is nil. A Key that the app has
	// already is ErrDuplicateKey; an empty Key is never a duplicate; an error of
	// first is returned as it is. After any of these nothing has changed. It returns
	// the job as stored.
	AddJob(ctx context.Context, job Job, first FirstInstant) (Job, error)
	// EditJob changes one job in one transaction (see Edit) and returns the job
	// as it then is. An absent job is ErrNotFound; an edit.Version that is
	// neither zero nor the job's is ErrConflict; an edit.Guard that does not hold is
	// ErrSuperseded; a Key taken by another job is
	// ErrDuplicateKey; an error of edit.Change or edit.Next is returned as it is.
	// After any of these nothing has changed. When Change leaves the job as it
	// was and asks for no replan, nothing is written and Version stays.
	EditJob(ctx context.Context, id int64, edit Edit) (Job, error)
	// RemoveJob deletes the job and cancels all its planned runs, of every type,
	// in one transaction; its runs stay readable. ErrNotFound when absent.
	RemoveJob(ctx context.Context, id int64) error
	// Job returns one job, or ErrNotFound.
	Job(ctx context.Context, id int64) (Job, error)
	// JobByKey returns the job with the given non-empty key, or ErrNotFound.
	JobByKey(ctx context.Context, app, key string) (Job, error)
	// Jobs lists jobs in order of ID.
	Jobs(ctx context.Context, f JobFilter) ([]Job, error)
	// Changes returns what was done to the job, newest first, at most limit
	// entries. It goes on answering after the job is removed, until the store's
	// retention drops the entries; an unknown job has none.
	Changes(ctx context.Context, jobID int64, limit int) ([]Change, error)
}

// FirstInstant works out the Next of a job that is added, the zero time for none. It
// is called inside the transaction, with the job as it will be stored and the store's
// own clock, as read there: the job's Added. It is pure and may be called more than once.
type FirstInstant func(job Job, now time.Time) (time.Time, error)

// Edit is a change of one job.
type Edit struct {
	// Version, when not zero, makes the edit a compare-and-set.
	Version int64
	// Guard, when not nil, has to hold, in the same transaction.
	Guard *ListGuard
	// Verb names the change in the audit: "update", "start", "stop", "ensure",
	// "prune".
	Verb string
	// Change alters the definition; it sees the job as it is, and reports
	// whether the schedule has to be planned anew. It is pure and may be called
	// more than once. ID, Version, Shard, Next, Last, WaitRun, Added and Updated
	// are the store's: what Change does to them is ignored.
	Change func(job *Job) (replan bool, err error)
	// Missed, when it is set, is called when the schedule of an enabled job with a
	// Next is planned anew, with the job as it was and the time of the edit. The
	// ended run that it returns, if it returns one, is inserted in the same
	// transaction: a record of instants that were due and that nothing was planned
	// for. It is pure.
	//
	// The time of the edit is the store's own clock, read once after the job can be
	// claimed by nobody else, however long the edit waited for that; the job's Updated
	// is set to it. No node's estimate of that clock will do: it lags behind.
	Missed func(was Job, now time.Time) (record NewRun, missed bool)
	// Next is called when the schedule is planned anew, after the job's planned
	// schedule-born runs were cancelled, with Verb as their Reason, and its WaitRun
	// cleared, with the changed job, the latest instant that a schedule-born run of it
	// was started or refused for (zero: none), and the time of the edit as for Missed.
	// It returns the job's new Next; the zero time for none.
	Next func(job Job, started, now time.Time) (time.Time, error)
}

// JobFilter chooses jobs. Zero fields choose all, and so do lists with nothing in them, be
// they nil or not: who asks for jobs of a list that may be empty looks at it first.
type JobFilter struct {
	App, Key, Handler, Author string
	// Name is a part of the name, regardless of case.
	Name string
	// Enabled and Stopped choose by status; both or neither choose all.
	Enabled, Stopped bool
	// IDs chooses these jobs only.
	IDs []int64
	// Keys chooses jobs with one of these keys. A job without a key has none of them.
	// Each page looks all of them up, so ask for thousands in batches, each with its
	// length as Limit.
	Keys []string
	// After is the keyset: jobs with a greater ID only.
	After int64
	// Limit is the page size; zero means 100.
	Limit int
}

// Change is an entry of the audit: one change of a job. It is written in the
// transaction that makes the change.
type Change struct {
	At      time.Time
	JobID   int64
	Version int64
	// Actor is the name in the context of the call (see WithActor).
	Actor string
	// Verb is "add", "remove", the Verb of the Edit, or "stop" for a stop by the
	// scheduler itself.
	Verb string
}

// GroupStore keeps executor apps.
type GroupStore interface {
	// SaveGroup inserts or replaces the group.
	SaveGroup(ctx context.Context, g Group) error
	// EnsureGroup inserts an automatic group for app when there is none, and
	// otherwise writes nothing.
	EnsureGroup(ctx context.Context, app string) error
	// RemoveGroup deletes it: ErrGroupInUse while jobs of the app exist,
	// ErrNotFound when absent.
	RemoveGroup(ctx context.Context, app string) error
	// Group returns one group, or ErrNotFound.
	Group(ctx context.Context, app string) (Group, error)
	// Groups lists all groups in order of App.
	Groups(ctx context.Context) ([]Group, error)
}

// RunStore adds runs outside the schedule, ends runs and answers questions.
type RunStore interface {
	// AddRun inserts a planned run of the job, without an epoch, and returns it.
	// With a Key that was used for this job before, it inserts nothing and
	// returns the run inserted then. ErrNotFound when the job is absent.
	AddRun(ctx context.Context, jobID int64, t Trigger) (Run, error)
	// Finish stores results, each by a compare-and-set (see Result), and returns
	// the runs that accepted theirs, as they then are, in the order given. Of two
	// results for one run the first is accepted. A result that comes for a run
	// which has ended as lost is noted once, in its TriggerMsg and LateNoted, unless it has an
	// Owner, and is not accepted. Runs whose rows others have locked are left out, and make the
	// error ErrLocked, beside which the runs that accepted theirs are returned.
	//
	// In the same transaction, when the ended run is one its job waits for
	// (WaitRun), the job's Next becomes the run's end plus the schedule's delay;
	// and when the job is enabled, has a schedule but no Next, waits for nothing
	// and has no unended schedule-born run left, the job is stopped with
	// StopFinished, without raising its version. Both hold for every way in which
	// a run ends: Claim (skipped), Start (refused), Kill, Settle and Take too.
	Finish(ctx context.Context, results []Result) ([]Run, error)
	// Kill asks for the end of a run. A planned one is cancelled, with reason
	// as its Reason; a started or dispatched one gets KillReason, which the node
	// it is addressed to finds in its Inbox, and of several reasons the first
	// stays; an ended one is left alone. An empty reason is "killed". It returns
	// the run as it then is, or ErrNotFound.
	Kill(ctx context.Context, runID int64, reason string) (Run, error)
	// Run returns one run, or ErrNotFound.
	Run(ctx context.Context, id int64) (Run, error)
	// RunsByID returns those of the runs that exist, in order of ID.
	RunsByID(ctx context.Context, ids []int64) ([]Run, error)
	// Runs lists runs, newest (greatest ID) first.
	Runs(ctx context.Context, f RunFilter) ([]Run, error)
}

// RunFilter chooses runs. Zero fields choose all, and so does a list of States with nothing
// in it, be it nil or not.
type RunFilter struct {
	App   string
	JobID int64
	// TriggerID chooses the runs of one trigger.
	TriggerID int64
	// States chooses runs in one of these states.
	States []State
	// From and To bound Scheduled: From <= Scheduled < To.
	From, To time.Time
	// Before is the keyset: runs with a smaller ID only.
	Before int64
	// Limit is the page size; zero means 100.
	Limit int
}

// Result is how a run ended.
type Result struct {
	RunID int64
	// Incarnation and Token fence the result of an attached executor: the run
	// must be started, be addressed to that incarnation, and carry that token.
	// Owner and Token fence what an owner concludes about its own start: the run must
	// be started or dispatched, have that owner, and carry that token. At most one of
	// Incarnation and Owner is set. With all three zero the result came over the wire
	// and is fenced by the state alone: started or dispatched, never planned.
	Incarnation, Owner string
	Token              int64
	// State is the final state.
	State State
	// HandleMsg is stored; TriggerMsg is added to the run's, as a line.
	HandleMsg, TriggerMsg string
	NoRetry               bool
}

// PlanStore is what the scan takes: it finds what is due and claims it.
type PlanStore interface {
	// SetShards fixes the number of shards, once: a later call with the same
	// number writes nothing, with another it is ErrShards and names both. Every
	// method that writes may be called only after it.
	SetShards(ctx context.Context, n int) error
	// Scan returns, of the shards in q: enabled jobs with Next at or before
	// q.Before, the earliest first, at most q.Jobs; and planned runs due at or
	// before q.Before that have no PlanEpoch, the earliest first, at most q.Runs.
	// Runs that were planned or returned under a former epoch of their shard may be
	// among them, and a run so returned may or may not be returned again, also
	// where the answer was an error: Planned returns it in any case.
	// It takes no locks and may see a state that is already past: it only says
	// what to try.
	Scan(ctx context.Context, q ScanQuery) (ScanResult, error)
	// Planned returns all planned runs of the shards, whatever their epoch, due at
	// or before q.Before, in order of (Scheduled, ID), after the keyset, at most
	// q.Limit.
	Planned(ctx context.Context, q PlannedQuery) ([]Run, error)
	// Claim advances jobs and inserts runs: for each plan whose job is enabled
	// and has its Version, and whose Next equals Due, in a shard that has its
	// Epoch, the job's Next and WaitRun are set as the plan says, its Last to the
	// latest instant of the plan's runs, and the runs are inserted with that
	// PlanEpoch. A zero Due matches no job. Other plans change nothing. It
	// returns the inserted runs in the order of the plans. The rule of Finish for
	// jobs without a next instant holds here too. A plan with a Stop stops the job
	// with that reason, raises its version, and cancels nothing.
	Claim(ctx context.Context, plans []Plan) ([]Run, error)
	// Sweep re-arms jobs of the shards that wait for a run which has ended or is
	// gone, as Finish does (from the time of the call where the end is not
	// known), and stops those that Finish would call finished.
	Sweep(ctx context.Context, shards []Shard) error
}

// ScanQuery asks for what is due in shards, each given with the epoch under
// which the caller owns it.
type ScanQuery struct {
	Shards     []Shard
	Before     time.Time
	Jobs, Runs int
}

// ScanResult is what a Scan found.
type ScanResult struct {
	Jobs []DueJob
	Runs []Run
	// Next is the earliest time, later than q.Before, at which an enabled job or
	// a planned run without PlanEpoch of the shards becomes due; zero when there is none. Where the
	// batch was full it is q.Before at the latest.
	Next time.Time
}

// DueJob is a job that is due.
type DueJob struct {
	Job
	// Waiting is the number of its planned runs: at least those that have been due
	// for a few seconds, at most all.
	Waiting int
}

// PlannedQuery asks for planned runs.
type PlannedQuery struct {
	Shards []Shard
	// App, when not empty, chooses runs of this app only.
	App    string
	Before time.Time
	// After and AfterID are the keyset: the Scheduled and ID of the last run of
	// the page before; zero for the first page.
	After   time.Time
	AfterID int64
	Limit   int
}

// Plan is the claim of one job.
type Plan struct {
	JobID int64
	Shard int
	Epoch int64
	// Version and Due are compared with the job's Version and Next.
	Version int64
	Due     time.Time
	// Next is the first instant not planned by this claim; zero for none.
	Next time.Time
	// Wait makes the job wait for the plan's only run (FixedDelay).
	Wait bool
	// Stop, when not empty, stops the job for this reason.
	Stop string
	Runs []NewRun
}

// NewRun is a run that a claim inserts: planned, or skipped (a record).
type NewRun struct {
	At    time.Time
	Type  TriggerType
	State State
	// First, Last, Count and Reason are as in Run.
	First, Last time.Time
	Count       int
	Reason      string
}

// StartStore is what the start, the hand-over between nodes and the lanes take.
type StartStore interface {
	// Start marks planned runs started, or refused, each by a compare-and-set
	// (see Start), in one transaction a shard, and returns one Started for each
	// Start, in the same order.
	Start(ctx context.Context, starts []Start) ([]Started, error)
	// Readdress moves a started run to another address, when its owner and token
	// are as given, the shard's epoch is the caller's, and it is untaken or is
	// addressed to its owner's own incarnation (which was handed it and refused).
	// It reports whether it did. The run is untaken then, unless the new address
	// is the owner's own; the node of an attached address has to be there, as for
	// Start.
	Readdress(ctx context.Context, r Readdress) (bool, error)
	// Dispatched marks started runs as accepted by remote executors, each when its
	// owner and token are as given, and adds Msg to its TriggerMsg. It returns the
	// runs that it changed, as they then are, in the order given; one that has ended
	// meanwhile stays as it is. Runs whose rows others have locked are left out, and make
	// the error ErrLocked, beside which the changed runs are returned.
	Dispatched(ctx context.Context, accepted []Dispatch) ([]Run, error)
	// StartedBy returns, in order of ID, started runs of the shards whose owner or
	// addressee is one of the incarnations, with IDs greater than after, at most
	// limit.
	StartedBy(ctx context.Context, shards []Shard, incarnations []string, after int64, limit int) ([]Run, error)
	// Settle decides about started runs whose owner or addressee is gone, or that
	// their owner gives back, each by a compare-and-set (see Verdict). It returns
	// the runs that it changed, as they then are. Whether a Scan finds a run that
	// was given back is left open: the caller goes by the answer.
	Settle(ctx context.Context, verdicts []Verdict) ([]Run, error)
	// Inbox returns what waits for the incarnation, in order of ID: runs handed
	// over to it by other nodes that are started and not taken, with IDs greater
	// than after, at most limit; all
	// runs that it has taken, that are unended and have a KillReason; and, whatever
	// after is, questions put to it that are not answered, at most limit.
	Inbox(ctx context.Context, incarnation string, after int64, limit int) (Inbox, error)
	// Take marks runs as taken by the incarnation they are addressed to. Its commit
	// comes before the call of the handler. A run with a KillReason is ended as
	// killed instead. It returns the runs that it changed, in order of ID.
	Take(ctx context.Context, incarnation string, ids []int64) ([]Run, error)
}

// Start is the start of one planned run. It takes effect when the run is
// planned, its shard has Epoch, its job exists and has JobVersion, and, for a
// schedule-born run, is enabled; and the nodes of its attached addresses, other
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
	// Handler, Block, Param and Retries are stored as they were used, Msg is added
	// to the TriggerMsg. HandleMsg is stored where it is not empty: why a run is
	// refused.
	Handler, Block, Param string
	Retries               int
	Msg, HandleMsg        string
}

// StartStatus is what became of a Start. Where several would do, it is the first
// of StartFenced, StartGone, StartStale, StartNoNode and StartBusy.
type StartStatus uint8

const (
	// StartOK: the run is started (or refused, as asked).
	StartOK StartStatus = iota
	// StartGone: the run is not planned any more, or does not exist.
	StartGone
	// StartStale: the job has another version, or is stopped; read it again.
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

// Started is the answer to a Start.
type Started struct {
	Status StartStatus
	// Run is the run as it now is; set for StartOK, and for StartGone where it
	// exists.
	Run Run
	// Siblings are the inserted parts of a broadcast, in order of their index.
	Siblings []Run
}

// Dispatch says that a remote executor has accepted a run.
type Dispatch struct {
	RunID int64
	Owner string
	Token int64
	Msg   string
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

// Verdict decides about one started run. It takes effect when the run is
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
	// killed instead, and one whose job is gone or, for a schedule-born run,
	// stopped, as cancelled), StateLost to end it as interrupted, or StateStarted
	// to adopt it under NewOwner and NewToken.
	To       State
	NewOwner string
	NewToken int64
	Msg      string
}

// Inbox is what waits for a node.
type Inbox struct {
	Runs  []Run
	Kills []Run
	Asks  []Ask
}

// LogStore carries questions for lines of runs' logs to the nodes that have them,
// and the answers back. A question is dropped a minute after it was asked, answered
// or not: it is in no Inbox from then on, and unknown to the methods here.
type LogStore interface {
	// AskLog puts a question to an incarnation, which finds it in its Inbox, and
	// returns it with a new ID. Whether the incarnation is there is not looked at.
	// ErrNotFound when there is no such run.
	AskLog(ctx context.Context, ask Ask) (Ask, error)
	// AnswerLog answers a question, by a compare-and-set: of several answers the
	// first stays. A question that is not there is no error.
	AnswerLog(ctx context.Context, id int64, answer Answer) error
	// LogAnswer returns the answer to a question; answered is false while there is
	// none. ErrNotFound when there is no such question.
	LogAnswer(ctx context.Context, id int64) (answer Answer, answered bool, err error)
}

// Ask is a question for lines of a run's log.
type Ask struct {
	// ID is given by the store: positive, and greater than those of earlier
	// questions.
	ID int64
	// Incarnation is the node that is asked.
	Incarnation string
	// Run is the run as it now is. AskLog goes by its ID only, and a question whose
	// run is gone is in no Inbox.
	Run Run
	// FromLine is the first line wanted, from 1, 32 bits wide.
	FromLine int
}

// Answer is what a node says to an Ask: lines, or why it has none.
type Answer struct {
	// ToLine is the number of the last line, 32 bits wide; IsEnd says that none
	// will follow.
	ToLine int
	IsEnd  bool
	// Content holds the lines, as UTF-8 without NUL. The node that answers keeps
	// it to 1 MiB.
	Content string
	// Refusal, when not empty, says why there are no lines.
	Refusal string
}

// NodeStore keeps nodes and the leases of shards.
type NodeStore interface {
	// Now returns the store's clock, as View.Now does, for those who have not
	// joined.
	Now(ctx context.Context) (time.Time, error)
	// Join adds a node under a new incarnation, with Beats 1.
	Join(ctx context.Context, n Node) (View, error)
	// Beat raises the node's counter, stores its attached executors, where nil says
	// that the node is Resting and an empty list that it has none, clears Left,
	// and returns the cluster as the node should see it. A node that is not there
	// any more is added again, but supersedes nobody by that: its Joined is the
	// former one, or zero.
	Beat(ctx context.Context, incarnation string, attached []Attachment) (View, error)
	// SetFailing stores with the node whether it is Failing. A Beat leaves that as it is;
	// a node that joins, or is added again by a Beat, is not. A node that is not there is
	// no error.
	SetFailing(ctx context.Context, incarnation string, failing bool) error
	// Leave marks the node as left and releases its shards. A node that is not
	// there is no error.
	Leave(ctx context.Context, incarnation string) error
	// Bury marks the node as left, if its counter is still beats, and deletes it
	// if in addition no unended run has it as owner or addressee. A node that is
	// not there is no error.
	Bury(ctx context.Context, incarnation string, beats int64) error
	// TakeShards makes the incarnation the owner of those of the shards whose
	// Owner and Epoch are as given, raises their epochs, and returns them as they
	// then are. A statement of the former owner under the old epoch either
	// committed before, and is seen by the new owner, or changes nothing.
	TakeShards(ctx context.Context, incarnation string, shards []Shard) ([]Shard, error)
	// ReleaseShards gives up those of the shards that the incarnation owns under
	// the given epoch.
	ReleaseShards(ctx context.Context, incarnation string, shards []Shard) error
}

// View is the cluster at one moment.
type View struct {
	// Now is the store's clock when the call was answered; zero when the store
	// goes by the clock of this process.
	Now time.Time
	// Server names the server process that answered, in words of the store's own; empty
	// where there is none but this process. Another one than before may have forgotten
	// what was acknowledged, as a standby has that was behind when it was promoted.
	Server string
	// Alone reports that no other node is open on the store and that the store
	// will signal Nodes when one joins: until then the node may leave out its
	// beats, and its lease does not run out.
	Alone bool
	// Nodes are those that are not deleted, in order of Incarnation.
	Nodes []Node
	// Shards are all shards in order of ID, once SetShards was called.
	Shards []Shard
}

// RegistryStore keeps the addresses that executors registered.
type RegistryStore interface {
	// PutAddresses registers addresses, or refreshes them; what is known of one is
	// what was said last. Of two entries for one app and address the last counts.
	// Rows that others have locked are left out, and make the error ErrLocked.
	PutAddresses(ctx context.Context, regs []Registration) error
	// DropAddresses removes registrations: each whose BootID is as given, or whatever
	// it is where none is given. An absent one is no error. Locked rows are as above.
	DropAddresses(ctx context.Context, regs []Registration) error
	// Addresses returns the app's registrations refreshed within maxAge of the
	// store's clock, in order of Address, as strings.
	Addresses(ctx context.Context, app string, maxAge time.Duration) ([]Registration, error)
	// Registrations lists the registrations of all apps, also of those that have no
	// group, however old, in order of App and Address.
	Registrations(ctx context.Context, f RegistrationFilter) ([]Registration, error)
	// ForgetAddresses removes registrations that were not refreshed within maxAge of
	// the store's clock.
	ForgetAddresses(ctx context.Context, maxAge time.Duration) error
}

// Registration is one address of an executor app, as its executor has registered it.
type Registration struct {
	App string
	// Address is the executor's base address, as it came.
	Address string
	// BootID is another one for each process of an executor of this module; empty for
	// executors of other makers.
	BootID string
	// Capabilities are what the executor can do beyond XXL-JOB's protocol, such as
	// wire.CapRepeat.
	Capabilities []string
	// Updated is when it was last refreshed. The store sets it.
	Updated time.Time
}

// RegistrationFilter chooses registrations. Zero fields choose all.
type RegistrationFilter struct {
	App string
	// After and AfterAddress are the keyset: registrations behind this App and Address
	// only.
	After, AfterAddress string
	// Limit is the page size; zero means 100.
	Limit int
}

// Waker tells a node when something happened that it need not find by polling.
type Waker interface {
	// Watch returns signals for the incarnation until ctx ends. A signal is a
	// hint: it may come late, for nothing, or stand for many events; a store that
	// cannot hint returns nil channels.
	Watch(ctx context.Context, incarnation string) Signals
	// Poll is how often a scheduler looks by itself, because signals may be lost:
	// for what is due and for runs that ended, and into its inbox. Both are zero
	// when signals never are lost.
	Poll() (scan, inbox time.Duration)
}

// Signals are hints, each channel with a buffer of one.
type Signals struct {
	// Scan: a job or planned run that may be due earlier than known was written
	// in a shard of the incarnation, other than by a Claim.
	Scan <-chan struct{}
	// Inbox: a run, a kill or a question was addressed to the incarnation.
	Inbox <-chan struct{}
	// Nodes: a node joined or left, its executors changed, it has come to fail or does
	// so no more, or shards were released.
	Nodes <-chan struct{}
	// Ended: runs ended, or a question was answered.
	Ended <-chan struct{}
}

type actorKey struct{}

// WithActor returns a context whose changes of jobs are audited under the name. It panics
// where ctx is nil, as context.WithValue does: there is no error to return.
func WithActor(ctx context.Context, name string) context.Context {
	if ctx == nil {
		panic(errNoContext)
	}
	return context.WithValue(ctx, actorKey{}, name)
}

// Actor returns the name that WithActor put into ctx, or "", for a nil ctx too.
func Actor(ctx context.Context) string {
	if ctx == nil {
		return ""
	}
	name, _ := ctx.Value(actorKey{}).(string)
	return name
}
