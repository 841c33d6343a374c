//go:build unix

package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
)

// print writes a row for each fault, and below what is to be said of each.
func (r *runner) print() {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "fault\tsecs\truns\tlost\tdouble\tearly\tunfin.\tinterr.\tunexpl.\tskip\tforbid.\tdropped\twrong\torder\tmissed\tforgot\tuntold\tlate p50\tp99\tmax ms\tfail-over p50\tp99\tmax ms\tback p50\tmax ms\tverdict\t")
	for _, res := range r.results {
		p := res.report
		verdict := "ok"
		if !p.OK() {
			verdict = "VIOLATED"
		}
		fmt.Fprintf(w, "%s\t%.0f\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", res.name, res.took.Seconds(),
			p.Runs, p.Lost, p.Double, p.Early, p.Unfinished, p.Interrupted, p.Unexplained, p.Skipped, p.Forbidden, p.Dropped, p.Wrong, p.Disorder, p.Missed, p.Forgotten, p.Untold,
			ms(p.Lateness, 0.5), ms(p.Lateness, 0.99), ms(p.Lateness, 1), ms(p.Failover, 0.5), ms(p.Failover, 0.99), ms(p.Failover, 1), ms(p.Back, 0.5), ms(p.Back, 1), verdict)
	}
	w.Flush() // to memory, without an error
	fmt.Fprintf(r.Out, "\n%s\n", text.String())
	r.printRoutes()
	r.printFollowed()
	r.printLed()
	r.printSlow()
	for _, res := range r.results {
		for _, n := range res.notes {
			fmt.Fprintf(r.Out, "note: %s\n", n)
		}
	}
	for _, res := range r.results {
		for _, p := range res.report.Problems {
			fmt.Fprintf(r.Out, "%s: %s\n", res.name, p)
		}
	}
}

// printRoutes writes, for each fault that asked for it and each route, how late the
// runs were that its victims had not taken.
func (r *runner) printRoutes() {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "fault\troute\truns not taken\tlate p50\tp99\tmax ms\tmay be\t")
	n := 0
	for _, res := range r.results {
		for _, route := range slices.Sorted(maps.Keys(res.report.Routes)) {
			s := res.report.Routes[route]
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%d\t\n", res.name, route, len(s.Spread), ms(s.Spread, 0.5), ms(s.Spread, 0.99), ms(s.Spread, 1), s.Bound)
			n++
		}
	}
	w.Flush() // to memory, without an error
	if n > 0 {
		fmt.Fprintln(r.Out, text.String())
	}
}

// printFollowed writes, for each fault, how many runs were followed by another, and why.
func (r *runner) printFollowed() {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "fault\tfollowed: %s\t\n", strings.Join(audit.Causes(), "\t"))
	for _, res := range r.results {
		fmt.Fprint(w, res.name)
		for _, why := range audit.Causes() {
			fmt.Fprintf(w, "\t%d", res.report.Followed[why])
		}
		fmt.Fprintln(w, "\t")
	}
	w.Flush() // to memory, without an error
	fmt.Fprintln(r.Out, text.String())
}

// printLed writes, for each fault, what successes led to, and the alarms by their causes.
func (r *runner) printLed() {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "fault\tchildren\tjoins\twindows over\talarms: %s\ttroubles\ttold again\t\n", strings.Join(audit.AlarmCauses(), "\t"))
	for _, res := range r.results {
		p := res.report
		fmt.Fprintf(w, "%s\t%d\t%d\t%d", res.name, p.Children, p.Joins, p.Over)
		for _, cause := range audit.AlarmCauses() {
			fmt.Fprintf(w, "\t%d", p.Alarms[cause])
		}
		fmt.Fprintf(w, "\t%d\t%d\t\n", p.Alarms["trouble"], p.Repeated)
	}
	w.Flush() // to memory, without an error
	fmt.Fprintln(r.Out, text.String())
}

// printSlow says in whose time starts may be late, and why.
func (r *runner) printSlow() {
	for _, res := range r.results {
		if res.slow != "" {
			fmt.Fprintf(r.Out, "%s: starts may be late by more than %d ms: %s\n", res.name, audit.DefaultRules().Lateness, res.slow)
		}
	}
}

// ms writes a part of a spread in milliseconds.
func ms(s audit.Spread, p float64) string {
	if len(s) == 0 {
		return "-"
	}
	return fmt.Sprint(s.At(p) / 1000)
}
