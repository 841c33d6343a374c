package finding

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Cause says what kind of finding it is. Those of [store.TroubleCause] are causes as well.
type Cause string

// The causes that [Attention] names, the gravest first: this is the order of what it returns.
const (
	// ShardUnowned: shards that no live node has, so that nothing of their jobs is planned.
	ShardUnowned Cause = "shard-unowned"
	// NodeSilent: a node whose connection to the store has ended, and that has not left.
	NodeSilent Cause = "node-silent"
	// NodeFailing: a node that says of itself that its claims or starts fail.
	NodeFailing Cause = "node-failing"
	// NoExecutor: an app with enabled jobs or due runs that nobody serves.
	NoExecutor Cause = "no-executor"
	// NoHandler: a handler that none of the app's executors has.
	NoHandler Cause = "no-handler"
	// Failing: the last triggers of jobs have all failed.
	Failing Cause = "failing"
	// Stopped: a job that has stopped by itself since its schedule cannot be worked out.
	Stopped Cause = "stopped"
	// TimingOut: the last triggers of jobs have all lasted longer than Job.Timeout.
	TimingOut Cause = "timing-out"
	// Losing: the last triggers of jobs were all lost with the process that ran them.
	Losing Cause = "losing"
	// Refused: the last triggers of jobs found no address that would have them.
	Refused Cause = "refused-runs"
	// FallingBehind: a job whose runs take longer than the time between its instants, so that
	// more and more of them wait.
	FallingBehind Cause = "falling-behind"
	// Overdue: due runs that have waited for longer than [World.Patience].
	Overdue Cause = "overdue"
	// NeverFires: an enabled job with a schedule, and no instant to come.
	NeverFires Cause = "never-fires"
	// AlarmsUndelivered: alarms of runs that no channel could deliver.
	AlarmsUndelivered Cause = "alarms-undelivered"
	// Flapping: a job that fails now and then, and more than twice as often as before.
	Flapping Cause = "flapping"
)

// The causes that [WhyJob] and [WhyRun] name besides, in their order.
const (
	// Removed: there is no such job any more.
	Removed Cause = "removed"
	// Halted: somebody has stopped the job, or its schedule has come to its end.
	Halted Cause = "halted"
	// NoSchedule: a job that is run by hand, by other jobs or by programs alone.
	NoSchedule Cause = "no-schedule"
	// NextIs is no fault: when the job is due next.
	NextIs Cause = "next-is"
	// WaitsForRun: a FixedDelay whose run is under way, or a run behind another of its job.
	WaitsForRun Cause = "waits-for-run"
	// NotDue is no fault: a run whose time has not come.
	NotDue Cause = "not-due"
	// Missed: instants that were not run, and why.
	Missed Cause = "missed"
	// Ended is no fault: how a run has ended.
	Ended Cause = "ended"
	// Runs is no fault: a run that is under way, and where.
	Runs Cause = "runs"
	// Unsaid: nothing of what was looked at explains it. Finding.Detail says what that was.
	Unsaid Cause = "unsaid"
)

// Finding is a cause, with what shows it. A Finding is a plain value; lists in it are not shared.
type Finding struct {
	Cause Cause
	// App is the app that it is about; empty where it is about the cluster, or about several.
	App string
	// Apps are the apps that it is about where [Together] has put several into one; none otherwise.
	Apps []string
	// Jobs are the jobs that it is about, in order of ID, and Name is the name of the first. None
	// where it is about a whole app or the cluster.
	Jobs []int64
	Name string
	// Since is when it began, by the store's clock, as far as that can be told; zero where not.
	Since time.Time
	// Runs are runs that show it, newest first, at most [MostRuns].
	Runs []int64
	// Bad and Of are how many of how many triggers that were looked at have ended badly; of jobs
	// and triggers it is the sum.
	Bad, Of int
	// Waiting is how many due runs wait because of it, and Late how long the oldest has.
	Waiting int
	Late    time.Duration
	// Error is the first line of the error itself, in the words of what said it.
	Error string
	// Secret says that Error is of a job that is Secret: it is for nobody to see. The finding is of that
	// job alone, so that whose error is the same cannot be told, and Key does not go by it.
	Secret bool
	// Detail is what else is seen, in words: who has something, what a node is called.
	Detail string
	// Shards are those of [ShardUnowned].
	Shards []int
	// Enabled is how many enabled jobs the app of [NoExecutor] has, or its apps have.
	Enabled int
	// Took is how long runs of the job of [FallingBehind] take, and Every how often one is due.
	Took, Every time.Duration
	// At is the moment that it is about: the next instant of NextIs and NotDue.
	At time.Time
	// Trouble is what a scheduler says of itself, where the finding is one of these.
	Trouble *store.Trouble
}

// MostRuns is how many runs a [Finding] names at most.
const MostRuns = 20

// Fault reports whether something is wrong: false of what only says how things are.
func (f Finding) Fault() bool {
	switch f.Cause {
	case Halted, NoSchedule, NextIs, NotDue, Ended, Runs, WaitsForRun:
		return false
	}
	return true
}

// Key names the finding, the same as long as it is the same cause: by it somebody says that he knows
// of it. Of jobs that fail it has a hash of the error without what differs from run to run, by which
// who guesses the error knows it; of a job that is Secret it has the job instead. Of several apps it is
// another one whenever it is about others. It has at most 255 bytes.
func (f Finding) Key() string {
	parts := []string{string(f.Cause), f.App}
	switch {
	case len(f.Apps) > 0:
		parts = append(parts, hashOf(strings.Join(f.Apps, "\x00")))
	case f.Cause == NodeSilent || f.Cause == NodeFailing:
		parts = append(parts, f.Detail)
	case f.Trouble != nil:
		parts = append(parts, strconv.FormatInt(f.Trouble.JobID, 10), f.Trouble.Address)
	case len(f.Jobs) > 0 && f.Error != "" && !f.Secret:
		parts = append(parts, hashOf(Signature(f.Error)))
	case len(f.Jobs) > 0:
		parts = append(parts, strconv.FormatInt(f.Jobs[0], 10))
	}
	key := strings.Join(parts, "/")
	if len(key) > 255 {
		key = store.Cut(key, 200) + "…" + hashOf(key)
	}
	return key
}

// hashOf is a short name of a text.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// about is what the finding is about, in words.
func (f Finding) about() string {
	switch {
	case len(f.Jobs) == 1:
		return fmt.Sprintf("job %d %q of app %s", f.Jobs[0], f.Name, f.App)
	case len(f.Jobs) > 1:
		return fmt.Sprintf("%d jobs of app %s, %q among them", len(f.Jobs), f.App, f.Name)
	case f.App != "":
		return "app " + f.App
	case len(f.Apps) > 0:
		return "apps " + named(f.Apps, appsNamed)
	}
	return "the cluster"
}

// String is the finding in a sentence, in English, without a stop. An error that is Secret is not said.
func (f Finding) String() string {
	var s strings.Builder
	if f.Trouble != nil {
		return f.Trouble.String()
	}
	s.WriteString(f.about() + ": ")
	s.WriteString(f.says())
	if f.Bad > 0 {
		fmt.Fprintf(&s, ", %d of the last %d", f.Bad, f.Of)
	}
	if f.Waiting > 0 {
		fmt.Fprintf(&s, ", %d due runs wait, the oldest for %v", f.Waiting, f.Late.Round(time.Second))
	}
	if !f.Since.IsZero() && f.Fault() {
		s.WriteString(", since " + f.Since.UTC().Format(time.RFC3339))
	}
	switch {
	case f.Error == "":
	case f.Secret:
		s.WriteString(": " + store.SecretText)
	default:
		s.WriteString(": " + f.Error)
	}
	return s.String()
}

// says is what is seen, without figures.
func (f Finding) says() string {
	text := map[Cause]string{
		ShardUnowned: "shards that no live node has", NodeSilent: "a node is silent", NodeFailing: "a node's claims or starts fail",
		NoExecutor: "no live executor", NoHandler: "no executor has the handler", Failing: "fails", Stopped: "has stopped by itself", TimingOut: "runs out of time",
		Losing: "runs are lost with their process", Refused: "no address takes the runs", FallingBehind: "runs take longer than the time between them",
		Overdue: "due runs wait", NeverFires: "enabled, and never due", AlarmsUndelivered: "alarms could not be delivered", Flapping: "fails more often than before",
		Removed: "there is no such job", Halted: "is stopped", NoSchedule: "has no schedule", NextIs: "is due", WaitsForRun: "waits for the end of a run",
		NotDue: "is not due before", Missed: "instants were not run", Ended: "has ended", Runs: "is under way", Unsaid: "nothing that was looked at explains it",
	}[f.Cause]
	if !f.At.IsZero() {
		text += " " + f.At.UTC().Format(time.RFC3339)
	}
	if f.Detail != "" {
		text += " (" + f.Detail + ")"
	}
	return text
}

// Remedy is what to do about it, in English: whoever does so does not find it again, once what has to
// run has run. It is empty for what is no fault.
func (f Finding) Remedy() string {
	if f.Trouble != nil {
		return f.Trouble.Remedy
	}
	return map[Cause]string{
		ShardUnowned:      "Start a scheduler on this store.",
		NodeSilent:        "Look whether the process lives and reaches the store; another node takes its shards over.",
		NodeFailing:       "Look into the log of that node: it says which statement fails.",
		NoExecutor:        "Start an executor of the app, or stop its jobs.",
		NoHandler:         "Deploy an executor that has the handler, or correct the job's Handler.",
		Failing:           "Look into the log of the newest run; mend the handler or what it calls, then run the job again.",
		Stopped:           "Correct the job's schedule, then start the job.",
		TimingOut:         "Give the job a longer Timeout, or make its handler faster, then run it again.",
		Losing:            "Look why the executor's process ends: out of memory, a deploy without time to finish; then run the job again.",
		Refused:           "Look what the executor answers; make it reachable under the address that it registers, then run the job again.",
		FallingBehind:     "Let the job be due less often, make its handler faster, or choose another block strategy.",
		Overdue:           "Look what the runs wait for, on the page of the oldest.",
		NeverFires:        "Give the job a schedule that is due again, or stop it.",
		AlarmsUndelivered: "Look into the log of the node that tells the app's alarms: the receiver refuses them or is away.",
		Flapping:          "Compare a failed run with the last good one: parameter, executor, duration.",
		Removed:           "Add the job again, or take out what names it.",
		Missed:            "Give the job a Misfire or CatchUp that makes missed instants up, or run it by hand.",
		Unsaid:            "Look into the log of the node that owns the job's shard.",
	}[f.Cause]
}
