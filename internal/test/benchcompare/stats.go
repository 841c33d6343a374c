package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/xxljob/xxljob/internal/test/measure"
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
	measure.Ratio
}

// ratios compares the samples of pairs, unit by unit, where both commits have it.
func ratios(was, is []sample) (all []ratio) {
	keys := slices.SortedFunc(maps.Keys(was[0]), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.bench, b.bench), cmp.Compare(a.unit, b.unit))
	})
	of := func(samples []sample, k key) (list []float64) {
		for _, s := range samples {
			list = append(list, s[k])
		}
		return list
	}
	for _, k := range keys {
		if !slices.Contains([]string{runsPerSecond, cpuPerRun, nsPerOp}, k.unit) {
			continue
		}
		if r, known := measure.RatioOf(of(was, k), of(is, k)); known {
			all = append(all, ratio{k, r})
		}
	}
	return all
}

// isLoss reports whether it is certain that more than a part was lost.
func (r ratio) isLoss(part float64) bool {
	if r.unit == runsPerSecond {
		return r.High < 1-part
	}
	return r.Low > 1+part
}

func (r ratio) String() string {
	return fmt.Sprintf("%-40s %-10s %s", r.bench, r.unit, r.Ratio)
}
