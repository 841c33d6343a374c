package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
)

// chained is a list of jobs of which each leads to the next, and the last to the first where it
// is a ring.
func chained(n int, ring bool) (jobs []xxljob.Job) {
	for i := range n {
		j := xxljob.Job{Key: fmt.Sprint("k", i), Name: fmt.Sprint("k", i), Handler: "h"}
		if i < n-1 || ring {
			j.ChildKeys = []string{fmt.Sprintf("app/k%d", (i+1)%n)}
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// TestLongChainsAndRings: a chain of thousands may be saved, and a ring is refused job by job
// with a text that names few of them.
func TestLongChainsAndRings(t *testing.T) {
	s, err := xxljob.New(memory.New(), xxljob.Config{App: "app", Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.EnsureJobs(context.Background(), "", chained(4000, false), xxljob.EnsureOptions{}); err != nil {
		t.Errorf("a chain: %v", err)
	}
	_, err = s.EnsureJobs(context.Background(), "", chained(1000, true), xxljob.EnsureOptions{})
	if !errors.Is(err, xxljob.ErrCycle) {
		t.Fatalf("a ring: %v, want ErrCycle", err)
	}
	text := err.Error()
	if n := strings.Count(text, "each of these leads to the next"); n != 1000 || len(text) > 400_000 {
		t.Errorf("a ring of 1,000: %d errors, %d bytes", n, len(text))
	}
	if want := "app/k500 > app/k501 > app/k502 > app/k503 > 993 more > app/k497 > app/k498 > app/k499 > app/k500"; !strings.Contains(text, want) {
		t.Errorf("the text has no %q", want)
	}
}
