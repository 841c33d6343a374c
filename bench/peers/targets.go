package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/xxljob/xxljob/internal/test/measure"
)

// errMissed says that a target was not met.
var errMissed = errors.New("targets are not met")

// target is what is to be reached, and what was.
type target struct {
	Target   string `json:"target"`
	Measured string `json:"measured"`
	Met      bool   `json:"met"`
}

// targets are those of the parts that were measured.
func (b *bench) targets() (all []target) {
	all = append(all, b.drainTarget()...)
	all = append(all, b.loadTargets()...)
	all = append(all, b.latenessTargets()...)
	return append(all, b.memoryTargets()...)
}

// median is that of a figure of a result; ok is false where there is none.
func (b *bench) median(part, what, who string, figure func(sample) measure.Figure) (v float64, ok bool) {
	r := b.find(part, what, who)
	if r == nil {
		return 0, false
	}
	x, ok := r.over(figure)
	return x.Median, ok
}

func (b *bench) drainTarget() []target {
	a, r := b.find(partDrain, ofNodes(1), ours), b.find(partDrain, ofNodes(1), riverName)
	if a == nil || r == nil {
		return nil
	}
	x := ratioOf(a, r, rate)
	return []target{{"a drain of one node is at least 1.2 times as fast as River's", x.Text(2), x.Median >= 1.2}}
}

// loadTargets are about schedules with as much as River drains, and more.
func (b *bench) loadTargets() (all []target) {
	drained, ok := b.median(partScheduled, whatOnce, ours, offered)
	once, ok1 := b.median(partScheduled, whatOnce, ours, rate)
	if !ok || !ok1 {
		return nil
	}
	over, ok := b.median(partScheduled, whatOver, ours, rate)
	if !ok {
		return nil
	}
	// Which runs are called just before and just behind the end of the window is chance.
	const most = 0.99
	all = append(all,
		target{"as many scheduled runs a second as River drains", fmt.Sprintf("%.0f of %.0f", max(once, over), drained), max(once, over) >= most*drained},
		target{"with 1.5 times that offered, at least 95 % of it", fmt.Sprintf("%.0f of %.0f, and %.0f with that offered", over, drained, once), over >= 0.95*drained})
	third, _ := b.median(partScheduled, whatOver, ours, steady)
	return append(all, target{"then as many in the last third of the time as in the first, or 95 %", fmt.Sprintf("%.2f", third), third >= 0.95})
}

// lateAtMost is a target for a lateness, if the situation was measured. It is missed where
// instants had no call by the end: they are later than any that had one.
func (b *bench) lateAtMost(words, part, what string, of func(measure.Percentiles) float64, bound float64) []target {
	if b.find(part, what, ours) == nil {
		return nil
	}
	left, _ := b.median(part, what, ours, uncalled)
	v, ok := b.median(part, what, ours, late(of))
	t := target{words, fmt.Sprintf("%.1f ms", v), ok && v <= bound && left == 0}
	if left > 0 {
		t.Measured = fmt.Sprintf("%.0f instants were not called by the end", left)
	}
	return []target{t}
}

func (b *bench) latenessTargets() (all []target) {
	all = append(all, b.lateAtMost("5,000 scheduled runs a second: p50 at most 2 ms", partScheduled, what5k, p50, 2)...)
	all = append(all, b.lateAtMost("5,000 scheduled runs a second: p99 at most 10 ms", partScheduled, what5k, p99, 10)...)
	all = append(all, b.lateAtMost("10,000 scheduled runs a second: p99 at most 20 ms", partScheduled, what10k, p99, 20)...)
	return append(all, b.lateAtMost("a herd of 5,000 on one second: the last starts within 250 ms", partScheduled, whatHerd, most, 250)...)
}

func (b *bench) memoryTargets() (all []target) {
	if v, ok := b.median(partMemory, whatInMemory, ours, rate); ok {
		all = append(all, target{"in memory at least 150,000 runs a second are drained and recorded", fmt.Sprintf("%.0f", v), v >= 150_000})
	}
	if v, ok := b.median(partMemory, whatSpread, ours, rate); ok {
		all = append(all, target{"in memory 60,000 scheduled runs a second", fmt.Sprintf("%.0f", v), v >= 0.99*60_000})
	}
	all = append(all, b.lateAtMost("in memory 60,000 scheduled runs a second: p99 at most 20 ms", partMemory, whatSpread, p99, 20)...)
	all = append(all, b.beside("herd of 10,000: p99 at most a fifth of gocron's", gocronName, 0.2)...)
	all = append(all, b.beside("herd of 10,000: p99 below robfig/cron's", robfigName, 1)...)
	if v, ok := b.median(partMemory, whatHerd50k, ours, uncalled); ok {
		all = append(all, target{"herd of 50,000 in memory: none missed", fmt.Sprintf("%.0f", v), v == 0})
	}
	return append(all, b.lateAtMost("herd of 50,000 in memory: p99 at most 400 ms", partMemory, whatHerd50k, p99, 400)...)
}

// beside compares the lateness of a herd with a peer's in the same run.
func (b *bench) beside(words, peer string, share float64) []target {
	mine, ok := b.median(partMemory, whatHerd10k, ours, late(p99))
	theirs, ok2 := b.median(partMemory, whatHerd10k, peer, late(p99))
	if !ok || !ok2 {
		return nil
	}
	return []target{{words, fmt.Sprintf("%.1f ms beside %.1f", mine, theirs), mine <= share*theirs}}
}

// printTargets prints a table.
func printTargets(out io.Writer, all []target) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\ntarget\tmeasured\tmet")
	for _, t := range all {
		met := "yes"
		if !t.Met {
			met = "no"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", t.Target, t.Measured, met)
	}
	_ = w.Flush() // to the standard output, where nobody is left to tell
}

// judge returns errMissed where that was asked for.
func (b *bench) judge(all []target) error {
	var missed []string
	for _, t := range all {
		if !t.Met {
			missed = append(missed, t.Target)
		}
	}
	if !b.Strict || len(missed) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", errMissed, strings.Join(missed, "; "))
}
