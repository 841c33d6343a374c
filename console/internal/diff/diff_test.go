package diff_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/console/internal/diff"
)

// said is a comparison as a person writes it.
func said(list []diff.Line) string {
	var out []string
	for _, l := range list {
		if l.Kind == diff.Left {
			out = append(out, fmt.Sprintf("…%d", l.N))
			continue
		}
		out = append(out, map[diff.Kind]string{diff.Same: " ", diff.Removed: "-", diff.Added: "+"}[l.Kind]+l.Text)
	}
	return strings.Join(out, "|")
}

func TestLines(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{"", "", ""},
		{"", "a", "+a"},
		{"a\n", "", "-a"},
		{"a", "a\n", "…1"},
		{"a\nb\nc", "a\nx\nc", " a|-b|+x| c"},
		{"a\nb\nc\nd\ne", "a\nb\nc\nd\nE", "…3| d|-e|+E"},
		{"a\nb", "b\na", "-a| b|+a"},
		{"a\nb\nc\na\nb\nb\na", "c\nb\na\nb\na\nc", "-a|-b| c|+b| a| b|-b| a|+c"},
		{"1\n2\n3\n4\n5\n6\n7", "0\n1\n2\n3\n4\n5\n6\n8", "+0| 1|…4| 6|-7|+8"},
		{"a\n\nb", "a\nb", " a|-| b"},
		{"中\n文", "中\n国", " 中|-文|+国"},
	} {
		got, ok := diff.Lines(c.before, c.after, 1)
		if !ok || said(got) != c.want {
			t.Errorf("%q, %q: %s, want %s", c.before, c.after, said(got), c.want)
		}
	}
}

func TestLinesThatAreTooMany(t *testing.T) {
	if _, ok := diff.Lines(strings.Repeat("a\n", diff.MostLines), "b\n", 3); ok {
		t.Error("compared")
	}
	if got, ok := diff.Lines(strings.Repeat("a\n", diff.MostLines-1), "b\n", 3); !ok || len(got) != diff.MostLines {
		t.Errorf("%d lines, %v", len(got), ok)
	}
}

// TestLinesGiveBothTexts: from a comparison without anything left out both texts can be made.
func TestLinesGiveBothTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		text := func() string {
			var b strings.Builder
			for range r.IntN(30) {
				b.WriteString(string(rune('a'+r.IntN(4))) + "\n")
			}
			return b.String()
		}
		before, after := text(), text()
		list, _ := diff.Lines(before, after, 1000)
		var was, is strings.Builder
		for _, l := range list {
			if l.Kind != diff.Added && l.Kind != diff.Left {
				was.WriteString(l.Text + "\n")
			}
			if l.Kind != diff.Removed && l.Kind != diff.Left {
				is.WriteString(l.Text + "\n")
			}
		}
		if before != after && (was.String() != before || is.String() != after) {
			t.Fatalf("%q, %q: %s", before, after, said(list))
		}
	}
}
