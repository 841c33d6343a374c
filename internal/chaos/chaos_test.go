//go:build unix

package chaos

import (
	"strings"
	"testing"

	"github.com/xxljob/xxljob/internal/pgtest"
)

// lines writes what a run prints to the test's log.
type lines struct{ t *testing.T }

func (l lines) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// TestShort runs the short form: twenty kills, three pauses and two crashes of the
// database.
func TestShort(t *testing.T) {
	if testing.Short() {
		pgtest.Skip(t, "it takes more than a minute; leave out -short")
	}
	t.Parallel()
	pgtest.DSN(t) // skips, or fails, where there is no Postgres
	if err := Run(t.Context(), Config{Short: true, Out: lines{t}}); err != nil {
		t.Fatal(err)
	}
}

// TestMemory runs the machinery itself over one node with its store in memory.
func TestMemory(t *testing.T) {
	if testing.Short() {
		pgtest.Skip(t, "it takes half a minute; leave out -short")
	}
	t.Parallel()
	if err := Run(t.Context(), Config{Memory: true, Out: lines{t}}); err != nil {
		t.Fatal(err)
	}
}

// TestCatalogue looks up every fault by its name.
func TestCatalogue(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range Names() {
		if seen[name] {
			t.Errorf("two faults have the name %q", name)
		}
		seen[name] = true
	}
	c := Config{Faults: Names()}.withDefaults()
	if all, err := c.choose(); err != nil || len(all) != len(seen) {
		t.Errorf("%d of %d faults: %v", len(all), len(seen), err)
	}
	c.Faults = []string{"earthquake"}
	if _, err := c.choose(); err == nil || !strings.Contains(err.Error(), "sigkill") {
		t.Errorf("an unknown fault: %v", err)
	}
}
