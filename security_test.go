package xxljob_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/internal/test/stage"
)

const securityFile = "SECURITY.md"

// tableRows returns the rows of the table below a heading, without its head and without
// rows that only name a part of it.
func tableRows(t *testing.T, name, heading string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, below, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", name, heading)
	}
	below, _, _ = strings.Cut(below, "\n## ")
	for line := range strings.Lines(below) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "| ")
		if !ok {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, "|"), "|")
		if strings.HasPrefix(line, "**") && strings.TrimSpace(strings.Join(cells[1:], "")) == "" {
			continue
		}
		rows = append(rows, cells)
	}
	if len(rows) < 2 {
		t.Fatalf("%s has no table under %q", name, heading)
	}
	return rows[1:]
}

var (
	testName    = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`")
	fieldName   = regexp.MustCompile("`(?:([a-z]+)\\.)?((?:[A-Z][A-Za-z]*)?Config)\\.([A-Z][A-Za-z]*)(?:\\[[^`]*\\])?`")
	placeholder = regexp.MustCompile(`\b(TEST|KNOB)-\w+`)
)

// TestAttacksHaveTests: each attack of SECURITY.md names tests, and they are there.
func TestAttacksHaveTests(t *testing.T) {
	if stage.Detector {
		t.Skip("it reads sources and a text: the race detector has nothing to say of it")
	}
	tests := testsOf(t, "otelxxl")
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				tests[f.Name.Name] = true
			}
		}
	}
	for _, row := range tableRows(t, securityFile, "Attacks, and what stops them") {
		if len(row) != 3 {
			t.Errorf("%d cells, want 3: %s", len(row), row)
			continue
		}
		named := testName.FindAllStringSubmatch(row[2], -1)
		if len(named) == 0 {
			t.Errorf("no test is named for: %s", row[0])
		}
		for _, m := range named {
			if !tests[m[1]] {
				t.Errorf("there is no %s, which is named for: %s", m[1], row[0])
			}
		}
	}
}

// testsOf are the tests of a module beside this one.
func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(names) == 0 {
		t.Fatal(dir, "has no tests", err)
	}
	tests := map[string]bool{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
	}
	return tests
}

// TestSecurityNamesWhatThereIs: the fields that SECURITY.md names are there, and nothing
// in it is left to be filled in.
func TestSecurityNamesWhatThereIs(t *testing.T) {
	if stage.Detector {
		t.Skip("it reads sources and a text: the race detector has nothing to say of it")
	}
	text, err := os.ReadFile(securityFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range placeholder.FindAllString(string(text), -1) {
		t.Errorf("%s is to be filled in", left)
	}
	fields := configFields(t)
	named := fieldName.FindAllStringSubmatch(string(text), -1)
	if len(named) < 20 {
		t.Errorf("only %d fields of configurations are found", len(named))
	}
	for _, m := range named {
		pkg := m[1]
		if pkg == "" {
			pkg = "xxljob"
		}
		if field := pkg + "." + m[2] + "." + m[3]; !fields[field] {
			t.Errorf("there is no %s", field)
		}
	}
}

// configFields are the exported fields of all structs named …Config, by package.
func configFields(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !strings.HasSuffix(spec.Name.Name, "Config") {
				return true
			}
			if typ, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range typ.Fields.List {
					for _, name := range f.Names {
						found[s.file.Name.Name+"."+spec.Name.Name+"."+name.Name] = true
					}
				}
			}
			return true
		})
	}
	return found
}

// TestServersHaveBounds: each server that an example or a program of ours starts bounds headers,
// bodies, answers and idle connections.
func TestServersHaveBounds(t *testing.T) {
	if stage.Detector {
		t.Skip("it reads sources: the race detector has nothing to say of it")
	}
	fields, servers := []string{"ReadHeaderTimeout", "ReadTimeout", "WriteTimeout", "IdleTimeout", "MaxHeaderBytes"}, 0
	for _, dir := range []string{"examples", "cmd", "executor"} {
		err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if f, ok := call.Fun.(*ast.SelectorExpr); ok && isName(f.X, "http") && (strings.HasPrefix(f.Sel.Name, "ListenAndServe") || strings.HasPrefix(f.Sel.Name, "Serve") && f.Sel.Name != "ServeContent" && f.Sel.Name != "ServeFile") {
						t.Errorf("%s: http.%s has no bounds", name, f.Sel.Name)
					}
				}
				lit, ok := n.(*ast.CompositeLit)
				if !ok {
					return true
				}
				if of, ok := lit.Type.(*ast.SelectorExpr); !ok || !isName(of.X, "http") || of.Sel.Name != "Server" {
					return true
				}
				servers++
				has := map[string]bool{}
				for _, e := range lit.Elts {
					if pair, ok := e.(*ast.KeyValueExpr); ok {
						has[pair.Key.(*ast.Ident).Name] = true
					}
				}
				for _, f := range fields {
					if !has[f] {
						t.Errorf("%s: a server without %s", name, f)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if servers < 9 {
		t.Errorf("%d servers were found", servers)
	}
}

func isName(e ast.Expr, name string) bool {
	ident, ok := e.(*ast.Ident)
	return ok && ident.Name == name
}
