package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/internal/engine/catalog"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
)

// TestCyclesAreThoseWhoReachThemselves: of random graphs exactly those nodes are said to follow
// from themselves that do, and of a short way round each step is one of the graph.
func TestCyclesAreThoseWhoReachThemselves(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		n, next := 1+rnd.IntN(9), map[string][]string{}
		reach := make([][]bool, n)
		name := func(i int) string { return fmt.Sprint("n", i) }
		for i := range n {
			reach[i] = make([]bool, n)
		}
		for range rnd.IntN(2 * n) {
			a, b := rnd.IntN(n), rnd.IntN(n)
			reach[a][b] = true
			next[name(a)] = append(next[name(a)], name(b))
		}
		edge := func(a, b string) bool { return strings.Contains(" "+strings.Join(next[a], " ")+" ", " "+b+" ") }
		for k := range n {
			for i := range n {
				for j := range n {
					reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
				}
			}
		}
		through := catalog.Cycles(next)
		for i := range n {
			said := through(name(i))
			if (said != "") != reach[i][i] {
				t.Errorf("seed %d: %v: of %s it is said %q, and it reaches itself: %v", seed, next, name(i), said, reach[i][i])
			}
			steps := strings.Split(said, " > ")
			if said == "" || strings.Contains(said, "more") {
				continue
			}
			if steps[0] != steps[len(steps)-1] || i < 8 && steps[0] != name(i) {
				t.Errorf("seed %d: %v: the way round of %s is %q", seed, next, name(i), said)
			}
			for s := range steps[1:] {
				if !edge(steps[s], steps[s+1]) {
					t.Errorf("seed %d: %v: the way round of %s is %q", seed, next, name(i), said)
				}
			}
		}
	}
}

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

// BenchmarkLinks saves a list of 4,000 jobs in a chain, and one of 4,000 in a ring, which is
// refused.
//
//	go test -run '^$' -bench Links -benchtime 3x -benchmem .
func BenchmarkLinks(b *testing.B) {
	for _, ring := range []bool{false, true} {
		b.Run(fmt.Sprint("ring=", ring), func(b *testing.B) {
			next := map[string][]string{}
			for _, j := range chained(4000, ring) {
				next["app/"+j.Key] = j.ChildKeys
			}
			for b.Loop() {
				through := catalog.Cycles(next)
				for node := range next {
					if (through(node) != "") != ring {
						b.Fatal(node)
					}
				}
			}
		})
	}
}
