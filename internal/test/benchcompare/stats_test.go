package main

import (
	"math"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	s := parse("goos: linux\nBenchmarkEndToEnd-2   300000   13021 ns/op   76800 runs/s\nBenchmarkLateness   1  1 ns/op  1000 runs/s  0.5 p50-ms  20 %cpu\nPASS\n")
	s.addCPU(6)
	for k, want := range map[key]float64{
		{"BenchmarkEndToEnd", nsPerOp}: 13021, {"BenchmarkEndToEnd", runsPerSecond}: 76800, {"BenchmarkEndToEnd", cpuPerRun}: 6.0 / 300000,
		{"BenchmarkLateness", cpuPerRun}: 0.2 / 1000,
	} {
		if got := s[k]; math.Abs(got-want) > 1e-12 {
			t.Errorf("%v: %v, want %v", k, got, want)
		}
	}
}

func TestRatios(t *testing.T) {
	runs, cpu := key{"B", runsPerSecond}, key{"B", cpuPerRun}
	pairs := func(factors ...float64) (was, is []sample) {
		for i, f := range factors {
			base := 100 + float64(i) // the machine is quicker now and then: pairs are of one moment
			was, is = append(was, sample{runs: base, cpu: base}), append(is, sample{runs: base * f, cpu: base / f})
		}
		return was, is
	}
	for name, c := range map[string]struct {
		factors []float64
		lost    bool
	}{
		"the same":          {[]float64{1, 1.01, 0.99, 1, 1.005}, false},
		"a certain loss":    {[]float64{0.9, 0.91, 0.89, 0.9, 0.905}, true},
		"a gain":            {[]float64{1.2, 1.21, 1.19}, false},
		"nobody knows":      {[]float64{0.6, 1.2, 0.8}, false},
		"less than is much": {[]float64{0.98, 0.981, 0.979, 0.98}, false},
	} {
		all := ratios(pairs(c.factors...))
		if len(all) != 2 {
			t.Fatalf("%s: %v", name, all)
		}
		for _, r := range all {
			if r.isLoss(0.03) != c.lost {
				t.Errorf("%s: %v", name, r)
			}
			if r.Low > r.Mean || r.High < r.Mean || !strings.Contains(r.String(), r.unit) {
				t.Errorf("%s: %v", name, r)
			}
		}
	}
}
