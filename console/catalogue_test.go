package console_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/console"
)

// catalogue are the texts of a language, each with all of its forms in one.
func catalogue(t *testing.T, tag string) map[string]string {
	t.Helper()
	var raw map[string]json.RawMessage
	must(t, json.Unmarshal(must1(os.ReadFile("lang/"+tag+".json")), &raw))
	texts := map[string]string{}
	for key, text := range raw {
		texts[key] = string(text)
	}
	return texts
}

// TestCatalogues: the same keys with the same values in all languages, none twice, in order, and
// no Chinese text that is the English one.
func TestCatalogues(t *testing.T) {
	english := catalogue(t, "en")
	value := regexp.MustCompile(`\{[a-z]+\}`)
	values := func(text string) string {
		list := value.FindAllString(text, -1)
		slices.Sort(list)
		return strings.Join(slices.Compact(list), " ")
	}
	han, letters := regexp.MustCompile(`\p{Han}`), regexp.MustCompile(`[a-z]{3}`)
	for _, tag := range []string{"en", "zh-CN", "zh-TW"} {
		texts := catalogue(t, tag)
		for _, key := range slices.Sorted(maps.Keys(english)) {
			text, known := texts[key]
			switch {
			case !known:
				t.Errorf("%s: %s is missing", tag, key)
			case values(text) != values(english[key]):
				t.Errorf("%s: %s has the values %q, want %q", tag, key, values(text), values(english[key]))
			case tag != "en" && letters.MatchString(strings.ReplaceAll(english[key], "Quartz", "")) && !han.MatchString(text):
				t.Errorf("%s: %s is not translated: %s", tag, key, text)
			}
		}
		for key := range texts {
			if _, known := english[key]; !known {
				t.Errorf("%s: nothing but this language has %s", tag, key)
			}
		}
		var lines []string
		for line := range strings.Lines(string(must1(os.ReadFile("lang/" + tag + ".json")))) {
			if key, _, found := strings.Cut(strings.TrimSpace(line), `": `); found {
				lines = append(lines, strings.TrimPrefix(key, `"`))
			}
		}
		if !slices.IsSorted(lines) || len(lines) != len(texts) {
			t.Errorf("%s: %d lines for %d texts, or they are not in order", tag, len(lines), len(texts))
		}
	}
	if strings.ContainsAny(strings.Join(slices.Collect(maps.Values(catalogue(t, "zh-TW"))), ""), "务执运时错见选项际给对无应") {
		t.Error("zh-TW has characters of the other script")
	}
}

// TestKeysOfTexts: what pages and code ask for is in the catalogue, and nothing else is.
func TestKeysOfTexts(t *testing.T) {
	texts := catalogue(t, "en")
	used, prefixes := usedKeys(t)
	for key, where := range used {
		if _, known := texts[key]; !known {
			t.Errorf("%s asks for %s, which there is not", where, key)
		}
	}
	for _, field := range console.FormFields() {
		used["field."+field.Name], used["help."+field.Name] = "form", "form"
		for _, value := range field.Options {
			used["option."+field.Name+"."+value] = "form"
		}
		if _, known := texts["field."+field.Name]; !known {
			t.Errorf("the field %s has no name", field.Name)
		}
	}
	for key := range texts {
		base := strings.TrimSuffix(key, ".help")
		_, direct := used[key]
		_, helps := used[base]
		if !direct && !helps && !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			t.Errorf("nothing asks for %s", key)
		}
	}
}

// usedKeys are the keys that templates and code name, with where, and the beginnings of those
// that they put together of the values of a few.
func usedKeys(t *testing.T) (used map[string]string, prefixes []string) {
	t.Helper()
	used = map[string]string{}
	// Those of fields, helps and options are known one by one.
	prefix := regexp.MustCompile(`^[a-z]+(\.[a-z]+)*\.$`)
	add := func(text, where string, key bool) {
		switch {
		case prefix.MatchString(text) && !slices.Contains([]string{"field.", "help.", "option."}, text):
			prefixes = append(prefixes, text)
		case strings.HasPrefix(text, ".") && strings.HasSuffix(text, "."): // as in page + ".filter." + name
			for _, page := range []string{"jobs", "runs", "changes"} {
				prefixes = append(prefixes, page+text)
			}
		case key:
			used[text] = where
		}
	}
	asked, printed := regexp.MustCompile(`\bt "([^"]+)"`), regexp.MustCompile(`\(print "([^"]+)"`)
	for _, name := range must1(filepath.Glob("template/*.html")) {
		text := string(must1(os.ReadFile(name)))
		for _, m := range asked.FindAllStringSubmatch(text, -1) {
			add(m[1], name, true)
		}
		for _, m := range printed.FindAllStringSubmatch(text, -1) {
			add(m[1], name, false)
		}
	}
	first := map[string]bool{}
	for key := range catalogue(t, "en") {
		part, _, _ := strings.Cut(key, ".")
		first[part] = true
	}
	key := regexp.MustCompile(`^([a-z]+)(\.[a-z]+)+$`)
	for _, name := range append(must1(filepath.Glob("*.go")), must1(filepath.Glob("internal/*/*.go"))...) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		ast.Inspect(must1(parser.ParseFile(token.NewFileSet(), name, nil, 0)), func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text := must1(strconv.Unquote(lit.Value))
			m := key.FindStringSubmatch(text)
			add(text, name, m != nil && first[m[1]] && !strings.HasSuffix(text, ".html") && !strings.HasSuffix(text, ".js"))
			return true
		})
	}
	return used, prefixes
}
