package measure

import (
	"fmt"
	"slices"
)

// Rounds is what several rounds of a measurement have given.
type Rounds struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// RoundsOf summarises the figures of rounds; of an even number the median is the mean of the
// two in the middle. All are zero where there are none.
func RoundsOf(figures []float64) Rounds {
	if len(figures) == 0 {
		return Rounds{}
	}
	s := slices.Sorted(slices.Values(figures))
	n := len(s)
	return Rounds{(s[(n-1)/2] + s[n/2]) / 2, s[0], s[n-1]}
}

// Text is "median (min–max)" with so many decimals.
func (r Rounds) Text(decimals int) string {
	return fmt.Sprintf("%.*f (%.*f–%.*f)", decimals, r.Median, decimals, r.Min, decimals, r.Max)
}
