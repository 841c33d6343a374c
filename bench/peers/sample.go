package main

import (
	"time"

	"github.com/xxljob/xxljob/internal/test/measure"
)

// sample is what one round has given.
type sample struct {
	Offered float64 `json:"offered,omitempty"` // units a second; zero where all of them wait
	Rate    float64 `json:"rate"`              // units a second that were done
	// For each unit, in microseconds of one core and in bytes.
	ClientCPU measure.Figure `json:"client_us"`
	ServerCPU measure.Figure `json:"server_us"`
	WAL       measure.Figure `json:"wal_bytes"`
	Alloc     measure.Figure `json:"alloc_bytes"`
	// Other is the load of processes that are not measured, in cores.
	Other measure.Figure `json:"other_cores"`
	// Of a drain: how long after the start the first handler was called, in milliseconds, and the
	// units a second that were done from then on.
	First     float64 `json:"first_ms,omitempty"`
	FromFirst float64 `json:"rate_from_first,omitempty"`
	// Of schedules, which are measured for a time:
	Scheduled bool                 `json:"scheduled"`
	Late      *measure.Percentiles `json:"late_ms,omitempty"`  // of the instants with a call; nil where none has
	Uncalled  int                  `json:"uncalled,omitempty"` // instants without a call by the end, be they dropped or late
	Skipped   int                  `json:"skipped,omitempty"`  // instants that ours has recorded as skipped
	Steady    measure.Figure       `json:"steady"`             // calls in the last third of the time by those in the first
}

// costs fills in what n units have cost. What the clients have allocated is not in the usage
// of this process.
func (s *sample) costs(u measure.Usage, alloc measure.Figure, n int) {
	const us = 1e6
	s.ClientCPU = u.ChildCPU.Times(us).Per(float64(n))
	s.ServerCPU = u.ServerCPU.Times(us).Per(float64(n))
	s.WAL = u.WALBytes.Per(float64(n))
	s.Alloc = alloc.Per(float64(n))
	s.Other = u.OtherCores
}

// drained fills in how fast n units were done, in so much time from a start.
func (s *sample) drained(n int, started time.Time, took time.Duration, end *seen) {
	first := time.UnixMicro(end.First).Sub(started)
	s.Rate = float64(n) / took.Seconds()
	s.First = first.Seconds() * 1000
	s.FromFirst = float64(n) / (took - first).Seconds()
}

// result is the rounds of one contestant in one situation.
type result struct {
	Part    string   `json:"part"`
	What    string   `json:"what"`
	Who     string   `json:"who"`
	Samples []sample `json:"samples"`
}

// text is a figure with so many decimals, and with the least and the greatest where there are
// several rounds.
func (r result) text(c column) string {
	x, ok := r.over(c.figure)
	switch {
	case !ok:
		return "-"
	case len(r.Samples) == 1:
		return measure.Known(x.Median).Text(c.decimals)
	}
	return x.Text(c.decimals)
}

// over summarises one figure of the rounds; ok is false where it is unknown in any.
func (r result) over(figure func(sample) measure.Figure) (x measure.Rounds, ok bool) {
	var all []float64
	for _, s := range r.Samples {
		v, known := figure(s).Value()
		if !known {
			return x, false
		}
		all = append(all, v)
	}
	return measure.RoundsOf(all), len(all) > 0
}

// The figures of samples.
func rate(s sample) measure.Figure      { return measure.Known(s.Rate) }
func clientCPU(s sample) measure.Figure { return s.ClientCPU }
func serverCPU(s sample) measure.Figure { return s.ServerCPU }
func wal(s sample) measure.Figure       { return s.WAL }
func alloc(s sample) measure.Figure     { return s.Alloc }
func other(s sample) measure.Figure     { return s.Other }

// Those of drains are unknown of a schedule.
func first(s sample) measure.Figure     { return when(!s.Scheduled, s.First) }
func fromFirst(s sample) measure.Figure { return when(!s.Scheduled, s.FromFirst) }

// Those of schedules are unknown of a drain.
func offered(s sample) measure.Figure  { return when(s.Scheduled, s.Offered) }
func uncalled(s sample) measure.Figure { return when(s.Scheduled, float64(s.Uncalled)) }
func skipped(s sample) measure.Figure  { return when(s.Scheduled, float64(s.Skipped)) }
func steady(s sample) measure.Figure   { return s.Steady }

func when(known bool, v float64) measure.Figure {
	if !known {
		return measure.Figure{}
	}
	return measure.Known(v)
}

// late is a figure of the lateness.
func late(of func(measure.Percentiles) float64) func(sample) measure.Figure {
	return func(s sample) measure.Figure {
		if s.Late == nil {
			return measure.Figure{}
		}
		return measure.Known(of(*s.Late))
	}
}

func p50(p measure.Percentiles) float64  { return p.P50 }
func p99(p measure.Percentiles) float64  { return p.P99 }
func most(p measure.Percentiles) float64 { return p.Max }
