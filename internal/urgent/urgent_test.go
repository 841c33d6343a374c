package urgent_test

import (
	"context"
	"testing"

	"github.com/xxljob/xxljob/internal/urgent"
)

// TestMarks: a call is urgent by the last that was said of its context.
func TestMarks(t *testing.T) {
	host := t.Context()
	bounded, cancel := context.WithCancel(urgent.Mark(host))
	defer cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		want bool
	}{
		"a host's":                       {host, false},
		"marked":                         {urgent.Mark(host), true},
		"made of a marked one":           {bounded, true},
		"of a call that is seen through": {context.WithoutCancel(bounded), true},
		"marked, and then for the user":  {urgent.Unmark(bounded), false},
		"of the user's, and then marked": {urgent.Mark(urgent.Unmark(host)), true},
	} {
		if got := urgent.Marked(c.ctx); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
