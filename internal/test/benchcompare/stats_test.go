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
			if r.low > r.mean || r.high < r.mean || !strings.Contains(r.String(), r.unit) {
				t.Errorf("%s: %v", name, r)
			}
		}
	}
}

// TestInterval has a series whose interval is known: 1 to 5 has the mean 3, the deviation
// 1.5811, and t 2.776 at four degrees of freedom.
func TestInterval(t *testing.T) {
	mean, wide := interval([]float64{1, 2, 3, 4, 5})
	if mean != 3 || math.Abs(wide-2.776*1.58114/math.Sqrt(5)) > 1e-4 {
		t.Errorf("%v %v", mean, wide)
	}
}
