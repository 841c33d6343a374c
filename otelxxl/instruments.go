package otelxxl

import "go.opentelemetry.io/otel/metric"

// Kind is what an instrument measures.
type Kind string

// The kinds of instruments.
const (
	Histogram Kind = "histogram"
	Counter   Kind = "counter" // only grows
	Gauge     Kind = "gauge"   // a value of the moment
)

// Instrument is one that is recorded: its name, unit and description as providers get them, and
// the keys of the attributes that its values may have. Some may be missing: error.type is, where
// there was no error, and xxljob.job.key without Config.JobKeys.
type Instrument struct {
	Name       string
	Kind       Kind
	Unit       string
	Text       string
	Attributes []string
}

// Bounds of histograms, in seconds: those of lateness begin where a healthy system is, those of
// durations end at a day; what handlers take has the conventions' own.
var (
	latenessBounds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15, 60, 300, 3600}
	durationBounds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400}
	processBounds  = []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}
)

// spec is an instrument, and for a histogram its bounds.
type spec struct {
	Instrument
	bounds []float64
}

func hist(name, text string, bounds []float64, attributes ...string) spec {
	return spec{Instrument{name, Histogram, "s", text, attributes}, bounds}
}

func counter(name, unit, text string, attributes ...string) spec {
	return spec{Instrument: Instrument{name, Counter, unit, text, attributes}}
}

func gauge(name, unit, text string, attributes ...string) spec {
	return spec{Instrument: Instrument{name, Gauge, unit, text, attributes}}
}

// What is recorded of what happens.
var (
	processDuration = hist("messaging.process.duration", "How long handlers took, at the executor.", processBounds,
		"messaging.system", "messaging.operation.name", "messaging.destination.name", "error.type")
	runLateness = hist("xxljob.run.lateness", "How long after its instant a run was started.", latenessBounds,
		string(keyApp), string(keyType), string(keyJob))
	runDuration = hist("xxljob.run.duration", "How long a run took from its start to its end.", durationBounds,
		string(keyApp), string(keyType), string(keyState), string(keyJob))
	runOutcomes = counter("xxljob.run.outcomes", "{run}", "Runs that have ended, and records of skipped instants.",
		string(keyApp), string(keyType), string(keyState), string(keyJob))
	jobsStopped = counter("xxljob.job.stopped", "{job}", "Jobs that were stopped, or have stopped by themselves.", string(keyApp))
	shardMoves  = counter("xxljob.shard.moves", "{shard}", "Shards that the node has taken and lost.", string(keyMoved))
	storeAway   = counter("xxljob.store.away", "s", "For how long the store did not answer, when it was back.")
	alarmsTold  = counter("xxljob.alarm.calls", "{call}", "Calls of alarmers.", string(keyRule), string(keyCause), "error.type")
)

// What is asked for at each collection.
var (
	runsHeld    = gauge("xxljob.runs.held", "{run}", "Planned runs in the node's memory.")
	runsDue     = gauge("xxljob.runs.due", "{run}", "Runs that have come up and may be started at once.")
	runsWaiting = gauge("xxljob.runs.waiting", "{run}", "Runs that have come up and wait, by what they lack.", string(keyLack))
	runsRunning = gauge("xxljob.runs.running", "{run}", "Runs at executors of the process: the places that are taken.", string(keyApp))
	placesHeld  = gauge("xxljob.places.held", "{place}", "Places of executors of the process that abandoned handlers hold.")
	runsCalling = gauge("xxljob.runs.calling", "{run}", "Triggers of executors elsewhere that have no answer yet.")
	runsAway    = gauge("xxljob.runs.away", "{run}", "Runs of the node's shards that are at other nodes.")
	laneSize    = gauge("xxljob.lane.size", "{place}", "The places of a lane.", string(keyLane))
	laneUsed    = gauge("xxljob.lane.used", "{place}", "Those that are taken.", string(keyLane))
	shardsOwned = gauge("xxljob.shards", "{shard}", "The shards that the node has.")
	leaseLeft   = gauge("xxljob.lease.left", "s", "For how long the node may act without another beat; negative where it may not.")
	clockOffset = gauge("xxljob.clock.offset", "s", "How far the store's clock is ahead, at least.")
	troublesOf  = gauge("xxljob.troubles", "{trouble}", "What keeps runs from being run that no other process would do better: see Scheduler.Troubles.", string(keyTrouble))
	storeCalls  = counter("xxljob.store.calls", "{call}", "Calls of the store that have returned.", string(keyMethod))
	storeErrors = counter("xxljob.store.errors", "{call}", "Those that have returned an error.", string(keyMethod))
	storeTime   = counter("xxljob.store.time", "s", "How long all of them took together.", string(keyMethod))
	faultsSeen  = counter("xxljob.faults", "{fault}", "What should not happen, by kind: see FaultStats.", string(keyFault))
	panicsSeen  = counter("xxljob.panics", "{panic}", "Panics of users' code, by place.", string(keyPlace))
	logLines    = counter("xxljob.log.lines", "{line}", "Lines that go where Config.Logs says, by what became of them.", string(keyLine))
	logWaiting  = gauge("xxljob.log.waiting", "By", "The memory of lines that are not written yet.")
	leftOut     = counter("xxljob.telemetry.left_out", "{call}", "Calls of telemetry's providers that were left out, since an earlier one had not returned.", string(keyLeftOut))
)

// observed are those.
func observed() []spec {
	return []spec{
		runsHeld, runsDue, runsWaiting, runsRunning, placesHeld, runsCalling, runsAway, laneSize, laneUsed, shardsOwned, leaseLeft, clockOffset, troublesOf,
		storeCalls, storeErrors, storeTime, faultsSeen, panicsSeen, logLines, logWaiting, leftOut,
	}
}

func specs() []spec {
	return append([]spec{processDuration, runLateness, runDuration, runOutcomes, jobsStopped, shardMoves, storeAway, alarmsTold}, observed()...)
}

// Instruments returns all that are recorded.
func Instruments() (all []Instrument) {
	for _, s := range specs() {
		all = append(all, s.Instrument)
	}
	return all
}

// histogram makes a histogram. One that cannot be made is reported, and records nothing.
func histogram(m metric.Meter, failed func(string, error), s spec) metric.Float64Histogram {
	h, err := m.Float64Histogram(s.Name, metric.WithUnit(s.Unit), metric.WithDescription(s.Text), metric.WithExplicitBucketBoundaries(s.bounds...))
	if err != nil {
		failed(s.Name, err)
	}
	return h
}

func count(m metric.Meter, failed func(string, error), s spec) metric.Float64Counter {
	c, err := m.Float64Counter(s.Name, metric.WithUnit(s.Unit), metric.WithDescription(s.Text))
	if err != nil {
		failed(s.Name, err)
	}
	return c
}
