//go:build unix

package chaos

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
	"github.com/xxljob/xxljob/internal/test/pgtest"
)

// TestMain has CI run none of these tests again that has failed: it looks for that line.
func TestMain(m *testing.M) {
	code := m.Run()
	if dir := nodeDir.Load(); dir != nil {
		_ = os.RemoveAll(*dir)
	}
	if code != 0 {
		fmt.Println("audited: not run again")
	}
	os.Exit(code)
}

var (
	// node is the node program, which is built once for all tests. None of them steps its clock or
	// arms a failpoint: the standard library would be built anew for the one, and whatever uses a
	// store for the other.
	node = sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "chaos-node-")
		if err != nil {
			return "", err
		}
		nodeDir.Store(&dir)
		return goBuild(dir)
	})
	nodeDir atomic.Pointer[string]
)

// built is the node program.
func built(t *testing.T) string {
	t.Helper()
	program, err := node()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// lines writes what a run prints to the test's log.
type lines struct{ t *testing.T }

func (l lines) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// TestBrief runs the brief form: each fault of the short one, once or twice.
func TestBrief(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes more than a minute; leave out -short")
	}
	t.Parallel()
	pgtest.DSN(t) // skips, or fails, where there is no Postgres
	if err := Run(t.Context(), Config{Brief: true, program: built(t), Out: lines{t}}); err != nil {
		t.Fatal(err)
	}
}

// TestMemory runs the machinery itself over one node with its store in memory.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute; leave out -short")
	}
	t.Parallel()
	if err := Run(t.Context(), Config{Memory: true, program: built(t), Out: lines{t}}); err != nil {
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

// TestRoutesOfTheWorkload: each strategy has a serial job, due every second, whose
// runs nothing but a fault makes late.
func TestRoutesOfTheWorkload(t *testing.T) {
	names := strategies(t)
	if len(names) != len(routes()) {
		t.Errorf("package route has %d strategies, the workload %d", len(names), len(routes()))
	}
	for _, alone := range []bool{true, false} {
		for _, name := range names {
			if !slices.ContainsFunc(definitions(alone), func(d control.Job) bool {
				return d.Route == name && d.Kind == control.Cron && d.Period == 1000 && prompt(d)
			}) {
				t.Errorf("%s has none, where the cluster's having the machine to itself is %v", name, alone)
			}
		}
	}
}

// strategies reads the names in package route, which is not for this one to import.
func strategies(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../../route/route.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
			for _, s := range g.Specs {
				name, err := strconv.Unquote(s.(*ast.ValueSpec).Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, name)
			}
		}
	}
	return names
}

// TestStages: what is held against the clock has the machine to itself.
func TestStages(t *testing.T) {
	c := Config{}.withDefaults()
	all := stages(group(catalogue(c)))
	var got []string
	for _, stage := range all[:4] {
		for _, u := range stage {
			got = append(got, u[0].unit)
			for _, f := range u {
				if f.lease != u[0].lease || f.pool != u[0].pool || f.bare != u[0].bare {
					t.Errorf("%s and %s share a cluster, and have other lease modes or pools", f.name, u[0].name)
				}
			}
		}
	}
	if len(all) != 5 || strings.Join(got, " ") != "processes routes-lock routes-row pool pool without reserve failpoints" {
		t.Errorf("%d stages, the first four of %v", len(all), got)
	}
}

// TestToldOnce counts the alarms that one sink only has accepted, however often.
func TestToldOnce(t *testing.T) {
	told := func(ids ...int64) (list []audit.Told) {
		for _, id := range ids {
			list = append(list, audit.Told{Alarm: id})
		}
		return list
	}
	if n := toldOnce(told(1, 2, 2, 3), told(3, 4, 1)); n != 2 {
		t.Errorf("%d alarms are told once, want 2", n)
	}
}
