package xxljob_test

import (
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// document is what the tests look at in a Markdown file.
type document struct {
	name     string
	headings []int // their levels, in order
	blocks   []codeBlock
	links    []string
}

type codeBlock struct{ language, text string }

var linkPattern = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)

func readDocument(t *testing.T, name string) document {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	d := document{name: name}
	inside := false
	for line := range strings.Lines(string(text)) {
		rest, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && !inside:
			d.blocks = append(d.blocks, codeBlock{language: rest})
			inside = true
		case fence:
			inside = false
		case inside:
			d.blocks[len(d.blocks)-1].text += line
		default:
			if level := len(line) - len(strings.TrimLeft(line, "#")); level > 0 && line[level] == ' ' {
				d.headings = append(d.headings, level)
			}
			for _, link := range linkPattern.FindAllStringSubmatch(line, -1) {
				d.links = append(d.links, link[1])
			}
		}
	}
	if inside {
		t.Errorf("%s: a code block is not closed", name)
	}
	return d
}

// TestReadmesAgree keeps the two languages equal in what can be compared.
func TestReadmesAgree(t *testing.T) {
	en, zh := readDocument(t, "README.md"), readDocument(t, "README.zh-CN.md")
	if len(en.headings) != len(zh.headings) {
		t.Fatalf("%d headings in %s, %d in %s", len(en.headings), en.name, len(zh.headings), zh.name)
	}
	for i := range en.headings {
		if en.headings[i] != zh.headings[i] {
			t.Errorf("heading %d has level %d in %s and %d in %s", i+1, en.headings[i], en.name, zh.headings[i], zh.name)
		}
	}
	if len(en.blocks) != len(zh.blocks) {
		t.Fatalf("%d code blocks in %s, %d in %s", len(en.blocks), en.name, len(zh.blocks), zh.name)
	}
	for i := range en.blocks {
		if en.blocks[i] != zh.blocks[i] {
			t.Errorf("code block %d differs:\n%s:\n%s\n%s:\n%s", i+1, en.name, en.blocks[i].text, zh.name, zh.blocks[i].text)
		}
	}
}

// TestReadmeCommands: the two commands that a newcomer needs come first.
func TestReadmeCommands(t *testing.T) {
	first := readDocument(t, "README.md").blocks[0].text
	for _, command := range []string{"go run ./examples/standalone", "make test"} {
		if !strings.Contains(first, command) {
			t.Errorf("the first code block of README.md lacks %q:\n%s", command, first)
		}
	}
}

// TestReadmeProgram: the first program of the README is the Example of this
// package, and imports one store and nothing else of ours.
func TestReadmeProgram(t *testing.T) {
	var program string
	for _, b := range readDocument(t, "README.md").blocks {
		if b.language == "go" && strings.Contains(b.text, "func main()") {
			program = b.text
			break
		}
	}
	if formatted, err := format.Source([]byte(program)); err != nil || string(formatted) != program {
		t.Errorf("the program is not formatted (%v)", err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	want, _ := bodyOf(t, string(example), "Example")
	got, file := bodyOf(t, program, "main")
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("README.md has\n%s\nand Example has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	stores := 0
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		switch pkg, ours := inModule(imported); {
		case strings.HasPrefix(pkg, "store/") && ours:
			stores++
		case !isStandard(imported) && imported != module:
			t.Errorf("the program imports %s", imported)
		}
	}
	if stores != 1 {
		t.Errorf("the program imports %d stores, want 1", stores)
	}
}

// TestReadmeFunctions: the functions of the README are those of examples, which are
// compiled; some need a database.
func TestReadmeFunctions(t *testing.T) {
	for name, file := range map[string]string{"serve": "store/postgres/example_test.go", "pay": "store/postgres/example_test.go", "deploy": "example_test.go"} {
		example, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, b := range readDocument(t, "README.md").blocks {
			if !strings.HasPrefix(b.text, "func "+name+"(") {
				continue
			}
			found = true
			got, _ := bodyOf(t, "package p\n"+b.text, name)
			want, _ := bodyOf(t, string(example), name)
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("README.md has\n%s\nand the example has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		if !found {
			t.Errorf("README.md has no function %s", name)
		}
	}
}

// bodyOf returns the lines of a function's body without their indentation, and
// without the comment that gives an example's output.
func bodyOf(t *testing.T, text, function string) ([]string, *ast.File) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != function {
			continue
		}
		inside := text[fset.Position(f.Body.Lbrace).Offset+1 : fset.Position(f.Body.Rbrace).Offset]
		var lines []string
		for line := range strings.Lines(inside) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "// Output:") {
				break
			}
			if line != "" {
				lines = append(lines, line)
			}
		}
		return lines, file
	}
	t.Fatalf("there is no function %s", function)
	return nil, nil
}

// TestLinks: what the documents point at in the repository is there.
func TestLinks(t *testing.T) {
	for _, name := range []string{"README.md", "README.zh-CN.md", "DESIGN.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/differences.md", "docs/performance.md", "docs/reliability.md", "docs/retention.md", "docs/scale.md", "docs/xxl-job.md"} {
		for _, link := range readDocument(t, name).links {
			if strings.Contains(link, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), filepath.FromSlash(link))); err != nil {
				t.Errorf("%s: link to %s: %v", name, link, err)
			}
		}
	}
}
