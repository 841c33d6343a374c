package measure

import (
	"math"
	"testing"
)

// TestInterval has a series whose interval is known: 1 to 5 has the mean 3, the deviation
// 1.5811, and t 2.776 at four degrees of freedom.
func TestInterval(t *testing.T) {
	mean, wide := Interval([]float64{1, 2, 3, 4, 5})
	if mean != 3 || math.Abs(wide-2.776*1.58114/math.Sqrt(5)) > 1e-4 {
		t.Errorf("%v %v", mean, wide)
	}
}
