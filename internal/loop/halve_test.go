package loop_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
)

func TestHalve(t *testing.T) {
	for n := range 20 {
		for _, poisoned := range [][]int{nil, {0}, {n - 1}, {n / 2, n / 3}, {0, 1, 2, 3}} {
			var items, done, want []int
			for i := range n {
				items = append(items, i)
				if slices.Contains(poisoned, i) {
					want = append(want, i)
				}
			}
			refused, why, err := loop.Halve(items, func(part []int) error {
				if slices.ContainsFunc(part, func(i int) bool { return slices.Contains(poisoned, i) }) {
					return fmt.Errorf("no: %w", errs.ErrRefused)
				}
				done = append(done, part...)
				return nil
			})
			if !slices.Equal(refused, want) || err != nil || (why != nil) != (len(want) > 0) || len(done)+len(refused) != n || !slices.IsSorted(done) {
				t.Errorf("%d items of which %v are poisoned: refused %v (%v), done %v, error %v", n, poisoned, refused, why, done, err)
			}
		}
	}
	away := errors.New("away")
	calls := 0
	_, _, err := loop.Halve([]int{1, 2, 3, 4}, func([]int) error {
		if calls++; calls == 1 {
			return errs.ErrRefused
		}
		return away
	})
	if err != away || calls != 2 {
		t.Errorf("an error that is no refusal: %v after %d calls", err, calls)
	}
}
