package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/xxljob/xxljob/internal/test/measure"
)

// printed is what -json prints.
type printed struct {
	Machine measure.Machine `json:"machine"`
	Server  *measure.Server `json:"server,omitempty"`
	Config  config          `json:"config"`
	Results []*result       `json:"results"`
	Ratios  []ratio         `json:"ratios"`
	Targets []target        `json:"targets"`
}

// report prints what was measured, and returns errMissed where a target was not met and that
// matters.
func (b *bench) report(ctx context.Context) error {
	p := printed{Machine: measure.Proc{}.Machine(), Config: b.config, Results: b.results, Ratios: b.ratios(), Targets: b.targets()}
	if b.server != nil {
		s, err := measure.AskServer(context.WithoutCancel(ctx), b.server.ask)
		if err != nil {
			return err
		}
		p.Server = &s
	}
	if b.JSON {
		e := json.NewEncoder(b.out)
		e.SetIndent("", "  ")
		if err := e.Encode(p); err != nil {
			return err
		}
	} else {
		p.print(b.out)
	}
	return b.judge(p.Targets)
}

// ratio is ours by River, of the rounds that followed each other.
type ratio struct {
	What      string         `json:"what"`
	Ratio     measure.Rounds `json:"ratio"`
	FromFirst measure.Rounds `json:"ratio_from_first"` // of the time from the first call on
}

// ratios are those of the drains.
func (b *bench) ratios() (all []ratio) {
	for _, r := range b.results {
		if r.Who == ours && (r.Part == partDrain || r.Part == partNodes) {
			if other := b.find(r.Part, r.What, riverName); other != nil {
				all = append(all, ratio{r.Part + ", " + r.What, ratioOf(r, other, rate), ratioOf(r, other, fromFirst)})
			}
		}
	}
	return all
}

// ratioOf is that of a figure, pair by pair.
func ratioOf(a, b *result, figure func(sample) measure.Figure) measure.Rounds {
	var pairs []float64
	for i := range min(len(a.Samples), len(b.Samples)) {
		of, by := figure(a.Samples[i]), figure(b.Samples[i])
		if n, known := by.Value(); known {
			if q, known := of.Per(n).Value(); known {
				pairs = append(pairs, q)
			}
		}
	}
	return measure.RoundsOf(pairs)
}

// column is a column of a table.
type column struct {
	title    string
	figure   func(sample) measure.Figure
	decimals int
}

// columnsOf are the columns of a part's table.
func columnsOf(part string) []column {
	client, allocated, others := column{"client µs", clientCPU, 1}, column{"allocated B", alloc, 0}, column{"other cores", other, 2}
	costs := []column{client, {"Postgres µs", serverCPU, 1}, {"WAL B", wal, 0}, allocated, others}
	lateness := []column{{"offered/s", offered, 0}, {"done/s", rate, 0}, {"p50 ms", late(p50), 2}, {"p99 ms", late(p99), 1}, {"max ms", late(most), 0},
		{"not called", uncalled, 0}, {"skipped", skipped, 0}, {"last third / first", steady, 2}}
	drained := []column{{"first call after ms", first, 0}, {"units/s from then", fromFirst, 0}}
	switch part {
	case partScheduled:
		return slices.Concat(lateness, costs)
	case partMemory:
		return slices.Concat(lateness, []column{client, allocated, others}, drained)
	}
	return slices.Concat([]column{{"units/s", rate, 0}}, costs, drained)
}

// print prints tables.
func (p printed) print(out io.Writer) {
	fmt.Fprintln(out, p.Machine)
	if p.Server != nil {
		fmt.Fprintln(out, p.Server)
	}
	fmt.Fprintf(out, "medians of the rounds (least–greatest); CPU, WAL and allocations are for each unit; %d units wait in a drain, of %d jobs of ours; pools of %d connections; schedules are measured for %v, and lateness is of the instants that were called\n",
		p.Config.Units, p.Config.Jobs, p.Config.Conns, p.Config.For)
	for _, part := range parts() {
		p.table(out, part)
	}
	for _, r := range p.Ratios {
		fmt.Fprintf(out, "%s: ours / River %s; from the first call on %s\n", r.What, r.Ratio.Text(2), r.FromFirst.Text(2))
	}
	if n, all := p.disturbed(); n > 0 {
		fmt.Fprintf(out, "others took more than %.2f of a core in %d of %d rounds: measure again without them\n", quiet, n, all)
	}
	printTargets(out, p.Targets)
}

// quiet is how many cores others may take before figures are theirs as well.
const quiet = 0.15

// disturbed counts the rounds in which others took more.
func (p printed) disturbed() (n, all int) {
	for _, r := range p.Results {
		for _, s := range r.Samples {
			all++
			if v, _ := s.Other.Value(); v > quiet {
				n++
			}
		}
	}
	return n, all
}

// table prints a part, if anything of it was measured.
func (p printed) table(out io.Writer, part string) {
	columns := columnsOf(part)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	any := false
	for _, r := range p.Results {
		if r.Part != part {
			continue
		}
		if !any {
			fmt.Fprintf(w, "\n%s\t", part)
			for _, c := range columns {
				fmt.Fprintf(w, "\t%s", c.title)
			}
			fmt.Fprintln(w)
		}
		any = true
		fmt.Fprintln(w, strings.Join(row(r, columns), "\t"))
	}
	_ = w.Flush() // to the standard output, where nobody is left to tell
}

func row(r *result, columns []column) []string {
	cells := []string{r.What, r.Who}
	for _, c := range columns {
		cells = append(cells, r.text(c))
	}
	return cells
}
