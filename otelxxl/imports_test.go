package otelxxl_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestTheAPIAlone: what a program imports with this package is OpenTelemetry's API. Which SDK
// there is, is the program's to choose.
func TestTheAPIAlone(t *testing.T) {
	names, err := filepath.Glob("*.go")
	must(t, err)
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		must(t, err)
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			must(t, err)
			if strings.HasSuffix(name, "_test.go") || !strings.Contains(imported, ".") || strings.HasPrefix(imported, "github.com/xxljob/xxljob") {
				continue
			}
			if !strings.HasPrefix(imported, "go.opentelemetry.io/otel") || strings.Contains(imported, "/sdk") || strings.Contains(imported, "/exporters") {
				t.Errorf("%s imports %s, which is not OpenTelemetry's API", name, imported)
			}
		}
	}
}
