package chart

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/xxljob/xxljob/cmd/xxljob/internal/bench"
)

// overTime draws how late runs are in each second of an overload, and how many are completed.
func overTime(r *bench.Report) (late, done *plot.Plot, err error) {
	blue, red, gray := colours()
	var p50, p99, completed plotter.XYs
	least, most, top := math.Inf(1), 0.0, r.Offered
	for i, s := range r.Timeline {
		at := float64(i) + 0.5
		completed = append(completed, plotter.XY{X: at, Y: float64(s.Completed)})
		top = max(top, float64(s.Completed))
		if s.Called == 0 {
			continue
		}
		p50 = append(p50, plotter.XY{X: at, Y: max(s.P50, leastMS)})
		p99 = append(p99, plotter.XY{X: at, Y: max(s.P99, leastMS)})
		least, most = min(least, s.P50), max(most, s.P99)
	}
	late = newPlot(fmt.Sprintf("Overload: lateness over time (%s)", where(r)), "", "late by (ms)")
	if len(p50) > 0 {
		if err := curves(late, curve{"p50", p50, blue, false}, curve{"p99", p99, red, false}); err != nil {
			return nil, nil, err
		}
	} else {
		least = 1
	}
	logY(late, least, most)
	done = newPlot(fmt.Sprintf("%.3f of %.0f runs/s offered are completed", r.Overload.DoneToOffered, r.Offered), "time (s)", "runs/s")
	end := float64(len(r.Timeline))
	level := func(y float64) plotter.XYs { return plotter.XYs{{X: 0, Y: y}, {X: end, Y: y}} }
	err = curves(done, curve{"completed", completed, blue, false}, curve{"offered", level(r.Offered), red, true}, curve{"capacity", level(r.Overload.Capacity), gray, true})
	if err != nil {
		return nil, nil, err
	}
	done.Legend.Top, done.Legend.Left, done.Legend.XOffs = false, false, -vg.Points(6)
	done.Y.Min, done.Y.Max = 0, top*1.1
	done.Legend.YOffs = vg.Points(6)
	for _, p := range []*plot.Plot{late, done} {
		p.X.Min, p.X.Max, p.X.Tick.Marker = 0, end, wholes{}
	}
	return late, done, nil
}

// wholes marks whole numbers, about ten of them.
type wholes struct{}

func (wholes) Ticks(least, most float64) (ticks []plot.Tick) {
	step := max(math.Ceil((most-least)/10), 1)
	for at := math.Ceil(least); at <= most; at += step {
		ticks = append(ticks, plot.Tick{Value: at, Label: fmt.Sprintf("%.0f", at)})
	}
	return ticks
}

// curve is a line of a chart, and what the legend calls it.
type curve struct {
	name   string
	points plotter.XYs
	colour color.Color
	dashed bool
}

func curves(p *plot.Plot, all ...curve) error {
	for _, c := range all {
		l, err := line(c.points, c.colour)
		if err != nil {
			return err
		}
		if c.dashed {
			l.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		}
		p.Add(l)
		p.Legend.Add(c.name, l)
	}
	return nil
}
