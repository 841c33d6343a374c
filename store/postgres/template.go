package postgres

// How statements are written: with names in the place of numbers.

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/xxljob/xxljob"
)

// arguments are the names of a statement's arguments, in the order of their numbers. A
// statement with five or more is written by them: {{arg.token}}. To add one is to add its
// name, and no other has another number to be looked for.
type arguments []string

func argumentsOf(names ...string) arguments {
	var all arguments
	for _, n := range names {
		all = append(all, strings.Fields(n)...)
	}
	return all
}

// in puts the numbers into a text. A name that the text has and the list has not stays as
// it is, and no server takes such a statement.
func (a arguments) in(text string) string {
	pairs := make([]string, 0, 2*len(a))
	for i, name := range a {
		pairs = append(pairs, "{{arg."+name+"}}", "$"+strconv.Itoa(i+1))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// named are arguments by their names.
type named map[string]any

// values puts arguments into their order. Those that are missing, or that the statement does
// not have, are a mistake of ours, which it panics for.
func (a arguments) values(n named) []any {
	list := make([]any, len(a))
	for i, name := range a {
		v, ok := n[name]
		if !ok {
			panic(fmt.Sprintf("postgres: the argument %s is missing", name))
		}
		list[i] = v
	}
	if len(n) != len(a) {
		panic(fmt.Sprintf("postgres: of %d arguments %d are named in the statement", len(n), len(a)))
	}
	return list
}

// column is a column of a table about a T, with its type and its value.
type column[T any] struct {
	name, kind string
	value      func(*T) any
}

// columns are those of a table, in the order of the arguments of a statement that inserts.
type columns[T any] []column[T]

// names are the columns, each behind a prefix, with commas between them.
func (c columns[T]) names(prefix string) string {
	return c.list(func(_ int, c column[T]) string { return prefix + c.name })
}

// marks are the arguments of a row: $1,$2,…
func (c columns[T]) marks() string {
	return c.list(func(i int, _ column[T]) string { return "$" + strconv.Itoa(i+1) })
}

// unnested are the arguments of many rows: unnest($1::a[], $2::b[], …).
func (c columns[T]) unnested() string {
	return "unnest(" + c.list(func(i int, c column[T]) string { return "$" + strconv.Itoa(i+1) + "::" + c.kind + "[]" }) + ")"
}

// arguments are the columns as names of arguments.
func (c columns[T]) arguments() arguments { return strings.Split(c.names(""), ", ") }

// values are those of a row.
func (c columns[T]) values(of *T) []any {
	list := make([]any, len(c))
	for i := range c {
		list[i] = c[i].value(of)
	}
	return list
}

func (c columns[T]) list(text func(int, column[T]) string) string {
	list := make([]string, len(c))
	for i := range c {
		list[i] = text(i, c[i])
	}
	return strings.Join(list, ", ")
}

// stated has the states of a text that is not among the queries.
func stated(text string) string { return states.Replace(text) }

var states = strings.NewReplacer(stateNumbers()...)

// stateNumbers are what {{state.lost}} and the like stand for.
func stateNumbers() (pairs []string) {
	for s := xxljob.StatePlanned; s <= xxljob.StateCancelled; s++ {
		pairs = append(pairs, "{{state."+strings.ReplaceAll(s.String(), " ", "_")+"}}", strconv.Itoa(int(s)))
	}
	return pairs
}
