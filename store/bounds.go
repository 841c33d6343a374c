package store

// What follows xxljob.StopFinished in the StopReason of a job that a bound has ended.
const (
	// ByMaxRuns: the schedule has made MaxRuns runs.
	ByMaxRuns = ": MaxRuns"
	// ByNotAfter: it has made fewer, and its next instant comes after NotAfter.
	ByNotAfter = ": NotAfter"
)
