package postgres

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/store"
)

// all are the statements by the names of their fields.
func (q *queries) all() map[string]query {
	list := map[string]query{}
	v := reflect.ValueOf(q).Elem()
	for i := range v.NumField() {
		part := v.Field(i)
		for k := range part.NumField() {
			st := query{text: part.Field(k).FieldByName("text").String()}
			for a := range part.Field(k).FieldByName("args").Len() {
				st.args = append(st.args, part.Field(k).FieldByName("args").Index(a).String())
			}
			name := part.Type().Field(k).Name
			if _, twice := list[name]; twice {
				panic(name + " is a field of two structs")
			}
			list[name] = st
		}
	}
	return list
}

func TestTemplate(t *testing.T) {
	t.Parallel()
	sql := newTemplate(`"s"`)
	q := sql("select {{arg.b}}::text, {{state.lost}}, {{arg.a}} from {{schema}}.t where a = {{arg.b}} and b = {{arg.c}}")
	want := query{text: mark + `select $1::pg_catalog.text, 7, $2 from "s".t where a = $1 and b = $3`, args: []string{"b", "a", "c"}}
	if !reflect.DeepEqual(q, want) {
		t.Errorf("%+v, want %+v", q, want)
	}
	for _, args := range []named{{{"a", 1}, {"b", 2}, {"c", 3}}, {{"b", 2}, {"a", 1}, {"c", 3}}, {{"c", 3}, {"b", 2}, {"a", 1}}} {
		if st := q.by(args); st.sql != q.text || !slices.Equal(st.args, []any{2, 1, 3}) {
			t.Errorf("%v: %v", args, st)
		}
	}
	for what, f := range map[string]func(){
		`nothing fills {{state.odd}}`:          func() { sql("{{state.odd}}") },
		`no argument "a"`:                      func() { q.by(named{{"b", 2}, {"c", 3}}) },
		`no argument "b"`:                      func() { q.by(nil) },
		`no argument "c"`:                      func() { q.by(named{{"b", 2}, {"a", 1}, {"d", 3}}) },
		`4 arguments, want ["b" "a" "c"]`:      func() { q.by(named{{"b", 2}, {"a", 1}, {"c", 3}, {"d", 4}}) },
		`the arguments go by the names ["b" "`: func() { q.with(2, 1, 3) },
	} {
		if said := panicOf(f); !strings.HasPrefix(said, "postgres: "+what) {
			t.Errorf("%q, want %q", said, what)
		}
	}
}

func panicOf(f func()) (said string) {
	defer func() { said = fmt.Sprint(recover()) }()
	f()
	return ""
}

// TestStoredNumbers: every state has its hole, by the name that it has in the log.
func TestStoredNumbers(t *testing.T) {
	t.Parallel()
	states := 0
	for s := store.State(0); !strings.HasPrefix(s.String(), "State("); s++ {
		states++
		if s == store.StateSnoozed {
			continue // it is stored as succeeded, and told by a column of its own
		}
		if n, ok := storedNumbers["state."+strings.ReplaceAll(s.String(), " ", "_")]; !ok || n != int(s) {
			t.Errorf("%s is %d, %t, want %d", s, n, ok, s)
		}
	}
	if states != 13 {
		t.Errorf("%d states", states)
	}
}

var numbered = regexp.MustCompile(`\$([0-9]+)`)

// TestArgumentsAreNamed: a statement has the names of all its arguments, or of none where
// they are two at most: among more, nobody would see two that are swapped.
func TestArgumentsAreNamed(t *testing.T) {
	t.Parallel()
	for name, q := range newQueries(`"s"`).all() {
		most := 0
		for _, m := range numbered.FindAllStringSubmatch(q.text, -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, n)
		}
		if len(q.args) == 0 && most > 2 || len(q.args) > 0 && most != len(q.args) {
			t.Errorf("%s has %d arguments, and the names %q", name, most, q.args)
		}
	}
	for _, l := range literals(t) {
		if l.inQueries && strings.Contains(l.text, "{{arg.") && numbered.MatchString(l.text) {
			t.Errorf("%s: some arguments have names and some numbers in %q", l.place, l.text)
		}
	}
}

// TestCallsHaveTheArguments: where a call has its arguments in place, they are those of the
// statement. Those that a function makes are had by the cases of TestPlans, which has one
// for every statement.
func TestCallsHaveTheArguments(t *testing.T) {
	t.Parallel()
	all := newQueries(`"s"`).all()
	names, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	files, calls := token.NewFileSet(), map[string]int{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name, how := queryOf(call)
			q, known := all[name]
			if !known {
				return true
			}
			calls[name]++
			if fault := faultOf(call, how, q); fault != "" {
				t.Errorf("%s: %s: %s", files.Position(call.Pos()), name, fault)
			}
			return true
		})
	}
	if len(calls) < len(all)*3/4 {
		t.Errorf("only the calls of %d of %d statements were found: %q", len(calls), len(all), slices.Sorted(maps.Keys(calls)))
	}
}

// queryOf is the field of a call like s.sql.field.by(…), and the method; or "".
func queryOf(call *ast.CallExpr) (field, method string) {
	by, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || by.Sel.Name != "by" && by.Sel.Name != "with" {
		return "", ""
	}
	q, ok := by.X.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	if of, ok := q.X.(*ast.SelectorExpr); !ok || of.Sel.Name != "sql" {
		return "", ""
	}
	return q.Sel.Name, by.Sel.Name
}

func faultOf(call *ast.CallExpr, method string, q query) string {
	if method == "with" {
		most := 0
		for _, m := range numbered.FindAllString(q.text, -1) {
			most = max(most, int(m[1]-'0'))
		}
		if len(q.args) > 0 || len(call.Args) != most {
			return fmt.Sprintf("%d arguments, want %d, or the names %q", len(call.Args), most, q.args)
		}
		return ""
	}
	list, ok := call.Args[0].(*ast.CompositeLit)
	if !ok {
		return "" // a function makes them
	}
	var have []string
	for _, pair := range list.Elts {
		name, err := strconv.Unquote(pair.(*ast.CompositeLit).Elts[0].(*ast.BasicLit).Value)
		if err != nil {
			return err.Error()
		}
		have = append(have, name)
	}
	if !slices.Equal(slices.Sorted(slices.Values(have)), slices.Sorted(slices.Values(q.args))) {
		return fmt.Sprintf("%q, want %q", have, q.args)
	}
	return ""
}
