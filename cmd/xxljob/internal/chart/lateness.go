package chart

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/xxljob/xxljob/cmd/xxljob/internal/bench"
)

// lateness draws the distribution: along the axis the share of the runs, which comes nearer to
// all of them tenfold with each step, so that the tail is as wide as the rest.
func lateness(r *bench.Report) (*plot.Plot, error) {
	p := newPlot(fmt.Sprintf("Lateness: %s, %.0f runs/s (%s)", r.Config.Shape, r.Completed, where(r)),
		"runs that were at most as late (%)", "late by (ms)")
	var points plotter.XYs
	least := math.Inf(1)
	last := r.Curve[len(r.Curve)-1]
	for _, c := range r.Curve[:len(r.Curve)-1] {
		points = append(points, plotter.XY{X: nines(c.Share), Y: max(c.Late, leastMS)})
		least = min(least, c.Late)
	}
	least = min(least, last.Late)
	end := 1.0
	if len(points) > 0 {
		end = math.Ceil(points[len(points)-1].X*2) / 2
	}
	// The greatest is at the end of the axis, for a share of all is infinitely far.
	points = append(points, plotter.XY{X: end, Y: max(last.Late, leastMS)})
	blue, red, _ := colours()
	l, err := line(points, blue)
	if err != nil {
		return nil, err
	}
	p.Add(l)
	p.X.Min, p.X.Max, p.X.Tick.Marker = 0, end, shares(end)
	logY(p, least, last.Late)
	return p, percentiles(p, r, end, red)
}

// nines is how many nines a share has: 1 for 90 %, 2 for 99 %.
func nines(share float64) float64 { return -math.Log10(1 - share) }

// shares marks the axis of nines.
func shares(end float64) plot.ConstantTicks {
	ticks := plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: nines(0.5), Label: "50"}}
	for n, label := range []string{"90", "99", "99.9", "99.99", "99.999", "99.9999"} {
		if at := float64(n + 1); at < end {
			ticks = append(ticks, plot.Tick{Value: at, Label: label})
		}
	}
	return append(ticks, plot.Tick{Value: end, Label: "all"})
}

// percentiles marks those that are printed, with their figures: below the curve, which rises,
// and the greatest above its end.
func percentiles(p *plot.Plot, r *bench.Report, end float64, c color.Color) error {
	var marks, most plotter.XYLabels
	for _, x := range []struct {
		share, ms float64
		name      string
	}{{0.5, r.Lateness.P50, "p50"}, {0.9, r.Lateness.P90, "p90"}, {0.99, r.Lateness.P99, "p99"}, {0.999, r.Lateness.P999, "p99.9"}} {
		if nines(x.share) < end-0.25 { // else it is the greatest, or next to it
			mark(&marks, nines(x.share), x.ms, x.name)
		}
	}
	mark(&most, end, r.Lateness.Max, "max")
	if err := addMarks(p, marks, c, draw.XLeft, draw.YTop, vg.Point{X: vg.Points(3), Y: -vg.Points(5)}); err != nil {
		return err
	}
	return addMarks(p, most, c, draw.XRight, draw.YBottom, vg.Point{X: -vg.Points(5), Y: vg.Points(3)})
}

func mark(to *plotter.XYLabels, x, ms float64, name string) {
	to.XYs = append(to.XYs, plotter.XY{X: x, Y: max(ms, leastMS)})
	to.Labels = append(to.Labels, name+" "+figure(ms)+" ms")
}

// figure is a number with three digits or more, and never with an exponent.
func figure(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func addMarks(p *plot.Plot, marks plotter.XYLabels, c color.Color, x text.XAlignment, y text.YAlignment, offset vg.Point) error {
	if len(marks.Labels) == 0 {
		return nil
	}
	dots, err := plotter.NewScatter(marks)
	if err != nil {
		return err
	}
	dots.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
	labels, err := plotter.NewLabels(marks)
	if err != nil {
		return err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i].XAlign, labels.TextStyle[i].YAlign = x, y
		labels.TextStyle[i].Font.Size = 10
	}
	labels.Offset = offset
	p.Add(dots, labels)
	return nil
}
