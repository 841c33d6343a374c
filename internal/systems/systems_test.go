// Package systems has a test that the module compiles for the systems on which its tests
// do not run.
package systems

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

const module = "github.com/xxljob/xxljob"

// TestOtherSystems checks the types of all packages and their tests for Darwin and Windows,
// from source: to build them, and the standard library with them, would take two minutes.
func TestOtherSystems(t *testing.T) {
	here := build.Default
	defer func() { build.Default = here }()
	build.Default.CgoEnabled = false
	for _, system := range []string{"darwin", "windows"} {
		build.Default.GOOS = system
		fset := token.NewFileSet()
		c := &checker{t: t, system: system, fset: fset, others: importer.ForCompiler(fset, "source", nil)}
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || !d.IsDir():
				return err
			case path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || hasModule(path)):
				return filepath.SkipDir
			}
			c.directory(path)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if c.packages < 40 {
			t.Errorf("%s: %d packages were checked, and there are more", system, c.packages)
		}
	}
}

// hasModule reports whether a directory is the root of a module of its own.
func hasModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// checker checks packages for one system.
type checker struct {
	t        *testing.T
	system   string
	fset     *token.FileSet
	others   types.Importer // of packages that are not this module's
	packages int
}

// directory checks what a directory has: a package with its internal tests, and then the
// tests from outside. These see what the internal ones export to them, and so does what
// they import: all of the module is made anew around it.
func (c *checker) directory(dir string) {
	p := c.files(dir)
	if p == nil {
		return
	}
	w := &world{c: c, made: map[string]*types.Package{}}
	path := strings.TrimSuffix(module+"/"+filepath.ToSlash(strings.TrimPrefix(dir[len(root):], "/")), "/")
	w.made[path] = w.check(path, p.Dir, append(p.GoFiles, p.TestGoFiles...), true)
	if len(p.XTestGoFiles) > 0 {
		w.check(path+"_test", p.Dir, p.XTestGoFiles, true)
	}
}

// files returns which files a directory has for the system; nil for none.
func (c *checker) files(dir string) *build.Package {
	p, err := build.ImportDir(dir, 0)
	if err == nil {
		return p
	}
	if _, none := err.(*build.NoGoError); !none {
		c.t.Errorf("%s: %v", c.system, err)
	}
	return nil
}

// world is the packages of this module as one package with its tests sees them.
type world struct {
	c    *checker
	made map[string]*types.Package
}

// Import implements types.Importer.
func (w *world) Import(path string) (*types.Package, error) {
	below, ours := strings.CutPrefix(path, module)
	if !ours {
		return w.c.others.Import(path)
	}
	if w.made[path] == nil {
		dir := filepath.Join(root, filepath.FromSlash(below))
		if p := w.c.files(dir); p != nil {
			w.made[path] = w.check(path, dir, p.GoFiles, false)
		}
	}
	return w.made[path], nil
}

// check checks a package, whole or only what others see of it.
func (w *world) check(path, dir string, names []string, whole bool) *types.Package {
	c := w.c
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(c.fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			c.t.Errorf("%s: %v", c.system, err)
			continue
		}
		files = append(files, file)
	}
	config := types.Config{Importer: w, IgnoreFuncBodies: !whole}
	if whole {
		c.packages++
		config.Error = func(err error) { c.t.Errorf("%s: %v", c.system, err) }
	}
	pkg, _ := config.Check(path, c.fset, files, nil) // errors are told by the call above
	return pkg
}
