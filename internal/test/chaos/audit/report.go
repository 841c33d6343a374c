package audit

import (
	"fmt"
	"slices"
)

// Report is the verdict over a stretch of time.
type Report struct {
	// Runs is how many handler starts there were for instants and triggers of the
	// stretch.
	Runs int

	Lost, Double, Early, Unfinished int
	// Interrupted are runs that began, or were about to, and whose process died;
	// Unexplained of them have no fault that explains it.
	Interrupted, Unexplained int
	// Skipped are instants inside of recorded skips; Forbidden of them were in no
	// outage that permits it.
	Skipped, Forbidden int
	// Dropped are instants that were overdue, and not started, when an edit of their
	// job's schedule, a stop or a removal came: the new schedule begins after now.
	// Overdue of them had no fault that made them so.
	Dropped, Overdue int
	// Followed counts the runs that followed another, by why they did.
	Followed map[string]int
	// Children and Joins are runs that successes led to, Over the windows that were over
	// before all jobs had succeeded. Alarms counts the alarms by their causes; Repeated is how
	// often sinks were told once more.
	Children, Joins, Over int
	Alarms                map[string]int
	Repeated              int
	// Refused are runs of a service that was away for longer than they wait for it.
	Refused int
	// Yielded are instants that the job's block strategy gave up.
	Yielded int
	// Wrong are contradictions of other kinds: starts that nothing asked for,
	// results that nobody gave, runs of a serial job side by side.
	Wrong int
	// Forgotten are runs without a row: the database has lost what it had
	// acknowledged. With Rules.MayForget they, and what is lost with them, are
	// counted and no violation.
	Forgotten int
	forgiving bool
	timed     bool

	// Disorder are runs of a serial job that were started before an earlier one, after a
	// fault that asks for the order.
	Disorder int
	// Missed are planned runs that nobody held until the scheduler's own slow look at
	// the store took them up. See AddMissed.
	Missed int
	// Miscounted are reports that are not equal to a count of the rows. See CheckEnd.
	Miscounted int
	// Unlogged are lines of logs that are not in the store, or twice. See CheckLogs.
	Unlogged int

	Lateness Spread // of starts behind their instants
	// Routes is the lateness, by route, of the runs that the victims of faults had not
	// taken. See Fault.ByRoute.
	Routes   map[string]RouteSpread
	Failover Spread // from a process's death, stop or silence to the next owner's first start
	Back     Spread // from the end of a fault to the first start of each shard
	Untold   int    // runs that waited for long while nobody said why
	Late     int    // shards that were not back in time, fail-overs that took too long, late runs that nobody told of

	// Problems describes violations, at most problemsMax of each kind.
	Problems []string
	// Explained says, for each interrupted run, which fault explains it.
	Explained []string
	counts    map[string]int
}

// problemsMax bounds how many violations of one kind are described.
const problemsMax = 12

// OK reports whether nothing was violated.
func (r *Report) OK() bool {
	n := r.Early + r.Unfinished + r.Unexplained + r.Forbidden + r.Wrong
	n += r.Disorder + r.Missed + r.Miscounted + r.Unlogged
	if r.timed {
		n += r.Late + r.Untold
	}
	if r.forgiving {
		return n == 0
	}
	return n+r.Lost+r.Double+r.Overdue+r.Forgotten == 0
}

// AddMissed notes lines of logs, each about a run that nobody held.
func (r *Report) AddMissed(lines []string) {
	r.Missed += len(lines)
	for _, line := range lines {
		r.problem("missed", "%s", line)
	}
}

// problem notes a violation.
func (r *Report) problem(kind, format string, args ...any) {
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	if r.counts[kind]++; r.counts[kind] <= problemsMax {
		r.Problems = append(r.Problems, kind+": "+fmt.Sprintf(format, args...))
	}
}

// Spread is a set of durations in microseconds.
type Spread []int64

// At returns the duration that a part p of all, from 0 to 1, do not exceed.
func (s Spread) At(p float64) int64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	i := int(p*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
