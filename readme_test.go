package xxljob_test

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// document is what the tests look at in a Markdown file.
type document struct {
	name     string
	sections []section
	links    []link
}

// section is a heading and what stands under it, down to the next heading of any level.
type section struct {
	level  int
	title  string
	blocks []codeBlock
}

type codeBlock struct{ language, text string }

// link is a target and, behind its #, an anchor; an empty target is the document itself.
type link struct{ target, anchor string }

var linkPattern = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)

func readDocument(t *testing.T, name string) document {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	d := document{name: name, sections: []section{{}}} // what stands before the first heading
	inside := false
	for line := range strings.Lines(string(text)) {
		rest, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		under := &d.sections[len(d.sections)-1]
		switch {
		case fence && !inside:
			under.blocks = append(under.blocks, codeBlock{language: rest})
			inside = true
		case fence:
			inside = false
		case inside:
			under.blocks[len(under.blocks)-1].text += line
		default:
			if level := len(line) - len(strings.TrimLeft(line, "#")); level > 0 && line[level] == ' ' {
				d.sections = append(d.sections, section{level: level, title: strings.TrimSpace(line[level:])})
			}
			for _, found := range linkPattern.FindAllStringSubmatch(line, -1) {
				d.links = append(d.links, link{target: found[1], anchor: found[2]})
			}
		}
	}
	if inside {
		t.Errorf("%s: a code block is not closed", name)
	}
	return d
}

// blocks are the code blocks of a document, in order.
func (d document) blocks() (all []codeBlock) {
	for _, s := range d.sections {
		all = append(all, s.blocks...)
	}
	return all
}

// anchors are what links to the headings of a document end in, as GitHub makes them: without
// signs, and numbered where a heading comes again.
func (d document) anchors() map[string]bool {
	all, times := map[string]bool{}, map[string]int{}
	for _, s := range d.sections {
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsMark(r), unicode.IsNumber(r):
				return unicode.ToLower(r)
			}
			return -1
		}, s.title)
		if n := times[anchor]; n > 0 {
			all[fmt.Sprint(anchor, "-", n)] = true
		} else {
			all[anchor] = true
		}
		times[anchor]++
	}
	return all
}

// pages are the documents of a folder, by their paths in the repository.
func pages(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no documents (%v)", pattern, err)
	}
	for i := range names {
		names[i] = filepath.ToSlash(names[i])
	}
	return names
}

// inPart are the pages of which Chinese has a part, and the sections of that part; what stands
// under the title belongs to it.
var inPart = map[string][]string{
	"console.md":     nil,
	"failures.md":    {"When a run fails", "When a run succeeds, and who is told when not", "Readiness probes", "Clocks", "Troubles", "Nobody there", "What is wrong, and why"},
	"performance.md": {"Measured", "On your machine"},
}

// TestLanguagesAgree keeps the READMEs, and each page that is there in both languages, equal in
// what can be compared: the levels of headings, and the code under each.
func TestLanguagesAgree(t *testing.T) {
	twins := map[string]string{"README.zh-CN.md": "README.md"}
	for _, name := range pages(t, "docs/zh-CN/*.md") {
		twins[name] = "docs/" + path.Base(name)
	}
	for chinese, english := range twins {
		en, zh := readDocument(t, english), readDocument(t, chinese)
		if part, ok := inPart[path.Base(english)]; ok {
			for _, title := range part {
				if !slices.ContainsFunc(en.sections, func(s section) bool { return s.title == title }) {
					t.Errorf("%s has no section %q", english, title)
				}
			}
			en.sections = slices.DeleteFunc(en.sections, func(s section) bool { return s.level > 1 && !slices.Contains(part, s.title) })
		}
		if len(en.sections) != len(zh.sections) {
			t.Errorf("%d headings in %s, %d in %s", len(en.sections)-1, english, len(zh.sections)-1, chinese)
			continue
		}
		for i := range en.sections {
			compareSections(t, english, en.sections[i], chinese, zh.sections[i])
		}
	}
}

func compareSections(t *testing.T, english string, en section, chinese string, zh section) {
	t.Helper()
	if en.level != zh.level {
		t.Errorf("%q of %s has level %d, %q of %s has %d", en.title, english, en.level, zh.title, chinese, zh.level)
	}
	if len(en.blocks) != len(zh.blocks) {
		t.Errorf("%d code blocks under %q in %s, %d under %q in %s", len(en.blocks), en.title, english, len(zh.blocks), zh.title, chinese)
		return
	}
	for i := range en.blocks {
		if en.blocks[i] != zh.blocks[i] {
			t.Errorf("code block %d under %q differs:\n%s:\n%s\n%s:\n%s", i+1, en.title, english, en.blocks[i].text, chinese, zh.blocks[i].text)
		}
	}
}

// TestDocsIndex: a page that no index names is a page that nobody finds. Each README names all
// pages, in its language where there is one, and so do the indexes of docs.
func TestDocsIndex(t *testing.T) {
	for index, chinese := range map[string]bool{"README.md": false, "docs/README.md": false, "README.zh-CN.md": true, "docs/zh-CN/README.md": true} {
		named := map[string]bool{}
		for _, l := range readDocument(t, index).links {
			named[path.Join(path.Dir(index), l.target)] = true
		}
		for _, page := range pages(t, "docs/*.md") {
			if translated := "docs/zh-CN/" + path.Base(page); chinese {
				if _, err := os.Stat(translated); err == nil {
					page = translated
				}
			}
			if path.Base(page) != "README.md" && !named[page] {
				t.Errorf("%s does not name %s", index, page)
			}
		}
	}
}

// TestReadmeCommands: the two commands that a newcomer needs come first.
func TestReadmeCommands(t *testing.T) {
	first := readDocument(t, "README.md").blocks()[0].text
	for _, command := range []string{"go run ./examples/standalone", "make test"} {
		if !strings.Contains(first, command) {
			t.Errorf("the first code block of README.md lacks %q:\n%s", command, first)
		}
	}
}

// TestReadmeIsShort: a README is what a newcomer reads, in one sitting; the rest is in docs.
func TestReadmeIsShort(t *testing.T) {
	for _, name := range []string{"README.md", "README.zh-CN.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 12_000 || strings.Count(string(text), "![") != 1 {
			t.Errorf("%s has %d bytes, at most 12000, and %d pictures, one", name, len(text), strings.Count(string(text), "!["))
		}
	}
}

// TestReadmeProgram: the first program of the README is the Example of this
// package, and imports one store and nothing else of ours.
func TestReadmeProgram(t *testing.T) {
	var program string
	for _, b := range readDocument(t, "README.md").blocks() {
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

// TestReadmeFunctions: the functions of the documents are those of examples, which are
// compiled; some need a database. TestLanguagesAgree sees to the Chinese ones.
func TestReadmeFunctions(t *testing.T) {
	for _, c := range []struct{ document, function, example string }{
		{"README.md", "serve", "store/postgres/example_test.go"},
		{"docs/postgres.md", "serve", "store/postgres/example_test.go"},
		{"docs/postgres.md", "pay", "store/postgres/example_test.go"},
		{"docs/postgres.md", "writable", "store/postgres/example_test.go"},
		{"docs/guide.md", "deploy", "example_test.go"},
		{"docs/failures.md", "charge", "example_task_test.go"},
	} {
		example, err := os.ReadFile(c.example)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, b := range readDocument(t, c.document).blocks() {
			if !strings.Contains("\n"+b.text, "\nfunc "+c.function+"(") {
				continue
			}
			found = true
			got, _ := bodyOf(t, "package p\n"+b.text, c.function)
			want, _ := bodyOf(t, string(example), c.function)
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s has\n%s\nand the example has\n%s", c.document, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		if !found {
			t.Errorf("%s has no function %s", c.document, c.function)
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

// TestLinks: what the documents point at in the repository is there, and so is the heading
// where a link has an anchor.
func TestLinks(t *testing.T) {
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*/*.md", "store/*/*.md"} {
		for _, name := range pages(t, pattern) {
			for _, l := range readDocument(t, name).links {
				if strings.Contains(l.target, "://") {
					continue
				}
				target := name
				if l.target != "" {
					target = path.Join(path.Dir(name), l.target)
				}
				if _, err := os.Stat(filepath.FromSlash(target)); err != nil {
					t.Errorf("%s: link to %s: %v", name, l.target, err)
				} else if l.anchor != "" && path.Ext(target) == ".md" && !readDocument(t, target).anchors()[l.anchor] {
					t.Errorf("%s: %s has no heading for #%s", name, target, l.anchor)
				}
			}
		}
	}
}
