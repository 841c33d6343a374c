package xxljob_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
)

// TestNodesSayWhatTheyAre: each node says in the store of which release it is, and how far the store's clock is
// ahead of its own, anew when that has moved.
func TestNodesSayWhatTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		ahead := 5 * time.Second
		st.GoBy(func() time.Time { return time.Now().Add(ahead) })
		for _, node := range []string{"a", "b"} {
			s, err := xxljob.New(st, xxljob.Config{App: "app", Node: node, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Stop(t.Context()) }()
		}
		check := func(want time.Duration) {
			t.Helper()
			v, err := st.View(t.Context())
			if err != nil || len(v.Nodes) != 2 {
				t.Fatalf("nodes %+v, %v", v.Nodes, err)
			}
			for _, n := range v.Nodes {
				if n.Version == "" || (n.ClockOffset-want).Abs() > 500*time.Millisecond {
					t.Errorf("node %s is of release %q, its store %v ahead, want %v", n.ID, n.Version, n.ClockOffset, want)
				}
			}
		}
		time.Sleep(time.Minute)
		check(5 * time.Second)
		st.GoBy(func() time.Time { return time.Now().Add(2 * ahead) })
		time.Sleep(time.Minute)
		check(10 * time.Second)
	})
}
