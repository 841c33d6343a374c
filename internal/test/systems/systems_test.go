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
	if testing.Short() {
		t.Skip("it checks the types of the module and of all it imports; leave out -short")
	}
	read := &sources{token.NewFileSet(), map[string]*ast.File{}}
	for _, system := range []string{"darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			c := &checker{t: t, sources: read, listed: list(t, system), shared: map[string]*types.Package{}, needs: map[[2]string]bool{}}
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
	Dir, ImportPath, ForTest                    string
	GoFiles, TestGoFiles, XTestGoFiles, Imports []string
}

// list returns the packages of this module, and all that they and their tests import, with
// the files that they have for a system.
func list(t *testing.T, system string) map[string]*listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-test", "-json=Dir,ImportPath,ForTest,GoFiles,TestGoFiles,XTestGoFiles,Imports", module+"/...")
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

// sources are the files of both systems, which have most in common.
type sources struct {
	fset  *token.FileSet
	files map[string]*ast.File
}

func (s *sources) parse(name string) (*ast.File, error) {
	if file := s.files[name]; file != nil {
		return file, nil
	}
	file, err := parser.ParseFile(s.fset, name, nil, parser.SkipObjectResolution)
	if err == nil {
		s.files[name] = file
	}
	return file, err
}

// checker checks packages for one system.
type checker struct {
	*sources
	t        *testing.T
	listed   map[string]*listed
	shared   map[string]*types.Package // without their tests
	needs    map[[2]string]bool        // whether one package of this module imports the other, by whatever way
	packages int
}

// whole checks a package with its internal tests, and then the tests from outside. These
// see what the internal ones export to them, and so does what they import: all that imports
// the package is made anew around it.
func (c *checker) whole(p *listed) {
	w := &world{checker: c}
	if len(p.TestGoFiles) == 0 {
		_, _ = w.Import(p.ImportPath) // it tells of errors itself
	} else {
		w.around, w.ours = p.ImportPath, map[string]*types.Package{}
		w.ours[p.ImportPath] = w.check(p.ImportPath, p.Dir, append(p.GoFiles, p.TestGoFiles...), true)
	}
	if len(p.XTestGoFiles) > 0 {
		w.check(p.ImportPath+"_test", p.Dir, p.XTestGoFiles, true)
	}
	c.packages++
}

// imports reports whether a package is the other, or imports it by whatever way.
func (c *checker) imports(path, other string) bool {
	if path == other {
		return true
	}
	key := [2]string{path, other}
	is, known := c.needs[key]
	if !known && isOurs(path) && c.listed[path] != nil {
		for _, next := range c.listed[path].Imports {
			is = is || c.imports(next, other)
		}
		c.needs[key] = is
	}
	return is
}

// world is all packages as one package with its tests sees them.
type world struct {
	*checker
	around string                    // the package that has tests inside; empty where there are none
	ours   map[string]*types.Package // those that import it
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
	if w.around != "" && w.imports(p.ImportPath, w.around) {
		if w.ours[p.ImportPath] == nil {
			w.ours[p.ImportPath] = w.check(p.ImportPath, p.Dir, p.GoFiles, false)
		}
		return w.ours[p.ImportPath], nil
	}
	if w.shared[p.ImportPath] == nil {
		plain := &world{checker: w.checker}
		// One without tests inside is checked here, and not again by whole.
		w.shared[p.ImportPath] = plain.check(p.ImportPath, p.Dir, p.GoFiles, isOurs(p.ImportPath) && len(p.TestGoFiles) == 0)
	}
	return w.shared[p.ImportPath], nil
}

// check checks a package, all of it or only what others see of it.
func (w *world) check(path, dir string, names []string, all bool) *types.Package {
	var files []*ast.File
	for _, name := range names {
		file, err := w.parse(filepath.Join(dir, name))
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
	pkg, _ := config.Check(path, w.fset, files, nil) // errors are told by the call above
	return pkg
}
