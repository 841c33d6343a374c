package measure

import (
	"math"
	"slices"
	"time"
)

// Distribution is a number of latenesses, in order.
type Distribution struct{ sorted []int32 } // microseconds

// NewDistribution is one of microseconds. It takes the slice, and sorts it.
func NewDistribution(us []int32) Distribution {
	slices.Sort(us)
	return Distribution{us}
}

// Len is how many values there are.
func (d Distribution) Len() int { return len(d.sorted) }

// Early is how many values are below zero.
func (d Distribution) Early() int {
	n, _ := slices.BinarySearch(d.sorted, 0)
	return n
}

// At is the value that the share p of all does not exceed, p from 0 to 1: the nearest rank, so
// that it is one of the values. It is zero where there are none.
func (d Distribution) At(p float64) time.Duration {
	n := len(d.sorted)
	if n == 0 {
		return 0
	}
	rank := int(math.Ceil(p*float64(n) - 1e-9)) // 0.99 of 100 is the 99th, whatever floats say
	return time.Duration(d.sorted[min(max(rank, 1), n)-1]) * time.Microsecond
}

// Percentiles are the figures of a distribution that are printed, in milliseconds.
type Percentiles struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
}

// Percentiles returns them; all are zero where there are no values.
func (d Distribution) Percentiles() Percentiles {
	ms := func(p float64) float64 { return float64(d.At(p)) / float64(time.Millisecond) }
	return Percentiles{ms(0.5), ms(0.9), ms(0.99), ms(0.999), ms(1)}
}

// Point says which share of the values is at most as late.
type Point struct {
	Late  time.Duration
	Share float64 // above 0, at most 1
}

// Curve is the cumulative distribution in at most so many points, which have to be two or
// more. Half of them are at even steps of the share, and half nearer and nearer to its end,
// so that the tail can be drawn. The last point is the greatest value.
func (d Distribution) Curve(points int) []Point {
	if len(d.sorted) == 0 {
		return nil
	}
	half := points / 2
	var shares []float64
	for i := 1; i < half; i++ {
		shares = append(shares, float64(i)/float64(half))
	}
	tail := points - len(shares)
	for i := range tail - 1 {
		// From the last even step on, down to one of all values, in equal ratios.
		first, last := 1/float64(half), 1/float64(len(d.sorted))
		shares = append(shares, 1-first*math.Pow(min(last/first, 1), float64(i+1)/float64(tail)))
	}
	slices.Sort(shares)
	curve := make([]Point, 0, points)
	for _, p := range append(shares, 1) {
		curve = append(curve, Point{d.At(p), p})
	}
	return curve
}
