package duty_test

import (
	"context"
	"testing"

	"github.com/xxljob/xxljob/internal/duty"
)

// TestMarks: a call is a duty by the last that was said of its context.
func TestMarks(t *testing.T) {
	host := t.Context()
	bounded, cancel := context.WithCancel(duty.Mark(host))
	defer cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		want bool
	}{
		"a host's":                       {host, false},
		"marked":                         {duty.Mark(host), true},
		"made of a marked one":           {bounded, true},
		"of a call that is seen through": {context.WithoutCancel(bounded), true},
		"marked, and then for the user":  {duty.Unmark(bounded), false},
		"of the user's, and then marked": {duty.Mark(duty.Unmark(host)), true},
	} {
		if got := duty.Marked(c.ctx); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
