package store_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// TestHistogram compares with a sorted list of the times.
func TestHistogram(t *testing.T) {
	bounds := store.Bounds()
	if !slices.IsSorted(bounds[:]) || bounds[0] != time.Millisecond || bounds[len(bounds)-1] != 5*time.Minute {
		t.Errorf("the bounds are %v", bounds)
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		var h, part store.Histogram
		var all []time.Duration
		var sum time.Duration
		for i := range 1 + r.IntN(300) {
			d := time.Duration(r.ExpFloat64()*float64(20*time.Second)) / time.Duration(1+r.IntN(1000)) * time.Duration(r.IntN(3)-r.IntN(2)*r.IntN(2))
			if i%2 == 0 {
				h.Observe(d)
			} else {
				part.Observe(d)
			}
			d = max(d, 0).Truncate(time.Millisecond)
			all, sum = append(all, d), sum+d
		}
		h.Add(&part)
		slices.Sort(all)
		if h.Count() != int64(len(all)) || h.Sum != sum || h.Mean() != sum/time.Duration(len(all)) {
			t.Fatalf("seed %d: count %d, sum %v, mean %v of %v", seed, h.Count(), h.Sum, h.Mean(), all)
		}
		for _, p := range []float64{0, 0.5, 0.9, 0.99, 1} {
			bound, more := h.Quantile(p)
			exact := all[max(int(math.Ceil(p*float64(len(all))-1e-9)), 1)-1]
			at, _ := slices.BinarySearch(bounds[:], exact)
			if more != (at == len(bounds)) || bound != bounds[min(at, len(bounds)-1)] {
				t.Errorf("seed %d: quantile %v is %v, %v, and exactly %v", seed, p, bound, more, exact)
			}
		}
	}
	var none store.Histogram
	if bound, more := none.Quantile(0.5); bound != 0 || more || none.Mean() != 0 {
		t.Errorf("of no times: %v, %v, %v", bound, more, none.Mean())
	}
}

// TestQuantileIsNotExceeded: no fewer of the times than the share are within the quantile, and it
// is the least bound of which that is true.
func TestQuantileIsNotExceeded(t *testing.T) {
	for _, tt := range []struct {
		p           float64
		fast, slow  int
		bound       time.Duration
		more, never bool
	}{
		{p: 0.99, fast: 59, slow: 1, bound: 10 * time.Second},
		{p: 0.98, fast: 59, slow: 1, bound: time.Millisecond},
		{p: 0.99, fast: 99, slow: 1, bound: time.Millisecond},
		{p: 0.99, fast: 98, slow: 2, bound: 10 * time.Second},
		{p: 0.07, fast: 7, slow: 93, bound: time.Millisecond},
		{p: 0.071, fast: 7, slow: 93, bound: 10 * time.Second},
		{p: 0.5, fast: 1, slow: 2, bound: 10 * time.Second},
		{p: 0.5, fast: 1, slow: 1, bound: time.Millisecond},
		{p: 0, fast: 1, slow: 1, bound: time.Millisecond},
		{p: 1, fast: 1, slow: 1, bound: 10 * time.Second},
		{p: -1, fast: 1, slow: 1, bound: time.Millisecond},
		{p: 2, fast: 1, slow: 1, bound: 10 * time.Second},
		{p: 0.9, slow: 1, never: true, bound: 5 * time.Minute, more: true},
		{p: 0.9, fast: 9, slow: 1, never: true, bound: time.Millisecond},
	} {
		var h store.Histogram
		for range tt.fast {
			h.Observe(time.Millisecond)
		}
		for range tt.slow {
			h.Observe(map[bool]time.Duration{false: 10 * time.Second, true: time.Hour}[tt.never])
		}
		if bound, more := h.Quantile(tt.p); bound != tt.bound || more != tt.more {
			t.Errorf("quantile %v of %d fast and %d slow ones is %v, %v, want %v, %v", tt.p, tt.fast, tt.slow, bound, more, tt.bound, tt.more)
		}
	}
}

// TestTally: ends are counted apart by quarter and app, in order of both, before 1970 too.
func TestTally(t *testing.T) {
	var tally store.Tally
	at := time.Date(2026, 3, 4, 10, 59, 59, 999e6, time.FixedZone("", 3*3600))
	for range 2 {
		tally.Count("b", at).Ended[3]++
		tally.Count("a", at).Ended[3]++
		tally.Count("z", at.Add(-15*time.Minute)).Ended[3]++
		tally.Count("a", at.Add(time.Millisecond)).Ended[3]++
		tally.Count("a", time.Unix(-1, 0)).Ended[3]++
	}
	var got []string
	for _, r := range tally.Reports() {
		got = append(got, r.From.Format("2006-01-02T15:04Z07:00 ")+r.App)
		if r.Ended[3] != 2 || r.Length != store.Quarter {
			t.Errorf("%+v", r)
		}
	}
	if want := []string{"1969-12-31T23:45Z a", "2026-03-04T07:30Z z", "2026-03-04T07:45Z a", "2026-03-04T07:45Z b", "2026-03-04T08:00Z a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if day := store.DayOf(time.Unix(-1, 0)); !day.Equal(time.Unix(-86400, 0)) {
		t.Errorf("the day before 1970 begins %v", day)
	}
}
