package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/xxljob/xxljob/internal/test/measure"
)

// Print writes the report for people, and returns the first error of w.
func (r *Report) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) // Flush has the error
	}
	r.printSettings(line)
	r.printRates(line)
	r.printCost(line)
	if r.Sparse != nil {
		r.Sparse.print(line, r.Server != nil)
	}
	if r.Overload != nil {
		r.Overload.print(line)
	}
	r.Audit.print(line)
	return t.Flush()
}

// liner writes a line: a name and what there is to say.
type liner func(name, format string, args ...any)

func (r *Report) printSettings(line liner) {
	line("command", "%s", r.Command)
	line("at", "%s", r.At.Format(time.RFC3339))
	line("machine", "%s", r.Machine)
	if r.Server != nil {
		line("server", "%s", r.Server)
	}
	line("load", "%s", r.Config.text())
	for _, n := range r.Notes {
		line("note", "%s", n)
	}
	line("other load", "%s cores", r.OtherCores.Text(2))
}

// text is what is measured, with the defaults that were filled in.
func (c Config) text() string {
	s := fmt.Sprintf("%s, store %s, executors %s", c.Shape, c.Store, c.Executor)
	for _, x := range []struct {
		name string
		n    int
	}{{"executors", c.Executors}, {"places", c.Places}, {"connections", c.Connections}, {"jobs", c.Jobs}, {"rate", c.Rate}, {"runs", c.Runs}} {
		if x.n != 0 {
			s += fmt.Sprintf(", %s %d", x.name, x.n)
		}
	}
	if c.Duration != 0 {
		s += fmt.Sprintf(", warm-up %v, duration %v", c.Warmup, c.Duration)
	}
	return s
}

func (r *Report) printRates(line liner) {
	line("measured", "%.1f s", r.Seconds)
	if r.Offered > 0 {
		line("offered", "%.0f runs/s", r.Offered)
	}
	line("completed", "%.0f runs/s", r.Completed)
	if p := r.Lateness; p != nil {
		line("lateness", "p50 %.3f ms, p90 %.3f ms, p99 %.3f ms, p99.9 %.3f ms, max %.3f ms", p.P50, p.P90, p.P99, p.P999, p.Max)
	}
}

// printCost leaves out what the load has none of.
func (r *Report) printCost(line liner) {
	c := r.Cost
	cpu := "this process " + c.OwnCPU.Text(1) + " µs"
	memory := fmt.Sprintf("resident %s MiB, heap %.1f MiB", mib(r.PeakRSS), float64(r.PeakHeap)/(1<<20))
	if r.Server != nil {
		cpu += ", Postgres " + c.ServerCPU.Text(1) + " µs"
	}
	if r.Config.Executor == HTTP {
		cpu += ", executors " + c.ExecutorsCPU.Text(1) + " µs"
		memory += ", executors " + mib(r.PeakChildren) + " MiB"
	}
	line("CPU a run", "%s", cpu)
	if r.Server != nil {
		line("WAL a run", "%s bytes", c.WALBytes.Text(0))
	}
	line("allocated a run", "%s bytes, %s objects", c.AllocBytes.Text(0), c.AllocObjects.Text(1))
	line("peak memory", "%s", memory)
}

func mib(f measure.Figure) string { return f.Times(1.0 / (1 << 20)).Text(1) }

func (s *SparseReport) print(line liner, server bool) {
	line("waiting jobs", "%d, added in %.1f s", s.Jobs, s.AddSeconds)
	line("start", "ready after %.3f s", s.StartSeconds)
	line("heap a job", "%.0f bytes", s.HeapPerJob)
	line("idle CPU", "this process %s cores", s.IdleCores.Text(4))
	if server {
		line("", "Postgres %s cores", s.IdleServerCores.Text(4))
	}
}

func (o *OverloadReport) print(line liner) {
	how := "as given"
	if o.Measured {
		how = "by a drain"
	}
	line("capacity", "%.0f runs/s %s", o.Capacity, how)
	line("done", "%.3f of what was offered, %.3f of the capacity", o.DoneToOffered, o.DoneToCapacity)
	line("steady", "%.0f runs/s in the first third, %.0f in the last: %.3f", o.FirstThird, o.LastThird, o.LastToFirst)
	line("caught up", "%.1f s after the last instant", o.CatchUpSeconds)
}

func (a Audit) print(line liner) {
	line("audit", "%d expected, %d ran once; lost %d, double %d, early %d, stray %d", a.Expected, a.Once, a.Lost, a.Double, a.Early, a.Stray)
	if a.Unended+a.Failed+a.Skipped > 0 {
		line("", "not ended %d, failed %d, skipped %d", a.Unended, a.Failed, a.Skipped)
	}
}
