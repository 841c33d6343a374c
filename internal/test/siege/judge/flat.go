package judge

import (
	"fmt"
	"time"
)

// Level is what the scheduler's process had of something at one moment: bytes, goroutines.
type Level struct {
	At    time.Duration
	Value int64
}

// Most is the greatest value in a span.
func Most(levels []Level, in Span) (most int64) {
	for _, l := range levels {
		if l.At >= in.From && l.At < in.To {
			most = max(most, l.Value)
		}
	}
	return most
}

// quarter is a quarter of a span, from 1 to 4.
func (s Span) quarter(n int) Span {
	q := (s.To - s.From) / 4
	return Span{s.From + time.Duration(n-1)*q, s.From + time.Duration(n)*q}
}

// growth says how a level has grown, "" where it is flat: its greatest value in the last
// quarter is not above that of the second by more than a fifth and some slack. The first
// quarter is that of filling up.
func growth(what string, levels []Level, in Span, slack int64, show func(int64) string) string {
	second, last := Most(levels, in.quarter(2)), Most(levels, in.quarter(4))
	switch {
	case second == 0 || last == 0:
		return what + " was not measured in the second and the last quarter"
	case last > second+second/5+slack:
		return fmt.Sprintf("%s grew: at most %s in the second quarter, %s in the last", what, show(second), show(last))
	}
	return ""
}
