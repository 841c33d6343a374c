// Package systems has a test that the module compiles for the systems on which its tests
// do not run.
package systems

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const module = "github.com/xxljob/xxljob"

// TestOtherSystems checks the types of all packages and their tests for Darwin and Windows,
// from source, but not those of other modules: to build them, and the standard library with them, would take two minutes.
func TestOtherSystems(t *testing.T) {
	for _, system := range []string{"darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			c := &checker{t: t, fset: token.NewFileSet(), listed: list(t, system), others: map[string]*types.Package{}}
			for path, p := range c.listed {
				if isOurs(path) {
					c.whole(p)
				}
			}
			if c.packages < 40 {
				t.Errorf("%d packages were checked, and there are more", c.packages)
			}
		})
	}
}

// isOurs reports whether a package is of this module.
func isOurs(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

// listed is what go list tells of a package.
type listed struct {
	Dir, ImportPath, ForTest           string
	GoFiles, TestGoFiles, XTestGoFiles []string
}

// list returns the packages of this module, and all that they and their tests import, with
// the files that they have for a system.
func list(t *testing.T, system string) map[string]*listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-test", "-json=Dir,ImportPath,ForTest,GoFiles,TestGoFiles,XTestGoFiles", module+"/...")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOOS="+system, "GOARCH="+runtime.GOARCH, "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	all := map[string]*listed{}
	for from := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := new(listed)
		if err := from.Decode(p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ForTest == "" && !strings.HasSuffix(p.ImportPath, ".test") {
			all[p.ImportPath] = p
		}
	}
}

// checker checks packages for one system.
type checker struct {
	t        *testing.T
	fset     *token.FileSet
	listed   map[string]*listed
	others   map[string]*types.Package // that are not of this module
	packages int
}

// whole checks a package with its internal tests, and then the tests from outside. These
// see what the internal ones export to them, and so does what they import: all of the
// module is made anew around it.
func (c *checker) whole(p *listed) {
	w := &world{c, map[string]*types.Package{}}
	w.ours[p.ImportPath] = w.check(p.ImportPath, p.Dir, append(p.GoFiles, p.TestGoFiles...), true)
	if len(p.XTestGoFiles) > 0 {
		w.check(p.ImportPath+"_test", p.Dir, p.XTestGoFiles, true)
	}
}

// world is all packages as one package with its tests sees them.
type world struct {
	*checker
	ours map[string]*types.Package
}

// Import implements types.Importer.
func (w *world) Import(path string) (*types.Package, error) { return w.ImportFrom(path, "", 0) }

// ImportFrom implements types.ImporterFrom. The standard library has its own copies of
// packages of others.
func (w *world) ImportFrom(path, dir string, _ types.ImportMode) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	p := w.listed[path]
	if own := w.listed["vendor/"+path]; own != nil && strings.HasPrefix(dir, filepath.Dir(w.listed["fmt"].Dir)) {
		p = own
	}
	if p == nil {
		return nil, errors.New("go list does not know it")
	}
	made := w.others
	if isOurs(p.ImportPath) {
		made = w.ours
	}
	if made[p.ImportPath] == nil {
		made[p.ImportPath] = w.check(p.ImportPath, p.Dir, p.GoFiles, false)
	}
	return made[p.ImportPath], nil
}

// check checks a package, all of it or only what others see of it.
func (w *world) check(path, dir string, names []string, all bool) *types.Package {
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(w.fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			w.t.Error(err)
			continue
		}
		files = append(files, file)
	}
	config := types.Config{Importer: w, IgnoreFuncBodies: !all, Error: func(err error) {
		if all || !isOurs(path) { // else it is told where all of that package is checked
			w.t.Error(err)
		}
	}}
	if all {
		w.packages++
	}
	pkg, _ := config.Check(path, w.fset, files, nil) // errors are told by the call above
	return pkg
}
