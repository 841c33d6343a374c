package bench

import (
	"time"

	"github.com/xxljob/xxljob/internal/test/measure"
)

// Report is what was measured. Figures that could not be read are null in JSON.
type Report struct {
	Command string          `json:"command"`
	At      time.Time       `json:"at"`
	Config  Config          `json:"config"`
	Machine measure.Machine `json:"machine"`
	Server  *measure.Server `json:"server,omitempty"`
	// Notes say what was set otherwise than by default.
	Notes []string `json:"notes,omitempty"`

	// Seconds is how long it was measured for. Offered is how many runs a second fell due
	// then, and Completed how many were recorded as succeeded.
	Seconds   float64 `json:"seconds"`
	Offered   float64 `json:"offered_per_second,omitempty"`
	Completed float64 `json:"completed_per_second"`
	// Lateness is in milliseconds, of the instants of that time; nil where the shape has none.
	Lateness *measure.Percentiles `json:"lateness_ms,omitempty"`
	// Curve is the distribution behind them.
	Curve []CurvePoint `json:"curve,omitempty"`

	Cost Cost `json:"cost"`
	// OtherCores is how many cores others on the machine have kept busy.
	OtherCores measure.Figure `json:"other_cores"`
	// PeakRSS and PeakHeap are this process's, in bytes, PeakChildren that of all executors in
	// processes of their own, since their start.
	PeakRSS      measure.Figure `json:"peak_rss_bytes"`
	PeakHeap     uint64         `json:"peak_heap_bytes"`
	PeakChildren measure.Figure `json:"peak_executors_bytes"`

	Sparse   *SparseReport   `json:"sparse,omitempty"`
	Overload *OverloadReport `json:"overload,omitempty"`
	Timeline []Second        `json:"timeline,omitempty"`

	Audit Audit `json:"audit"`
	Clean bool  `json:"clean"`
}

// CurvePoint says which share of the runs was at most so many milliseconds late.
type CurvePoint struct {
	Late  float64 `json:"ms"`
	Share float64 `json:"share"`
}

// Cost is what one completed run has cost.
type Cost struct {
	// Microseconds of a core: of this process with its handlers, of executors in processes of
	// their own, and of Postgres.
	OwnCPU       measure.Figure `json:"own_cpu_us"`
	ExecutorsCPU measure.Figure `json:"executors_cpu_us"`
	ServerCPU    measure.Figure `json:"postgres_cpu_us"`
	WALBytes     measure.Figure `json:"wal_bytes"`
	// What this process has allocated.
	AllocBytes   measure.Figure `json:"allocated_bytes"`
	AllocObjects measure.Figure `json:"allocated_objects"`
}

// SparseReport is about jobs that wait.
type SparseReport struct {
	Jobs int `json:"jobs"`
	// AddSeconds is how long it took to add them, and StartSeconds how long the scheduler took
	// from Start until it was ready and had all shards.
	AddSeconds   float64 `json:"add_seconds"`
	StartSeconds float64 `json:"start_seconds"`
	// HeapPerJob is how many bytes of the heap of this process each takes, the store in memory
	// included.
	HeapPerJob float64 `json:"heap_bytes_per_job"`
	// IdleCores and IdleServerCores are what the scheduler and Postgres use while nothing is due.
	IdleCores       measure.Figure `json:"idle_cores"`
	IdleServerCores measure.Figure `json:"idle_postgres_cores"`
}

// OverloadReport compares what was done with what was offered.
type OverloadReport struct {
	// Capacity is how many runs a second come through, as a drain says or the caller.
	Capacity float64 `json:"capacity_per_second"`
	Measured bool    `json:"capacity_measured"`
	// DoneToOffered and DoneToCapacity are the completed runs by those.
	DoneToOffered  float64 `json:"done_to_offered"`
	DoneToCapacity float64 `json:"done_to_capacity"`
	// FirstThird and LastThird are completed runs a second of those parts of the time, and
	// LastToFirst is below one where the scheduler gets slower.
	FirstThird  float64 `json:"first_third_per_second"`
	LastThird   float64 `json:"last_third_per_second"`
	LastToFirst float64 `json:"last_to_first"`
	// CatchUpSeconds is how long after the last instant all of them had run.
	CatchUpSeconds float64 `json:"catch_up_seconds"`
}

// costOf is the usage by the runs that were completed meanwhile.
func costOf(u measure.Usage, runs float64) Cost {
	const us = 1e6
	return Cost{
		OwnCPU: u.OwnCPU.Times(us).Per(runs), ExecutorsCPU: u.ChildCPU.Times(us).Per(runs), ServerCPU: u.ServerCPU.Times(us).Per(runs),
		WALBytes: u.WALBytes.Per(runs), AllocBytes: u.AllocBytes.Per(runs), AllocObjects: u.AllocObjects.Per(runs),
	}
}

// curvePoints is how many points of the distribution are kept.
const curvePoints = 240

func (r *Report) lateness(d measure.Distribution) {
	p := d.Percentiles()
	r.Lateness = &p
	for _, x := range d.Curve(curvePoints) {
		r.Curve = append(r.Curve, CurvePoint{float64(x.Late) / float64(time.Millisecond), x.Share})
	}
}
