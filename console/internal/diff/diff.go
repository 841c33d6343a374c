// Package diff compares texts line by line. It reads and writes nothing.
package diff

import (
	"slices"
	"strings"
)

// The bounds of a comparison. Beyond MostLines, of both texts together, there is none. Texts
// that differ in more than mostEdits lines have little in common: all of one is replaced by
// all of the other.
const (
	MostLines = 5000
	mostEdits = 200
)

// Kind says where a line stands.
type Kind int

// The kinds of lines.
const (
	Same    Kind = iota // in both texts
	Removed             // in the one before only
	Added               // in the one after only
	Left                // N lines that both have, and that are left out
)

func (k Kind) String() string {
	switch k {
	case Removed:
		return "removed"
	case Added:
		return "added"
	case Left:
		return "left out"
	}
	return "same"
}

// Line is a line of a comparison.
type Line struct {
	Kind Kind
	Text string // without its end
	N    int    // of lines that are left out
}

// Lines compares two texts. Of lines that both have, those are returned that are at most context
// lines away from one that only one of them has. ok is false where the texts have too many lines.
func Lines(before, after string, context int) (list []Line, ok bool) {
	if strings.Count(before, "\n")+strings.Count(after, "\n") > MostLines {
		return nil, false
	}
	a, b := split(before), split(after)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for _, line := range a[:head] {
		list = append(list, Line{Kind: Same, Text: line})
	}
	list = append(list, middle(a[head:len(a)-tail], b[head:len(b)-tail])...)
	for _, line := range a[len(a)-tail:] {
		list = append(list, Line{Kind: Same, Text: line})
	}
	return leaveOut(list, context), true
}

// split is a text as its lines. One that ends in a line feed has no further line behind it.
func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// middle compares what is left between a common beginning and a common end: Myers' greedy way,
// which finds the fewest lines to remove and to add.
func middle(a, b []string) []Line {
	most := min(len(a)+len(b), mostEdits)
	v := make([]int, 2*most+3) // by diagonal: how far down a it was come
	at := func(k int) int { return k + most + 1 }
	var trace [][]int
	for d := 0; d <= most; d++ {
		trace = append(trace, slices.Clone(v[at(-d-1):at(d+1)+1])) // what this round looks at
		for k := -d; k <= d; k += 2 {
			x := v[at(k-1)] + 1
			if k == -d || k != d && v[at(k-1)] < v[at(k+1)] {
				x = v[at(k+1)]
			}
			y := x - k
			for x < len(a) && y < len(b) && a[x] == b[y] {
				x++
				y++
			}
			if v[at(k)] = x; x >= len(a) && y >= len(b) {
				return back(a, b, trace)
			}
		}
	}
	var list []Line
	for _, line := range a {
		list = append(list, Line{Kind: Removed, Text: line})
	}
	for _, line := range b {
		list = append(list, Line{Kind: Added, Text: line})
	}
	return list
}

// back goes the way that was found, from its end.
func back(a, b []string, trace [][]int) (list []Line) {
	x, y := len(a), len(b)
	for d := len(trace) - 1; d >= 0; d-- {
		v, k := trace[d], x-y
		at := func(k int) int { return k + d + 1 }
		from := k - 1
		if k == -d || k != d && v[at(k-1)] < v[at(k+1)] {
			from = k + 1
		}
		toX := v[at(from)]
		toY := toX - from
		if d == 0 {
			toX, toY = 0, 0
		}
		for x > toX && y > toY {
			x, y = x-1, y-1
			list = append(list, Line{Kind: Same, Text: a[x]})
		}
		switch {
		case d == 0:
		case x == toX:
			y--
			list = append(list, Line{Kind: Added, Text: b[y]})
		default:
			x--
			list = append(list, Line{Kind: Removed, Text: a[x]})
		}
	}
	slices.Reverse(list)
	return list
}

// leaveOut leaves out the lines that both have and that are far from a difference.
func leaveOut(list []Line, context int) (short []Line) {
	near := make([]bool, len(list))
	for i, l := range list {
		if l.Kind == Same {
			continue
		}
		for k := max(0, i-context); k <= min(len(list)-1, i+context); k++ {
			near[k] = true
		}
	}
	for i, l := range list {
		n := len(short)
		switch {
		case near[i]:
			short = append(short, l)
		case n > 0 && short[n-1].Kind == Left:
			short[n-1].N++
		default:
			short = append(short, Line{Kind: Left, N: 1})
		}
	}
	return short
}
