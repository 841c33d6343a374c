package stage

import (
	"context"
	"testing"

	"github.com/xxljob/xxljob/internal/test/asker"
	"github.com/xxljob/xxljob/internal/urgent"
)

// CheckDuties returns an observer of a scheduler's calls that has each of them say to the
// store whose it is.
func CheckDuties(t *testing.T) func(context.Context, string) {
	by := asker.Table()
	return func(ctx context.Context, method string) {
		if marked := urgent.Marked(ctx); marked && by[method] == asker.Others || !marked && by[method] == asker.Loops {
			t.Errorf("%s is called with a context that is marked as a duty: %v", method, marked)
		}
	}
}
