package console_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	tmpl "text/template/parse"
	"unicode"
)

// sameEverywhere are texts of templates that are the same in all languages: names, code, and what
// languages are called by themselves.
var sameEverywhere = []string{"XXL-JOB:", "GLUE", "EN", "繁", "简",
	`s.AddJob(ctx, xxljob.Job{Name: "hello", Handler: "hello", Schedule: xxljob.Cron("0 * * * * ?")})`}

// spokenAttributes are those of which a person sees or hears the value.
var spokenAttributes = []string{"title", "aria-label", "aria-description", "aria-placeholder", "aria-roledescription", "aria-valuetext", "placeholder", "alt", "label", "summary"}

var (
	htmlTag   = regexp.MustCompile(`<!--[\s\S]*?-->|<(?:[^>"']|"[^"]*"|'[^']*')*>`)
	attrOfTag = regexp.MustCompile(`\s([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))`)
	pressed   = regexp.MustCompile(`\stype="(?:submit|button|reset)"`)
	// words are those of a literal: more than one, one with a capital letter, or one of Chinese.
	words = regexp.MustCompile(`\pL[,.;:]? +\pL|^\p{Lu}\p{Ll}|\p{Han}`)
)

// TestTemplatesHaveNoWords: what pages say comes from the catalogue of a language.
func TestTemplatesHaveNoWords(t *testing.T) {
	files := must1(filepath.Glob("template/*.html"))
	if len(files) < 15 {
		t.Fatalf("there are no more than %d templates", len(files))
	}
	for _, name := range files {
		for _, text := range untranslated(t, string(must1(os.ReadFile(name)))) {
			t.Errorf("%s says %q in each language", name, text)
		}
	}
}

// TestUntranslatedIsFound: each way to put words into a template is noticed, and nothing else.
func TestUntranslatedIsFound(t *testing.T) {
	for _, planted := range []string{
		`<p>No jobs</p>`, `<p>{{if .Body}}none{{end}}</p>`, `<p>{{if .Body}}{{else}}none{{end}}</p>`, `<p>{{.Body}} jobs</p>`, `{{range .Body}}{{else}}没有{{end}}`,
		`<a title="Close it">×</a>`, `<nav aria-label="Pages"></nav>`, `<input placeholder='Name'>`, `<input{{if .Body}} placeholder="Name of {{.Body}}"{{end}}>`, `<img alt=picture>`, `<optgroup label="Others">`, `<input type="submit" value="Save">`,
		`<p>{{"No jobs"}}</p>`, `<p>{{print "Jobs" .Body}}</p>`, `<p>{{template "empty" dict "title" "Nothing yet"}}</p>`, `<p>{{with .Body}}{{.}}{{else}}{{"沒有"}}{{end}}</p>`, `<option value="x">Others</option>`, `<p>&#78;one</p>`,
	} {
		if found := untranslated(t, planted); len(found) != 1 {
			t.Errorf("%s: found is %q", planted, found)
		}
	}
	if found := untranslated(t, `<!-- a comment --><p class="some class" data-words="{{t "a.key"}}">{{/* words in a comment */}}{{t "jobs.none"}} · {{.Body}} – 200 % &amp; <code>{{.}}</code> {{if eq .Kind "left out"}}×{{end}}<input name="name" value="on"></p>`); len(found) > 0 {
		t.Errorf("found is %q in what has no words", found)
	}
}

// attributesOnly are templates that are used within a tag.
var attributesOnly = []string{"told", "oncetold"}

// eachBranch stands between what is in one branch of an action and what is in another.
const eachBranch = "\x01"

// untranslated are the words that a template has of its own.
func untranslated(t *testing.T, text string) (found []string) {
	t.Helper()
	tree := tmpl.New("template")
	tree.Mode = tmpl.SkipFuncCheck
	set := map[string]*tmpl.Tree{}
	must1(tree.Parse(text, "", "", set))
	for _, one := range set {
		if one.Root == nil {
			continue
		}
		page, literals := flat(one.Root)
		if slices.Contains(attributesOnly, one.Name) {
			page = "<x " + page + ">"
		}
		add := func(s string) {
			s = strings.TrimSpace(html.UnescapeString(s))
			if strings.ContainsFunc(s, unicode.IsLetter) && !slices.Contains(sameEverywhere, s) {
				found = append(found, s)
			}
		}
		for _, part := range htmlTag.Split(page, -1) {
			for one := range strings.SplitSeq(part, eachBranch) {
				add(one)
			}
		}
		for _, tag := range htmlTag.FindAllString(page, -1) {
			for _, a := range attrOfTag.FindAllStringSubmatch(tag, -1) {
				if slices.Contains(spokenAttributes, a[1]) || a[1] == "value" && pressed.MatchString(tag) {
					add(strings.ReplaceAll(a[2]+a[3]+a[4], eachBranch, " "))
				}
			}
		}
		for _, s := range literals {
			if words.MatchString(s) {
				found = append(found, s)
			}
		}
	}
	return found
}

// flat is what a template has besides its actions, whichever of its branches are taken, and the
// literals of the actions.
func flat(n tmpl.Node) (text string, literals []string) {
	var b strings.Builder
	var walk func(n tmpl.Node)
	branch := func(n *tmpl.BranchNode) {
		walk(n.Pipe)
		for _, list := range []*tmpl.ListNode{n.List, n.ElseList} {
			b.WriteString(eachBranch)
			if list != nil {
				walk(list)
			}
		}
		b.WriteString(eachBranch)
	}
	walk = func(n tmpl.Node) {
		switch n := n.(type) {
		case *tmpl.ListNode:
			for _, one := range n.Nodes {
				walk(one)
			}
		case *tmpl.TextNode:
			b.Write(n.Text)
		case *tmpl.ActionNode:
			walk(n.Pipe)
		case *tmpl.IfNode:
			branch(&n.BranchNode)
		case *tmpl.WithNode:
			branch(&n.BranchNode)
		case *tmpl.RangeNode:
			branch(&n.BranchNode)
		case *tmpl.TemplateNode:
			if n.Pipe != nil {
				walk(n.Pipe)
			}
		case *tmpl.PipeNode:
			for _, c := range n.Cmds {
				walk(c)
			}
		case *tmpl.CommandNode:
			if f, is := n.Args[0].(*tmpl.IdentifierNode); is && slices.Contains([]string{"eq", "ne"}, f.Ident) {
				return // what is compared is not shown
			}
			for _, arg := range n.Args {
				walk(arg)
			}
		case *tmpl.StringNode:
			literals = append(literals, n.Text)
		}
	}
	walk(n)
	return b.String(), literals
}

// ownWords are literals of the code with more than one word that no page shows as they are: parts
// of HTTP and HTML, formats, and what the log says.
var ownWords = []string{
	"public, max-age=31536000, immutable", `Basic realm="xxljob", charset="UTF-8"`, "HX-Request, HX-Request-Type, Cookie, Accept-Language, Accept-Encoding",
	`<time datetime="`, `<a href="`, `<a href="%s%d" tabindex="-1"><rect class="state-%s" x="%d" y="%d" width="8" height="%d"><title>%s · %s</title></rect></a>`, `<td class="`, "num mono",
	"add a job", "edit a job", "remove a job", "start a job", "stop a job", "run a job once", "run again", "kill a run", // loggedscheduler.go, to the log
	"left out", // a kind of line of a difference, which has its own text
}

// TestCodeHasNoWords: nor does the code put texts together that pages show. What goes into errors
// and the log is in English for who keeps the console going.
func TestCodeHasNoWords(t *testing.T) {
	var list []string
	for _, pattern := range []string{"*.go", "internal/*/*.go"} {
		for _, name := range must1(filepath.Glob(pattern)) {
			if !strings.HasSuffix(name, "_test.go") {
				list = append(list, wordsOfCode(t, name, nil)...)
			}
		}
	}
	for _, text := range list {
		if !slices.Contains(ownWords, text) {
			t.Errorf("the code says %q", text)
		}
	}
	for _, text := range ownWords {
		if !slices.Contains(list, text) {
			t.Errorf("the code does not say %q", text)
		}
	}
	planted := "package p\nfunc f() { p.Words = `no jobs`; g(`all ` + n + `of them`); return errors.New(`for the log`) }"
	if found := wordsOfCode(t, "planted.go", planted); strings.Join(found, ", ") != "no jobs, of them" {
		t.Errorf("found is %q", found)
	}
}

// wordsOfCode are the literals with more than one word in a file, without those of errors and logs.
func wordsOfCode(t *testing.T, name string, src any) (list []string) {
	t.Helper()
	several := regexp.MustCompile(`\pL[,.:]? +\pL`) // and no semicolon, which is one of a header
	apart := map[ast.Node]bool{}
	ast.Inspect(must1(parser.ParseFile(token.NewFileSet(), name, src, 0)), func(n ast.Node) bool {
		if apart[n] {
			return false
		}
		switch n := n.(type) {
		case *ast.FuncDecl:
			return n.Name.Name != "Error" // of an error
		case *ast.Field:
			if n.Tag != nil {
				apart[n.Tag] = true
			}
		case *ast.CallExpr:
			if toThoseWhoRunIt(n.Fun) {
				for _, arg := range n.Args {
					apart[arg] = true
				}
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && several.MatchString(text) {
				list = append(list, text)
			}
		}
		return true
	})
	return list
}

// toThoseWhoRunIt reports whether a function makes an error or writes to the log.
func toThoseWhoRunIt(f ast.Expr) bool {
	switch f := f.(type) {
	case *ast.Ident:
		return f.Name == "panic" || f.Name == "fault" // of the Config
	case *ast.SelectorExpr:
		if of, is := f.X.(*ast.Ident); is && (of.Name == "errors" || of.Name == "fmt" && f.Sel.Name == "Errorf") {
			return true
		}
		return slices.Contains([]string{"Debug", "Info", "Warn", "Error", "Log"}, f.Sel.Name)
	}
	return false
}
