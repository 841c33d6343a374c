package store

// What a store keeps of runs: those that are read, planned, and how they end.

import (
	"context"
	"time"
)

// RunStore is the part of a Store that adds runs outside the schedule, ends runs and answers
// questions. Programs call Run and Runs; the rest is for authors of stores.
type RunStore interface {
	// AddRun inserts a planned run of the job, without an epoch, and returns it. The
	// trigger's JSON is nil, and its Param has what was in it (Trigger.Encode).
	// What the run stands for is as Trigger.Stand says, by the store's clock: a run for a time
	// that is past is due now, and stands for that time.
	// With a Key that was used for this job before, it inserts nothing and
	// returns the run inserted then. ErrNotFound when the job is absent.
	AddRun(ctx context.Context, jobID int64, t Trigger) (Run, error)
	// AddAhead is AddRun for a run that is due so far ahead (Ahead) that the store
	// keeps it apart: no Scan or Planned returns it, nothing counts it as waiting, and no
	// Start starts it, until MoveAhead has made it an ordinary planned run at or after the
	// time to move, under the ID that AddAhead has returned. To all others it is a planned
	// run from the start: Run, RunsByID and Runs return it, Kill and RemoveJob cancel it,
	// edits and stops of its job leave it alone, and its Key counts as that of any run,
	// whether it waits, has moved or was cancelled. Where a store keeps runs by the age of
	// their IDs, this one has an ID of the day on which it is to move, and so it is among
	// the newest of Runs; while it waits it does not age, and one that was cancelled is
	// kept for as long as other runs are, from its end on.
	AddAhead(ctx context.Context, jobID int64, t Trigger, move time.Time) (Run, error)
	// Finish stores results, each by a compare-and-set (see Result), and returns
	// the runs that accepted theirs, as they then are, in the order given, appended to dst
	// (see Store). Of two results for one run the first is accepted. A result that comes for a run
	// which has ended as lost, or as refused at an address elsewhere, is noted once, in its
	// TriggerMsg and LateNoted, unless it has an Owner or says StateLost itself, and is not accepted. Runs whose rows others have locked are left out, and make the
	// error ErrLocked, beside which the runs that accepted theirs are returned.
	//
	// In the same transaction, when the ended run is one its job waits for
	// (WaitRun), the job's Next becomes the run's end plus the schedule's delay, or
	// none where that is after NotAfter or Runs has come to a MaxRuns other than 0;
	// and when the job is enabled, has a schedule but no Next, waits for nothing
	// and has no unended schedule-born run left, the job is stopped with
	// StopFinished, without raising its version. Behind that stands ByMaxRuns
	// where Runs has come to MaxRuns, else ByNotAfter where the schedule has an
	// instant after NotAfter. Both hold for every way in which a run ends: Claim
	// (skipped), Start (refused), Kill, Settle and Take too. The run whose end has stopped
	// its job has StoppedJob in what these return, but for Claim.
	//
	// What follows the end of a run (Run.Follow) is inserted in the same transaction, without
	// an epoch, as AddRun does it: with what the job is then, and the time at which the first
	// run of the trigger was inserted or, where AddAhead has inserted it, was to move, give or
	// take an hour for that. The runs of the batch and the first runs of their triggers are
	// locked together, in order of ID, before anything else is; but planned ones, which edits
	// lock behind their job, behind it too. A job that waits for the ended run (WaitRun) waits for the one that follows it instead; and as one that is Born counts among
	// the unended schedule-born runs, its job is not finished. A note of Run.Follow is added to
	// the TriggerMsg of the ended run, as a line, and its Retries become what Run.RetriesLeft says. A result that is StateSnoozed is stored as
	// StateFailed, with NoRetry and TooManySnoozes, where Run.SnoozedTooOften says so. All
	// this holds for Start (refused) and Settle (lost) too. A store that bounds how many ended
	// runs it keeps has the first run of a trigger for as long as another one of it has not
	// ended; one that drops runs by their age goes by the age of each.
	Finish(ctx context.Context, dst []Run, results []Result) ([]Run, error)
	// SetProgress stores how far runs are, each by a compare-and-set (see Progress).
	// Of several for one run the last stays. Runs that do not match, that do not exist or
	// whose rows others have locked are left out, and nothing says which.
	SetProgress(ctx context.Context, list []Progress) error
	// Kill asks for the end of a run. A planned one is cancelled, with reason
	// as its Reason; a started or dispatched one gets KillReason, which the node
	// it is addressed to finds in its Inbox, and of several reasons the first
	// stays. Of an ended one the latest run of the same trigger and the same part (Sharding)
	// is killed instead, if that has not ended, so that nothing follows it; otherwise nothing
	// changes. An empty reason is "killed". It returns
	// the run as it then is, or ErrNotFound. The job's Runs stays, but where the job is
	// stopped: then a cancelled run is taken out of it, as by an edit (see Edit.Next).
	Kill(ctx context.Context, runID int64, reason string) (Run, error)
	// Run returns one run, or ErrNotFound. It, RunsByID and Runs fill in JobName, JobKey and
	// Secret: those that the job has now, or nothing for a job that is removed. What other
	// methods return has none of them.
	Run(ctx context.Context, id int64) (Run, error)
	// RunsByID returns those of the runs that exist, in order of ID.
	RunsByID(ctx context.Context, ids []int64) ([]Run, error)
	// Tree returns what belongs to the trigger of a run: its first run, the parts of a
	// broadcast, and all attempts, in order of ID, at most MostTree of them; names are
	// filled in as by Run. ErrNotFound when there is no such run.
	Tree(ctx context.Context, runID int64) ([]Run, error)
	// Runs lists runs, newest (greatest ID) first. Those that are kept apart (AddAhead) are
	// among them wherever the filter chooses them; RunFilter.To leaves them out by their time.
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
	// EndedSince, when set, leaves out runs that ended before it, and those that have not ended. No
	// more runs are looked at for that than Limit: the newest that all other fields choose. So it
	// costs little to ask whether something has ended lately, and next to nothing where nothing has.
	// A store that does not know the field leaves out none.
	EndedSince time.Time
	// Before is the keyset: runs with a smaller ID only.
	Before int64
	// Limit is the page size; zero means 100.
	Limit int
}

// Result, for authors of stores, is how a run ended.
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
	// After is what Run.Follow is given: how long after the end of the run its handler wants
	// the next attempt; zero where it has said nothing.
	After time.Duration
	// Progress and ProgressText are how far the run was. Where both are zero the run keeps
	// what it has.
	Progress     int
	ProgressText string
	// Known, where it is not nil, is the run as the caller has it since the start that the
	// result is fenced by, with Incarnation or Owner; the store does not change it, nor keep it.
	// A store may answer with it, as the result has changed it, and need not read again what
	// nothing changes of a started run: see Result.Ended.
	Known *Run
}

// Ended, for authors of stores, returns a run as a result that was accepted has left it: what is
// known of it, and what the store has read. That is the State, Ended, NoRetry, TriggerMsg,
// HandleMsg, KillReason, Progress and ProgressText. It is pure.
func (r *Result) Ended(read *Run) Run {
	out := *r.Known
	out.State, out.Ended, out.NoRetry = read.State, read.Ended, read.NoRetry
	out.TriggerMsg, out.HandleMsg, out.KillReason = read.TriggerMsg, read.HandleMsg, read.KillReason
	out.Progress, out.ProgressText = read.Progress, read.ProgressText
	return out
}

// Progress is how far a run is, as its handler has said. It takes effect while the run is
// started or dispatched and has Token: it is about that start, and a later one is none of its
// business. With an Incarnation it comes from an attached executor: the run must be started
// then, and be addressed to that incarnation.
type Progress struct {
	RunID       int64
	Incarnation string
	Token       int64
	// Percent is from 0 to 100. Text is UTF-8 without NUL, and may be empty.
	Percent int
	Text    string
}

// MostTree is how many runs Store.Tree returns at most.
const MostTree = 10_000
