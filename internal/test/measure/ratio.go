package measure

import (
	"fmt"
	"math"
)

// Ratio is what a figure has become, by pairs of it before and after: the geometric mean of what each
// pair says, and a 95 % interval of that.
type Ratio struct {
	Pairs           int
	Mean, Low, High float64
}

// RatioOf is the ratio of pairs, of which those count that have both figures. It needs two.
func RatioOf(was, is []float64) (r Ratio, known bool) {
	var logs []float64
	for i := range min(len(was), len(is)) {
		if was[i] > 0 && is[i] > 0 {
			logs = append(logs, math.Log(is[i]/was[i]))
		}
	}
	if len(logs) < 2 {
		return Ratio{}, false
	}
	mean, wide := Interval(logs)
	return Ratio{len(logs), math.Exp(mean), math.Exp(mean - wide), math.Exp(mean + wide)}, true
}

func (r Ratio) String() string {
	return fmt.Sprintf("%.3f  (%.3f to %.3f, %d pairs)", r.Mean, r.Low, r.High, r.Pairs)
}

// Interval is the mean of two figures or more and half the width of its 95 % interval, by Student's t.
func Interval(x []float64) (mean, wide float64) {
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
