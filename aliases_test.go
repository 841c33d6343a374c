package xxljob_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/internal/test/stage"
)

// TestAliases: a type of another package that the root names again is one whose page people can
// read, and its comment has the link.
func TestAliases(t *testing.T) {
	if stage.Detector {
		t.Skip("it reads sources: the race detector has nothing to say of it")
	}
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

// TestThePathOfARun: the files that the comment of room node lists are there. The path itself, in the
// order in which a run passes them, is short: 14 files of 6 packages; what branches off is listed
// behind it.
func TestThePathOfARun(t *testing.T) {
	text, err := os.ReadFile("internal/engine/node/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	path, branches, found := strings.Cut(string(text), "// # What branches off\n")
	branches, _, _ = strings.Cut(branches, "// # Heartbeat\n")
	if !found {
		t.Fatal("there is no list of what branches off")
	}
	listed := func(text string) (files []string) {
		for _, f := range regexp.MustCompile(`(?m)^//\t([\w/]+\.go) `).FindAllStringSubmatch(text, -1) {
			name := f[1]
			if _, err := os.Stat("internal/engine/" + name); err == nil {
				name = "internal/engine/" + name
			} else if _, err := os.Stat(name); err != nil {
				t.Error(err)
			}
			files = append(files, name)
		}
		return files
	}
	packages := map[string]bool{}
	spine := listed(path)
	for _, name := range spine {
		packages[filepath.Dir(name)] = true
	}
	if len(spine) == 0 || len(spine) > 14 || len(packages) > 6 {
		t.Errorf("the path has %d files of %d packages, want at most 14 of 6", len(spine), len(packages))
	}
	for _, name := range listed(branches) {
		if slices.Contains(spine, name) {
			t.Errorf("%s is of the path, and branches off it", name)
		}
	}
	if others := listed(branches); len(others) < 20 {
		t.Errorf("only %d files branch off", len(others))
	}
}
