package xxljob

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/route"
)

// glueTypes are XXL-JOB's stored glue_type values.
var glueTypes = []string{GlueBean, "GLUE_GROOVY", "GLUE_SHELL", "GLUE_PYTHON", "GLUE_PYTHON2", "GLUE_NODEJS", "GLUE_POWERSHELL", "GLUE_PHP"}

// Job is a definition of work and of when it is due: one row of XXL-JOB's
// xxl_job_info. A Job is a plain value: every call copies it in and out, so the
// caller may keep and change what it passed or received.
//
// ID, StopReason, Version, Ensured, GlueUpdated, Shard, Next, Last, WaitRun, Runs, Added and
// Updated are the store's: they have to be empty when a job is added, and are not changed by
// an update, where Version may say which definition it replaces.
type Job struct {
	// ID is given by the store: positive and below 2^31, as the wire protocol
	// needs it.
	ID int64
	// App is the executor app that runs the job. Empty means Config.App.
	// At most 64 bytes.
	App string
	// Key identifies the job within its app, and is unique there. Empty means
	// Name for jobs added through the Scheduler; a job that came over the wire
	// or by import may have none. At most 255 bytes.
	Key string
	// Name is the title people read (XXL-JOB: job_desc). Without a Key it is the identity
	// as well: to EnsureJob, a changed name is then another job, beside the one with the
	// former name. Required, at most 255 bytes.
	Name string
	// Author is the owner's name, for people only. At most 64 bytes.
	Author string
	// AlarmEmail is a comma list of addresses. At most 255 bytes. It is stored;
	// alarms are not sent yet.
	AlarmEmail string

	// Schedule says when the job is due. The zero value is Manual().
	Schedule Schedule
	// Misfire defaults to MisfireDoNothing.
	Misfire Misfire
	// CatchUp overrides Config.CatchUp for this job. Empty keeps it.
	CatchUp CatchUp
	// NotBefore and NotAfter bound the schedule. Both are inclusive, and kept in UTC to the
	// millisecond; the zero time is no bound. Instants outside of them do not exist for the
	// job: they are neither run nor recorded as missed. A FixedRate begins with the first of
	// its instants from NotBefore on, a FixedDelay at NotBefore or after its first delay,
	// whichever is later. What NotAfter finds under way, or late, it leaves alone.
	NotBefore time.Time `json:",omitzero"`
	NotAfter  time.Time `json:",omitzero"`
	// MaxRuns is how many runs the schedule makes in all, at most 2^31-1; zero is no bound.
	// See Runs for what counts.
	MaxRuns int `json:",omitzero"`

	// Route names the routing strategy: RouteRound and the like, or a key of
	// Config.Routers. Empty means RouteNearest.
	Route string
	// Handler is the name under which executors know the code. Required when
	// GlueType is BEAN. At most 255 bytes.
	Handler string
	// Param is handed to the handler as it is. At most 64 KiB.
	Param string
	// Block names the block strategy: BlockSerial and the like. Empty means
	// BlockSerial.
	Block string
	// MaxPerExecutor is how many runs of a BlockConcurrent job one executor runs side by
	// side, 1 to 10,000; zero means as many as it has places. It has to be zero with any
	// other block strategy.
	MaxPerExecutor int `json:",omitempty"`
	// Timeout ends a run that lasts longer. Whole seconds; zero means none.
	Timeout time.Duration
	// Retries is how often a failed run is tried again (XXL-JOB:
	// executor_fail_retry_count), 0 to 30,000: one that has failed, was timed out, refused or
	// lost, but not one that was killed, covered or discarded, nor an error that is marked
	// with Permanent. Each attempt is a run of its own, of type RETRY. docs/failures.md has
	// the table.
	Retries int
	// RetryBackoff is the pause before each of them. Together the pauses have to be shorter
	// than Config.RunRetention less a day.
	RetryBackoff Backoff `json:",omitzero"`
	// RetryAside lets later runs of a BlockSerial job pass one that waits to be tried again, or
	// was snoozed.
	// Otherwise they wait for it: the job goes through its instants in their order.
	RetryAside bool `json:",omitzero"`
	// OnLost says what follows a lost run. Empty means OnLostFail.
	OnLost OnLost `json:",omitzero"`
	// MaxReruns is how often OnLostRerun runs one trigger again, at most 1,000; zero means 3.
	MaxReruns int `json:",omitzero"`
	// MaxSnoozes is how often one trigger may be snoozed (see Snooze), at most 30,000; zero
	// means 100. A run that is snoozed once more has failed for good.
	MaxSnoozes int `json:",omitzero"`
	// Children are the ids of the jobs that a success triggers (XXL-JOB:
	// child_jobid). They are stored; children are not triggered yet.
	Children []int64

	// GlueType is BEAN, the default, or one of XXL-JOB's script types.
	GlueType string
	// GlueSource is the script's text. At most 16 MiB.
	GlueSource string
	// GlueRemark is a note on this version of the script. At most 128 bytes.
	GlueRemark string
	// GlueUpdated is when GlueSource last changed. The store sets it.
	GlueUpdated time.Time

	// Stopped is true for a job whose schedule is stopped (XXL-JOB: trigger_status 0).
	// Triggers run it all the same. A job without a schedule is not stopped for that, but
	// may be: it is then stopped when it is given one.
	Stopped bool
	// StopReason says why it is stopped: empty after StopJob, "finished" if the schedule
	// has no further instant, "finished: NotAfter" if those that it has come after NotAfter,
	// "finished: MaxRuns" if all of its runs were made, "pruned" if no list of EnsureJobs
	// names the job any more, or the error of a schedule that cannot be evaluated.
	StopReason string

	// Version is raised by each edit, start and stop. In UpdateJob, a version
	// other than zero makes the call a compare-and-set.
	Version int64
	// Ensured is the digest of the definition that EnsureJob wrote last. It is empty for
	// other jobs, and for the library's own use.
	Ensured string

	// Shard is the shard the job lives in. The store sets it.
	Shard int
	// Next is the oldest instant that is not planned yet, in UTC milliseconds;
	// zero when there is none (XXL-JOB: trigger_next_time). It is the scheduler's own
	// mark: instants before it may be planned and not run yet. Scheduler.NextFire says
	// which instant is run next.
	Next time.Time
	// Last is the instant planned last (XXL-JOB: trigger_last_time).
	Last time.Time
	// WaitRun is the run whose end a FixedDelay job waits for, or zero.
	WaitRun int64
	// Runs is how many runs the schedule has made, as MaxRuns counts them: each run that it
	// has planned, whatever becomes of it. So a run that was refused counts, one that stands
	// for several instants once, and a broadcast once for all of its parts; records of
	// skipped instants, triggers and retries do not. A run that an edit or a stop takes back
	// before it has run does not count either, but one that Kill cancels does. Another
	// Schedule begins at zero; a change of MaxRuns alone does not.
	Runs int `json:",omitzero"`
	// Added and Updated are set by the store.
	Added, Updated time.Time
}

// Names of the reasons in Job.StopReason that this module itself gives.
const (
	// StopFinished marks a job whose schedule has no further instant. Where it is a bound of
	// the job that has ended it, the name of that follows: "finished: NotAfter".
	StopFinished = "finished"
	// StopPruned marks a job that is gone from all lists of EnsureJobs.
	StopPruned = "pruned"
)

// Validate reports every fault of the definition at once, each with the name
// of the field and its value, or nil. It knows the routing strategies of
// package route and refuses rates under one second; a Scheduler also accepts
// the names in Config.Routers, and with Config.Limits.AllowSubSecond such rates.
func (j Job) Validate() error {
	// Any app will do for the one that Config.App stands for.
	return j.withDefaults("app", nil).validate(route.Names(), false)
}

// withDefaults fills what an empty field stands for.
func (j Job) withDefaults(app string, zone *time.Location) Job {
	setDefault(&j.App, app)
	setDefault(&j.Key, j.Name)
	setDefault(&j.Misfire, MisfireDoNothing)
	setDefault(&j.Route, route.Nearest)
	setDefault(&j.Block, block.SerialExecution)
	setDefault(&j.GlueType, GlueBean)
	if j.OnLost == OnLostFail {
		j.OnLost = "" // as it is stored, and as lists that were ensured before have it
	}
	j.Schedule = j.Schedule.withZone(zone)
	j.NotBefore, j.NotAfter = j.NotBefore.UTC().Truncate(time.Millisecond), j.NotAfter.UTC().Truncate(time.Millisecond)
	return j
}

// validate collects the faults of a job whose defaults are filled in. The routes are the
// names that Route may have.
func (j Job) validate(routes []string, subSecond bool) error {
	f := faults{what: called(j)}
	f.text("App", j.App, 1, 64)
	f.text("Key", j.Key, 0, 255)
	f.text("Name", j.Name, 1, 255)
	f.text("Author", j.Author, 0, 64)
	f.text("AlarmEmail", j.AlarmEmail, 0, 255)
	f.text("Param", j.Param, 0, maxParam)
	f.text("GlueSource", j.GlueSource, 0, 16<<20)
	f.text("GlueRemark", j.GlueRemark, 0, 128)
	minHandler := 0
	if j.GlueType == GlueBean {
		minHandler = 1
	}
	f.text("Handler", j.Handler, minHandler, 255)
	f.add("Schedule", j.Schedule, j.Schedule.check(subSecond))
	f.oneOf("Misfire", string(j.Misfire), string(MisfireDoNothing), string(MisfireFireOnceNow))
	f.oneOf("CatchUp", string(j.CatchUp), "", string(CatchUpEvery), string(CatchUpOnce))
	j.checkBounds(&f)
	f.oneOf("GlueType", j.GlueType, glueTypes...)
	if !slices.Contains(routes, j.Route) {
		f.add("Route", j.Route, fmt.Errorf("%w: %s", ErrUnknownRoute, oneOf(j.Route, routes)))
	}
	if !block.Valid(j.Block) {
		f.add("Block", j.Block, fmt.Errorf("%w: %s", ErrUnknownBlock, oneOf(j.Block, block.Names())))
	}
	if j.MaxPerExecutor < 0 || j.MaxPerExecutor > 10_000 {
		f.add("MaxPerExecutor", j.MaxPerExecutor, errors.New("want 1 to 10000, or 0 for the executor's places"))
	} else if j.MaxPerExecutor > 0 && j.Block != block.Concurrent {
		f.add("MaxPerExecutor", j.MaxPerExecutor, fmt.Errorf("is for Block %s, and Block is %q", block.Concurrent, j.Block))
	}
	if j.Timeout < 0 || j.Timeout%time.Second != 0 || j.Timeout > maxTimeout {
		f.add("Timeout", j.Timeout, errors.New("want whole seconds, from 0 (none) to 2^31-1"))
	}
	f.checkRetries(j.Retries, j.RetryBackoff, j.OnLost, j.MaxReruns, j.MaxSnoozes)
	for _, id := range j.Children {
		if id <= 0 || id >= 1<<31 {
			f.add("Children", id, errors.New("want job ids from 1 to 2^31-1"))
		}
	}
	return f.err()
}

// checkBounds adds what is wrong with NotBefore, NotAfter and MaxRuns.
func (j *Job) checkBounds(f *faults) {
	var nothing error
	if j.Schedule.IsManual() {
		nothing = errors.New("the job has no schedule that it could bound")
	}
	for _, bound := range []struct {
		field string
		at    time.Time
	}{{"NotBefore", j.NotBefore}, {"NotAfter", j.NotAfter}} {
		switch {
		case bound.at.IsZero():
		case bound.at.UnixMilli() <= 0 || bound.at.Year() > 9999:
			f.add(bound.field, inWords(bound.at), errors.New("want a time after the beginning of 1970 and before the year 10000"))
		default:
			f.add(bound.field, inWords(bound.at), nothing)
		}
	}
	if !j.NotAfter.IsZero() && j.NotAfter.Before(j.NotBefore) {
		f.add("NotAfter", inWords(j.NotAfter), fmt.Errorf("it is before NotBefore, %s", inWords(j.NotBefore)))
	}
	switch {
	case j.MaxRuns < 0 || j.MaxRuns > mostMaxRuns:
		f.add("MaxRuns", j.MaxRuns, errors.New("want 0 (no bound) to 2^31-1"))
	case j.MaxRuns > 0:
		f.add("MaxRuns", j.MaxRuns, nothing)
	}
}

// unscheduled reports that no schedule makes runs of the job: it has none, or is stopped.
func (j *Job) unscheduled() bool { return j.Stopped || j.Schedule.IsManual() }

// validateNew collects the faults of a definition that is to be added: what the store sets
// of a job cannot be given.
func (j Job) validateNew() error {
	f := faults{what: called(j)}
	for _, field := range []struct {
		name  string
		value any
		set   bool
	}{
		{"ID", j.ID, j.ID != 0},
		{"Version", j.Version, j.Version != 0},
		{"Ensured", j.Ensured, j.Ensured != ""},
		{"StopReason", j.StopReason, j.StopReason != ""},
		{"Shard", j.Shard, j.Shard != 0},
		{"Next", j.Next, !j.Next.IsZero()},
		{"Last", j.Last, !j.Last.IsZero()},
		{"WaitRun", j.WaitRun, j.WaitRun != 0},
		{"Runs", j.Runs, j.Runs != 0},
		{"Added", j.Added, !j.Added.IsZero()},
		{"Updated", j.Updated, !j.Updated.IsZero()},
		{"GlueUpdated", j.GlueUpdated, !j.GlueUpdated.IsZero()},
	} {
		if field.set {
			f.add(field.name, field.value, errors.New("is set by the store, leave it empty"))
		}
	}
	return f.err()
}

// maxTimeout is what XXL-JOB's 32-bit seconds can hold.
const maxTimeout = (1<<31 - 1) * time.Second

// mostMaxRuns is what a 32-bit column holds.
const mostMaxRuns = 1<<31 - 1

// clone copies the parts of j that are shared by reference.
func (j Job) clone() Job {
	j.Children = append([]int64(nil), j.Children...)
	return j
}

// called is what an error calls a job.
func called(j Job) string {
	name := j.Name
	if strings.TrimSpace(name) == "" {
		name = j.Key
	}
	if strings.TrimSpace(name) == "" {
		return "job"
	}
	return fmt.Sprintf("job %q", shorten(name, 40))
}

// named is an error that names the job, once.
func named(j Job, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), "xxljob: "+called(j)+": ") {
		return err
	}
	return about(called(j), err)
}
