package xxljob_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"regexp"
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

// TestThePathOfARun: the files that the comment of room node lists, in the order in which a run
// passes them, are there.
func TestThePathOfARun(t *testing.T) {
	text, err := os.ReadFile("internal/engine/node/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	files := regexp.MustCompile(`(?m)^//\t(\w+/\w+\.go) `).FindAllSubmatch(text, -1)
	if len(files) == 0 {
		t.Fatal("there is no list")
	}
	for _, f := range files {
		name := string(f[1])
		if !strings.HasPrefix(name, "store/") {
			name = "internal/engine/" + name
		}
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
}
