package catalog_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/internal/engine/catalog"
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

// BenchmarkLinks saves a list of 4,000 jobs in a chain, and one of 4,000 in a ring, which is
// refused.
//
//	go test -run '^$' -bench Links -benchtime 3x -benchmem .
func BenchmarkLinks(b *testing.B) {
	for _, ring := range []bool{false, true} {
		b.Run(fmt.Sprint("ring=", ring), func(b *testing.B) {
			const n = 4000
			next := map[string][]string{}
			for i := range n {
				if i < n-1 || ring {
					next[fmt.Sprint("app/k", i)] = []string{fmt.Sprint("app/k", (i+1)%n)}
				}
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
