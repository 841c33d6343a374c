// Package chart draws what a bench has measured, as SVG on white.
//
// Comes in: a report. Goes out: files. It computes nothing but scales.
package chart

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/xxljob/xxljob/cmd/xxljob/internal/bench"
)

// The size of a panel.
const (
	width  = 20 * vg.Centimeter
	height = 10 * vg.Centimeter
)

// Colours that are told apart on white, also by those who see no red or green.
func colours() (first, second, third color.Color) {
	return color.NRGBA{0x00, 0x5a, 0xb5, 0xff}, color.NRGBA{0xdc, 0x32, 0x20, 0xff}, color.NRGBA{0x60, 0x60, 0x60, 0xff}
}

// Draw writes the charts of a report into a directory, which is made, and returns the names of
// the files: the distribution of the lateness where there is one, and what an overload has
// become of over time.
func Draw(r *bench.Report, dir string) (files []string, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	base := fmt.Sprintf("%s-%s-%s", r.Config.Shape, r.Config.Store, r.Config.Executor)
	if len(r.Curve) > 0 {
		p, err := lateness(r)
		if err != nil {
			return files, err
		}
		name := filepath.Join(dir, base+"-lateness.svg")
		if err := save(name, p); err != nil {
			return files, err
		}
		files = append(files, name)
	}
	if r.Overload != nil && len(r.Timeline) > 0 {
		late, done, err := overTime(r)
		if err != nil {
			return files, err
		}
		name := filepath.Join(dir, base+"-over-time.svg")
		if err := save(name, late, done); err != nil {
			return files, err
		}
		files = append(files, name)
	}
	return files, nil
}

// where says what was measured, for titles.
func where(r *bench.Report) string {
	executors := "in process"
	if r.Config.Executor == bench.HTTP {
		executors = fmt.Sprintf("%d executors over HTTP", r.Config.Executors)
	}
	return "store " + r.Config.Store + ", " + executors
}

// save writes plots into one file, one above the other, with their axes in line.
func save(name string, plots ...*plot.Plot) error {
	c := vgsvg.New(width, height*vg.Length(len(plots)))
	rows := make([][]*plot.Plot, len(plots))
	for i, p := range plots {
		rows[i] = []*plot.Plot{p}
	}
	tiles := draw.Tiles{Rows: len(plots), Cols: 1, PadTop: 4 * vg.Millimeter, PadBottom: 4 * vg.Millimeter, PadLeft: 4 * vg.Millimeter, PadRight: 8 * vg.Millimeter, PadY: 6 * vg.Millimeter}
	for i, row := range plot.Align(rows, tiles, draw.New(c)) {
		plots[i].Draw(row[0])
	}
	return write(name, c)
}

func write(name string, c io.WriterTo) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	_, err = c.WriteTo(f)
	return err
}

// newPlot has what all have in common.
func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.TextStyle.Font.Size = 14
	p.Title.Padding = 3 * vg.Millimeter
	p.X.Label.TextStyle.Font.Size, p.Y.Label.TextStyle.Font.Size = 12, 12
	p.X.Padding, p.Y.Padding = 0, 0
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding, p.Legend.XOffs, p.Legend.YOffs = vg.Millimeter, vg.Points(6), -vg.Points(6)
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{0xdd}, color.Gray{0xdd}
	p.Add(grid)
	return p
}

// leastMS is the least lateness that is drawn, in milliseconds: an axis of powers has no zero.
const leastMS = 0.01

// logY makes the other axis one of powers of ten, with whole ones at its ends.
func logY(p *plot.Plot, least, most float64) {
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, powers{}
	p.Y.Min = math.Pow(10, math.Floor(math.Log10(max(least, leastMS))))
	p.Y.Max = math.Pow(10, math.Ceil(math.Log10(max(most, 10*p.Y.Min))))
}

// powers marks powers of ten with plain numbers, and between them two to nine without.
type powers struct{}

func (powers) Ticks(least, most float64) (ticks []plot.Tick) {
	for e := math.Floor(math.Log10(least)); e <= math.Ceil(math.Log10(most)); e++ {
		at := math.Pow(10, e)
		ticks = append(ticks, plot.Tick{Value: at, Label: fmt.Sprintf("%.10g", at)})
		for k := 2.0; k < 10; k++ {
			ticks = append(ticks, plot.Tick{Value: k * at})
		}
	}
	return ticks
}

func line(points plotter.XYs, c color.Color) (*plotter.Line, error) {
	l, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	l.Color, l.Width = c, vg.Points(1.8)
	return l, nil
}
