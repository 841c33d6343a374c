package xxljob_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/internal/test/stage"
)

// namedFile is a Go file that a comment or a page names, with as many folders before it as are said.
var namedFile = regexp.MustCompile(`[\w./-]*\w\.go\b`)

// TestFilesThatAreNamedAreThere: comments and pages send nobody to a file that has moved, or has another name
// by now. Blocks of code on pages are left out, for they show what somebody else would write.
func TestFilesThatAreNamedAreThere(t *testing.T) {
	if stage.Detector {
		t.Skip("it reads sources: the race detector has nothing to say of it")
	}
	there := map[string]bool{} // files, by every ending of their paths
	var pages []string
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch base := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (base == "bin" || base[0] == '.'):
			return fs.SkipDir
		case strings.HasSuffix(base, ".md") && base != "CHANGELOG.md":
			pages = append(pages, name)
		case strings.HasSuffix(base, ".go"):
			parts := strings.Split(filepath.ToSlash(name), "/")
			for i := range parts {
				there[path.Join(parts[i:]...)] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	look := func(where, text string) {
		for _, name := range namedFile.FindAllString(text, -1) {
			name = strings.TrimLeft(name, "./")
			if named++; !there[name] {
				t.Errorf("%s names %s, which is not there", where, name)
			}
		}
	}
	for _, s := range sources(t) {
		for _, group := range s.file.Comments {
			look(s.name, group.Text())
		}
	}
	for _, name := range pages {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		inside := false
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				inside = !inside
			} else if !inside {
				look(name, line)
			}
		}
	}
	if named < 100 {
		t.Errorf("only %d names were found", named)
	}
}
