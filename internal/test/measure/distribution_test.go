package measure_test

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/test/measure"
)

// oneTo is the numbers from 1 to n, the greatest first.
func oneTo(n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(n - i)
	}
	return list
}

func TestPercentilesAreTheNearestRank(t *testing.T) {
	for _, c := range []struct {
		n    int
		p    float64
		want int32
	}{
		{100, 0.5, 50}, {100, 0.99, 99}, {100, 0.999, 100}, {100, 1, 100}, {100, 0, 1},
		{1000, 0.999, 999}, {1000, 0.9, 900}, {5, 0.5, 3}, {4, 0.5, 2}, {1, 0.5, 1}, {1, 0.999, 1},
		{7, 0.9, 7}, {10, 0.9, 9},
	} {
		d := measure.NewDistribution(oneTo(c.n))
		if got := d.At(c.p); got != time.Duration(c.want)*time.Microsecond {
			t.Errorf("of 1 to %d the share %v is at most %v, want %d µs", c.n, c.p, got, c.want)
		}
	}
}

func TestPercentilesAreInMilliseconds(t *testing.T) {
	got := measure.NewDistribution(oneTo(100_000)).Percentiles()
	if want := (measure.Percentiles{P50: 50, P90: 90, P99: 99, P999: 99.9, Max: 100}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := measure.NewDistribution(nil).Percentiles(); got != (measure.Percentiles{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestEarlyIsBelowZero(t *testing.T) {
	if got := measure.NewDistribution([]int32{5, -1, 0, -7, 0}).Early(); got != 2 {
		t.Errorf("%d are early, want 2", got)
	}
}

func TestCurveRisesToTheGreatest(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 1000, 100_000} {
		d := measure.NewDistribution(oneTo(n))
		curve := d.Curve(100)
		if len(curve) > 100 {
			t.Errorf("of %d: %d points", n, len(curve))
		}
		if last := curve[len(curve)-1]; last.Share != 1 || last.Late != d.At(1) {
			t.Errorf("of %d: ends with %+v", n, last)
		}
		if !slices.IsSortedFunc(curve, func(a, b measure.Point) int { return int(a.Late - b.Late) }) {
			t.Errorf("of %d: falls", n)
		}
		for i, p := range curve {
			if p.Share <= 0 || p.Share > 1 || i > 0 && p.Share < curve[i-1].Share {
				t.Errorf("of %d: point %d is %+v after %+v", n, i, p, curve[max(i-1, 0)])
			}
		}
	}
	if got := measure.NewDistribution(nil).Curve(100); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}

// TestTheTailIsDrawn: half of the points are in the last steps, where p99.9 is.
func TestTheTailIsDrawn(t *testing.T) {
	beyond := 0
	for _, p := range measure.NewDistribution(oneTo(1_000_000)).Curve(200) {
		if p.Share > 0.999 {
			beyond++
		}
	}
	if beyond < 30 {
		t.Errorf("%d of 200 points are beyond 99.9 %%", beyond)
	}
}

func TestMicrosecondsAreRoundedDownAndBounded(t *testing.T) {
	for d, want := range map[time.Duration]int32{
		0: 0, 1999: 1, -1: -1, -1000: -1, -1001: -2,
		time.Hour: math.MaxInt32, -time.Hour: math.MinInt32, 35 * time.Minute: 2_100_000_000,
	} {
		if got := measure.Microseconds(d); got != want {
			t.Errorf("%v is %d µs, want %d", d, got, want)
		}
	}
}

func TestNothingIsLostThatManyRecord(t *testing.T) {
	var l measure.Lateness
	var all sync.WaitGroup
	const each, writers = 10_000, 8
	for w := range writers {
		all.Go(func() {
			for i := range each {
				l.Record(int64(i%77), time.Duration(w*each+i)*time.Microsecond)
			}
		})
	}
	all.Wait()
	d := l.Distribution()
	if d.Len() != each*writers {
		t.Fatalf("%d values, want %d", d.Len(), each*writers)
	}
	for _, i := range []int{1, 4095, 4096, 4097, each*writers - 1} {
		if got := d.At(float64(i+1) / (each * writers)); got != time.Duration(i)*time.Microsecond {
			t.Errorf("value %d is %v", i, got)
		}
	}
}

func TestRecordingAllocatesNextToNothing(t *testing.T) {
	var l measure.Lateness
	n := testing.AllocsPerRun(100_000, func() { l.Record(7, time.Millisecond) })
	if n > 0 {
		t.Errorf("%v allocations for a value", n)
	}
}

func TestRounds(t *testing.T) {
	for _, c := range []struct {
		figures []float64
		want    measure.Rounds
	}{
		{nil, measure.Rounds{}},
		{[]float64{3}, measure.Rounds{Median: 3, Min: 3, Max: 3}},
		{[]float64{9, 1, 5}, measure.Rounds{Median: 5, Min: 1, Max: 9}},
		{[]float64{9, 1, 5, 2}, measure.Rounds{Median: 3.5, Min: 1, Max: 9}},
	} {
		if got := measure.RoundsOf(c.figures); got != c.want {
			t.Errorf("of %v: %+v, want %+v", c.figures, got, c.want)
		}
	}
	figures := []float64{9, 1}
	measure.RoundsOf(figures)
	if figures[0] != 9 {
		t.Error("the figures of the caller are sorted")
	}
	if got := measure.RoundsOf([]float64{9, 1, 5}).Text(1); got != "5.0 (1.0–9.0)" {
		t.Error(got)
	}
}

func BenchmarkRecord(b *testing.B) {
	var l measure.Lateness
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for key := int64(0); p.Next(); key++ {
			l.Record(key, time.Millisecond)
		}
	})
}
