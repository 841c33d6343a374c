package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// sample is what one process has measured: by benchmark and unit.
type sample map[key]float64

type key struct{ bench, unit string }

// Units that are compared, and whether more of them is better.
const (
	runsPerSecond = "runs/s"
	cpuPerRun     = "cpu-s/run"
	nsPerOp       = "ns/op"
	times         = "times" // how often the benchmark's body was run; not compared
	percentCPU    = "%cpu"
)

// parse reads the lines of a benchmark: its name, how often it was run, and pairs of a
// figure and its unit.
func parse(out string) sample {
	s := sample{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name, _, _ := strings.Cut(f[0], "-")
		if n, err := strconv.ParseFloat(f[1], 64); err == nil {
			s[key{name, times}] = n
		}
		for i := 2; i+1 < len(f); i += 2 {
			if v, err := strconv.ParseFloat(f[i], 64); err == nil {
				s[key{name, f[i+1]}] = v
			}
		}
	}
	return s
}

// addCPU adds the CPU time of a run: by the benchmark's own account, where it has one, or by
// that of the process, where it measured one benchmark that counts runs.
func (s sample) addCPU(process float64) {
	var counting []string
	for k, v := range s {
		switch {
		case k.unit != runsPerSecond || v <= 0:
		case s[key{k.bench, percentCPU}] > 0:
			s[key{k.bench, cpuPerRun}] = s[key{k.bench, percentCPU}] / 100 / v
		default:
			counting = append(counting, k.bench)
		}
	}
	if len(counting) == 1 && s[key{counting[0], times}] > 1 {
		s[key{counting[0], cpuPerRun}] = process / s[key{counting[0], times}]
	}
}

// ratio is what a unit of a benchmark has become.
type ratio struct {
	key
	pairs           int
	mean, low, high float64
}

// ratios compares the samples of pairs, unit by unit, where both commits have it.
func ratios(was, is []sample) (all []ratio) {
	keys := slices.SortedFunc(maps.Keys(was[0]), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.bench, b.bench), cmp.Compare(a.unit, b.unit))
	})
	for _, k := range keys {
		if !slices.Contains([]string{runsPerSecond, cpuPerRun, nsPerOp}, k.unit) {
			continue
		}
		var logs []float64
		for i := range was {
			if a, b := was[i][k], is[i][k]; a > 0 && b > 0 {
				logs = append(logs, math.Log(b/a))
			}
		}
		if len(logs) < 2 {
			continue
		}
		mean, wide := interval(logs)
		all = append(all, ratio{k, len(logs), math.Exp(mean), math.Exp(mean - wide), math.Exp(mean + wide)})
	}
	return all
}

// interval is the mean and half the width of its 95 % interval, by Student's t.
func interval(x []float64) (mean, wide float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	var square float64
	for _, v := range x {
		square += (v - mean) * (v - mean)
	}
	return mean, quantile(len(x)-1) * math.Sqrt(square/(n-1)/n)
}

// quantile is that of Student's t at 97.5 %, by degrees of freedom (NIST handbook, 1.3.6.7.2).
func quantile(df int) float64 {
	table := []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093}
	if df <= len(table) {
		return table[df-1]
	}
	return table[len(table)-1] // a little too wide
}

// isLoss reports whether it is certain that more than a part was lost.
func (r ratio) isLoss(part float64) bool {
	if r.unit == runsPerSecond {
		return r.high < 1-part
	}
	return r.low > 1+part
}

func (r ratio) String() string {
	return fmt.Sprintf("%-40s %-10s %.3f  (%.3f to %.3f, %d pairs)", r.bench, r.unit, r.mean, r.low, r.high, r.pairs)
}
