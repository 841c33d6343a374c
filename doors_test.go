package xxljob_test

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/internal/test/stage"
)

// TestDoors says how many names each room of internal/engine exports: functions, types, constants,
// variables, methods and fields. It is a report, and bounds nothing: a room whose names grow more
// than what it does has its walls in the wrong place.
func TestDoors(t *testing.T) {
	if stage.Detector {
		t.Skip("it reads sources: the race detector has nothing to say of it")
	}
	rooms := map[string]int{}
	for _, s := range sources(t) {
		if dir, room := path.Split(s.pkg); dir == "internal/engine/" && !s.test {
			rooms[room] += len(doors(s.file))
		}
	}
	if len(rooms) == 0 {
		t.Fatal("no room was found")
	}
	for _, room := range slices.Sorted(maps.Keys(rooms)) {
		t.Logf("%4d %s", rooms[room], room)
	}
}

// doors are the names that a file exports. Methods and fields of types that are not exported count
// too: whoever is given a value of one can use them.
func doors(file *ast.File) (names []string) {
	add := func(of string, idents ...*ast.Ident) {
		for _, id := range idents {
			if id.IsExported() {
				names = append(names, strings.TrimPrefix(of+"."+id.Name, "."))
			}
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			add(receiver(d), d.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					add("", spec.Names...)
				case *ast.TypeSpec:
					add("", spec.Name)
					if s, ok := spec.Type.(*ast.StructType); ok {
						for _, field := range s.Fields.List {
							add(spec.Name.Name, field.Names...)
						}
					}
				}
			}
		}
	}
	return names
}

// receiver is the name of the type that a method is of, "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	of := d.Recv.List[0].Type
	if p, ok := of.(*ast.StarExpr); ok {
		of = p.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	if id, ok := of.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
