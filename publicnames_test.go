package xxljob_test

// What a reader of the package meets: how many names, and how long a text.

import (
	"bytes"
	"go/ast"
	"os"
	"os/exec"
	"testing"
)

// The bounds of what the root shows.
const (
	mostNames     = 201 // package-level names: 150, the seven of retries, the nine of what follows a success, fourteen for consoles and dashboards, the seven of logs that outlive their executors, the four of the record of changes, two for runs that are dropped, three for those who watch a node, one for tracers, three for the users of a console, and one for what is wrong with a schedule
	mostDocLines  = 253 // of go doc: a line a name, and what belongs to types
	mostTextLines = 120 // of the package comment
)

func TestPublicNames(t *testing.T) {
	h := readHouse(t)
	var names []string
	for _, name := range h.pkg.Scope().Names() {
		if ast.IsExported(name) {
			names = append(names, name)
		}
	}
	if len(names) > mostNames {
		t.Errorf("the package has %d exported names, at most %d: %q", len(names), mostNames, names)
	}
	t.Logf("%d names", len(names))
}

func TestPackageComment(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n > mostTextLines {
		t.Errorf("the package comment has %d lines, at most %d", n, mostTextLines)
	}
	shown, err := exec.Command("go", "doc", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(shown, []byte("\n")); n > mostDocLines {
		t.Errorf("go doc . prints %d lines, at most %d", n, mostDocLines)
	}
	t.Logf("go doc . prints %d lines", bytes.Count(shown, []byte("\n")))
}
