package chart_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/cmd/xxljob/internal/bench"
	"github.com/xxljob/xxljob/cmd/xxljob/internal/chart"
	"github.com/xxljob/xxljob/internal/test/measure"
)

// report is one of an overload, with values at the ends of what may come.
func report(curve []bench.CurvePoint, timeline []bench.Second) *bench.Report {
	return &bench.Report{
		Config:   bench.Config{Shape: bench.Overload, Store: bench.Memory, Executor: bench.HTTP, Executors: 4},
		Lateness: &measure.Percentiles{P50: 0.5, P90: 2, P99: 30, P999: 400, Max: 5000},
		Curve:    curve, Timeline: timeline, Offered: 1500, Completed: 990,
		Overload: &bench.OverloadReport{Capacity: 1000, DoneToOffered: 0.66},
	}
}

// texts are those of an SVG file, which has to be well-formed.
func texts(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all strings.Builder
	for d := xml.NewDecoder(f); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all.String()
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s, ok := token.(xml.CharData); ok {
			all.Write(s)
			all.WriteByte('\n')
		}
	}
}

func TestDraw(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "below")
	r := report([]bench.CurvePoint{{Late: 0, Share: 0.1}, {Late: 0.5, Share: 0.5}, {Late: 2, Share: 0.9}, {Late: 30, Share: 0.99}, {Late: 400, Share: 0.9995}, {Late: 5000, Share: 1}},
		[]bench.Second{{Completed: 900, Called: 900, P50: 0, P99: 10}, {}, {Completed: 1000, Called: 1000, P50: 700, P99: 900}})
	files, err := chart.Draw(r, dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 {
		t.Fatalf("drawn: %v", files)
	}
	for file, want := range map[string][]string{
		files[0]: {"Lateness: overload, 990 runs/s (store memory, 4 executors over HTTP)", "late by (ms)", "runs that were at most as late (%)", "99.9", "p99 30 ms", "max 5000 ms"},
		files[1]: {"lateness over time", "late by (ms)", "time (s)", "runs/s", "completed", "offered", "capacity", "p50", "p99"},
	} {
		got := texts(t, file)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s lacks %q; it has %q", file, w, got)
			}
		}
	}
}

// TestDrawsLittle: reports of loads that were over at once, or of which nothing has run.
func TestDrawsLittle(t *testing.T) {
	for name, r := range map[string]*bench.Report{
		"nothing at all":  {},
		"one run":         report([]bench.CurvePoint{{Late: 3, Share: 1}}, []bench.Second{{Completed: 1, Called: 1, P50: 3, P99: 3}}),
		"on time":         report([]bench.CurvePoint{{Late: 0, Share: 0.5}, {Late: 0, Share: 1}}, nil),
		"nothing was run": report(nil, []bench.Second{{}, {}}),
	} {
		files, err := chart.Draw(r, t.TempDir())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, f := range files {
			texts(t, f)
		}
	}
}
