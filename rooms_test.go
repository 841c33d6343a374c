package xxljob_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rooms are the parts of the root package, from the lowest up, each with those that it uses
// besides itself. A file belongs to the room that its name begins with: queue_lanes.go to queue.
// The files without such a name are the room "config" or, the interface, "api".
var rooms = []struct {
	name string
	uses []string
}{
	{"config", nil},
	{"lease", nil},
	{"core", []string{"config", "lease"}},
	{"plan", []string{"config", "core"}},
	{"queue", []string{"config", "lease", "core"}},
	{"events", []string{"config", "core"}},
	{"registry", []string{"config", "lease", "core"}},
	{"router", []string{"config", "lease", "core", "queue", "registry"}},
	{"runlog", []string{"config", "lease", "core", "registry"}},
	{"alarms", []string{"config", "lease", "core"}},
	{"scan", []string{"config", "lease", "core", "plan", "queue", "events"}},
	{"dispatch", []string{"config", "lease", "core", "queue", "events", "registry", "router", "runlog"}},
	{"catalog", []string{"config", "lease", "core", "plan", "events", "registry", "router"}},
	{"admin", []string{"config", "lease", "core", "registry", "dispatch", "catalog"}},
	{"node", []string{"config", "lease", "core", "queue", "events", "registry", "router", "runlog", "alarms", "scan", "dispatch", "catalog", "admin"}},
	{"api", []string{"config", "core", "registry", "alarms", "catalog", "admin", "node"}},
}

// roomOf is the room of a file.
func roomOf(file string) string {
	room, _, in := strings.Cut(strings.TrimSuffix(file, ".go"), "_")
	switch {
	case in:
		return room
	case room == "scheduler" || room == "doc":
		return "api"
	}
	return "config"
}

// TestRooms holds the arrows between the rooms: no file uses a name of a room that is not in the
// list of its own.
func TestRooms(t *testing.T) {
	uses := roomsInUse(t)
	known := map[string]bool{}
	for _, room := range rooms {
		for _, other := range room.uses {
			if !known[other] {
				t.Errorf("%s may use %s, which is not below it", room.name, other)
			}
			if uses[room.name][other] == "" {
				t.Errorf("%s uses nothing of %s: take it out of the list", room.name, other)
			}
		}
		for _, other := range slices.Sorted(maps.Keys(uses[room.name])) {
			if !slices.Contains(room.uses, other) {
				t.Errorf("%s uses %s: %s", room.name, other, uses[room.name][other])
			}
		}
		known[room.name] = true
	}
	for _, room := range slices.Sorted(maps.Keys(uses)) {
		if !known[room] {
			t.Errorf("no room has the name %s", room)
		}
	}
}

// roomsInUse type-checks the root, without its tests, by the export data of what it imports, and
// returns which room uses which, with an example.
func roomsInUse(t *testing.T) map[string]map[string]string {
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
	set, info := token.NewFileSet(), &types.Info{Uses: map[*ast.Ident]types.Object{}}
	var parsed []*ast.File
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	uses := map[string]map[string]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
		if room := roomOf(name); uses[room] == nil {
			uses[room] = map[string]string{}
		}
	}
	config := types.Config{Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	pkg, err := config.Check(module, set, parsed, info)
	if err != nil {
		t.Fatal(err)
	}
	for id, obj := range info.Uses {
		if obj.Pkg() != pkg || !obj.Pos().IsValid() {
			continue
		}
		from, to := filepath.Base(set.Position(id.Pos()).Filename), filepath.Base(set.Position(obj.Pos()).Filename)
		if a, b := roomOf(from), roomOf(to); a != b {
			uses[a][b] = from + " uses " + obj.Name() + " of " + to
		}
	}
	return uses
}

// TestAliases: a type of another package that the root names again is one whose page people can
// read, and its comment has the link.
func TestAliases(t *testing.T) {
	for _, s := range sources(t) {
		if s.pkg != "." || s.test {
			continue
		}
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, spec := range g.Specs {
				alias := spec.(*ast.TypeSpec)
				of, ok := alias.Type.(*ast.SelectorExpr)
				if !alias.Assign.IsValid() || !ok || !alias.Name.IsExported() {
					continue
				}
				name := fmt.Sprint(of.X) + "." + of.Sel.Name
				for _, im := range s.file.Imports {
					if p := strings.Trim(im.Path.Value, `"`); path.Base(p) == fmt.Sprint(of.X) && strings.Contains(p, "/internal/") {
						t.Errorf("%s is an alias of %s, whose page nobody can read", alias.Name, name)
					}
				}
				if !strings.Contains(g.Doc.Text(), "["+name+"]") {
					t.Errorf("the comment of %s lacks the link [%s]", alias.Name, name)
				}
			}
		}
	}
}
