package xxljob_test

import (
	"bytes"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// house is the root package with its types, for tests of how its files depend on each
// other.
type house struct {
	set  *token.FileSet
	pkg  *types.Package
	info *types.Info
	uses map[string]map[string][]string // file → file → what of it, in order
}

// readHouse type-checks the root, without its tests, by the export data of what it imports.
func readHouse(t *testing.T) *house {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", ".")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for line := range bytes.Lines(out) {
		name, file, _ := strings.Cut(strings.TrimSpace(string(line)), "\t")
		exports[name] = file
	}
	h := &house{set: token.NewFileSet(), info: &types.Info{
		Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
	}}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(h.set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	config := types.Config{Importer: importer.ForCompiler(h.set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	if h.pkg, err = config.Check(module, h.set, files, h.info); err != nil {
		t.Fatal(err)
	}
	h.findUses()
	return h
}

func (h *house) fileOf(pos token.Pos) string { return filepath.Base(h.set.Position(pos).Filename) }

// findUses notes each name of the package, methods and fields included, where it is used in
// another file than that which declares it.
func (h *house) findUses() {
	h.uses = map[string]map[string][]string{}
	for id, obj := range h.info.Uses {
		if obj.Pkg() != h.pkg || !obj.Pos().IsValid() {
			continue
		}
		from, to := h.fileOf(id.Pos()), h.fileOf(obj.Pos())
		if from == to {
			continue
		}
		if h.uses[from] == nil {
			h.uses[from] = map[string][]string{}
		}
		if what := h.uses[from][to]; !slices.Contains(what, obj.Name()) {
			h.uses[from][to] = append(what, obj.Name())
		}
	}
	for _, to := range h.uses {
		for _, what := range to {
			slices.Sort(what)
		}
	}
}

// cycles are the sets of files that reach each other, the greatest first.
func (h *house) cycles() [][]string {
	var (
		index, low = map[string]int{}, map[string]int{}
		on         = map[string]bool{}
		stack      []string
		found      [][]string
		visit      func(string)
	)
	visit = func(f string) {
		index[f] = len(index) + 1
		low[f], on[f] = index[f], true
		stack = append(stack, f)
		for _, g := range slices.Sorted(maps.Keys(h.uses[f])) {
			if index[g] == 0 {
				visit(g)
				low[f] = min(low[f], low[g])
			} else if on[g] {
				low[f] = min(low[f], index[g])
			}
		}
		if low[f] != index[f] {
			return
		}
		at := slices.Index(stack, f)
		cycle := slices.Sorted(slices.Values(stack[at:]))
		stack = stack[:at]
		for _, g := range cycle {
			on[g] = false
		}
		if len(cycle) > 1 {
			found = append(found, cycle)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(h.uses)) {
		if index[f] == 0 {
			visit(f)
		}
	}
	slices.SortFunc(found, func(a, b []string) int { return len(b) - len(a) })
	return found
}

// The bounds are where the root is: they may only come down.
const (
	mostInACycle = 3
	mostMutual   = 6
	mostFields   = 24
	mostMethods  = 97
)

// TestHouse looks at how the files of the root depend on each other, and at how much one type
// has.
func TestHouse(t *testing.T) {
	h := readHouse(t)
	mutual := 0
	for f, to := range h.uses {
		for g := range to {
			if f < g && h.uses[g][f] != nil {
				mutual++
			}
		}
	}
	t.Logf("%d files, %d mutual pairs", len(h.uses), mutual)
	if mutual > mostMutual {
		t.Errorf("%d pairs of files use each other, want at most %d", mutual, mostMutual)
	}
	for _, cycle := range h.cycles() {
		t.Logf("a cycle of %d files", len(cycle))
		if len(cycle) > mostInACycle {
			t.Errorf("%d files are a cycle, want at most %d: %v", len(cycle), mostInACycle, cycle)
		}
	}
	scope := h.pkg.Scope()
	for _, name := range scope.Names() {
		named, ok := scope.Lookup(name).Type().(*types.Named)
		if !ok || ast.IsExported(name) {
			continue
		}
		if s, ok := named.Underlying().(*types.Struct); ok && s.NumFields() > mostFields {
			t.Errorf("%s has %d fields, want at most %d", name, s.NumFields(), mostFields)
		}
		if named.NumMethods() > mostMethods {
			t.Errorf("%s has %d methods, want at most %d", name, named.NumMethods(), mostMethods)
		}
	}
}
