package measure

import "strconv"

// Figure is a number that may be unknown, as CPU times are where there is no /proc. The zero
// value is unknown. Figures of which one is unknown make one that is unknown.
type Figure struct {
	value float64
	known bool
}

// Known is a figure that is known.
func Known(v float64) Figure { return Figure{v, true} }

// Value returns the number; ok is false where it is unknown.
func (f Figure) Value() (v float64, ok bool) { return f.value, f.known }

// Plus is f + g.
func (f Figure) Plus(g Figure) Figure { return Figure{f.value + g.value, f.known && g.known} }

// Minus is f - g.
func (f Figure) Minus(g Figure) Figure { return Figure{f.value - g.value, f.known && g.known} }

// Times is f * x.
func (f Figure) Times(x float64) Figure { return Figure{f.value * x, f.known} }

// Per is f / n, which is unknown where n is zero.
func (f Figure) Per(n float64) Figure {
	if n == 0 || !f.known {
		return Figure{}
	}
	return Known(f.value / n)
}

// Text is the number with so many decimals, or "unknown".
func (f Figure) Text(decimals int) string {
	if !f.known {
		return "unknown"
	}
	return strconv.FormatFloat(f.value, 'f', decimals, 64)
}

// MarshalJSON is the number, or null where it is unknown.
func (f Figure) MarshalJSON() ([]byte, error) {
	if !f.known {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, f.value, 'g', -1, 64), nil
}

// UnmarshalJSON reads what MarshalJSON has written.
func (f *Figure) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*f = Figure{}
		return nil
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err == nil {
		*f = Known(v)
	}
	return err
}
