package xxljob_test

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/internal/test/stage"
)

// TestTroublesAreData: whatever part of the scheduler says what is seen of a trouble says it as data.
func TestTroublesAreData(t *testing.T) {
	if stage.Detector {
		t.Skip("it reads sources: the race detector has nothing to say of it")
	}
	made := 0
	for _, s := range sources(t) {
		if s.test || !strings.HasPrefix(s.pkg, "internal/engine") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			if of, ok := lit.Type.(*ast.SelectorExpr); !ok || fmt.Sprint(of.X) != "store" || of.Sel.Name != "Trouble" {
				return true
			}
			keys := map[string]bool{}
			for _, e := range lit.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					keys[fmt.Sprint(kv.Key)] = true
				}
			}
			if (keys["Detail"] || keys["Remedy"]) && !keys["Seen"] {
				t.Errorf("%s: a trouble has no Seen", s.name)
			}
			if keys["Seen"] {
				made++
			}
			return true
		})
	}
	if made < 10 {
		t.Errorf("%d troubles were found", made)
	}
}
