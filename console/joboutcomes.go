package console

// How the last runs of a job have gone.

import (
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

const runsOfOutcomes = 500

// outcomes are how the last runs of a job have ended, how long they took and how late they were.
type outcomes struct {
	Runs       int
	Counts     []stateCount // in the order of the states
	Took, Late [2]time.Duration
	Measured   int // of how many runs that is known
	Since      time.Time
	Bars       []runBar // of the newest of them, the oldest first
}

// runBar is a run as a bar, which is as high as it took long beside the others, of barHigh.
type runBar struct {
	ID      int64
	State   string
	X, High int
	Took    time.Duration
	At      time.Time
}

// barShape is one as it stands in the drawing.
const barShape = `<a href="%s%d" tabindex="-1"><rect class="state-%s" x="%d" y="%d" width="8" height="%d"><title>%s · %s</title></rect></a>`

const (
	mostBars = 60
	barHigh  = 40
)

// stateCount is how many runs ended in a state, and their share in percent.
type stateCount struct {
	State string
	N     int
	Share int
}

// lastRuns reads the last runs of a job that have ended, without their texts; none where the store does not
// say.
func (q *request) lastRuns(id int64) ([]xxljob.Run, error) {
	reader, ok := q.Store.(xxljob.RunReader)
	if !ok {
		return nil, nil
	}
	return reader.LastRuns(store.WithShortTexts(q.ctx, 0), []int64{id}, runsOfOutcomes)
}

// sumUp is what runs, the newest first, come to.
func sumUp(runs []xxljob.Run) (o outcomes) {
	counts := map[xxljob.State]int{}
	var took, late []time.Duration
	for i := range runs {
		r := &runs[i]
		o.Since = r.Scheduled
		counts[r.State]++
		if !r.Started.IsZero() {
			took, late = append(took, r.Ended.Sub(r.Started)), append(late, r.Lateness())
		}
	}
	o.Runs, o.Measured = len(runs), len(took)
	for s := xxljob.StatePlanned; s <= xxljob.StateSnoozed; s++ {
		if n := counts[s]; n > 0 {
			o.Counts = append(o.Counts, stateCount{stateKey(s), n, (n*100 + o.Runs/2) / o.Runs})
		}
	}
	o.Took, o.Late = quantiles(took), quantiles(late)
	o.Bars = barsOf(runs[:min(len(runs), mostBars)])
	return o
}

// barsOf are bars of runs, which begin with the newest. The highest is of the one that took longest.
func barsOf(runs []xxljob.Run) (list []runBar) {
	var most time.Duration
	for _, r := range slices.Backward(runs) {
		b := runBar{ID: r.ID, State: stateKey(r.State), X: len(list) * 10, At: r.Scheduled}
		if !r.Started.IsZero() {
			b.Took = max(0, r.Ended.Sub(r.Started))
		}
		most, list = max(most, b.Took), append(list, b)
	}
	for i := range list {
		list[i].High = 4
		if most > 0 {
			list[i].High += int((barHigh - 4) * float64(list[i].Took) / float64(most))
		}
	}
	return list
}

// Y is where a bar begins, from above.
func (b runBar) Y() int { return barHigh - b.High }

// Bars draws bars: by no template, for there are many of them on each page of a job.
func (p *page) Bars(list []runBar) template.HTML {
	var s strings.Builder
	states := map[string]string{}
	runs := html.EscapeString(p.Root()) + "runs/"
	for _, b := range list {
		state, known := states[b.State]
		if !known {
			state = html.EscapeString(p.T("state." + b.State))
			states[b.State] = state
		}
		fmt.Fprintf(&s, barShape,
			runs, b.ID, b.State, b.X, b.Y(), b.High, state, html.EscapeString(p.Span(b.Took)))
	}
	return template.HTML(s.String()) // of numbers, and of words of ours that are escaped
}

// quantiles are the median and the 95th percentile.
func quantiles(list []time.Duration) [2]time.Duration {
	if len(list) == 0 {
		return [2]time.Duration{}
	}
	slices.Sort(list)
	at := func(percent int) time.Duration { return list[(len(list)-1)*percent/100] }
	return [2]time.Duration{at(50), at(95)}
}
