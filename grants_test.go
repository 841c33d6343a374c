package xxljob_test

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/internal/test/stage"
)

// giving are the verbs that store a parameter, as a Scheduler has them; those whose callers are always
// the host are apart.
var (
	giving  = []string{"AddJob", "UpdateJob", "Trigger", "TriggerJob", "TriggerOne", "Again"}
	ofHosts = []string{"EnsureJob", "EnsureJobs"}
)

// TestVerbsTakeGrants: each method of the catalogue that stores a parameter is told who calls, and
// neither the console nor the jobs API calls one without: what they call takes grants, which they
// make of a user or a token. Those of the host are for the Scheduler's own methods.
func TestVerbsTakeGrants(t *testing.T) {
	if stage.Detector {
		t.Skip("it reads sources: the race detector has nothing to say of it")
	}
	taking := map[string]bool{}
	for _, s := range sources(t) {
		if s.test || s.pkg != "internal/engine/catalog" {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !f.Name.IsExported() || receiver(f) != "Catalog" {
				continue
			}
			var params []string
			for _, p := range f.Type.Params.List {
				params = append(params, types.ExprString(p.Type))
			}
			takes := slices.Contains(params, "grants.Grants")
			if gives := slices.ContainsFunc(params, func(p string) bool { return strings.HasSuffix(p, "store.Job") || p == "store.Trigger" }); gives && !takes && !slices.Contains(ofHosts, f.Name.Name) {
				t.Errorf("%s: Catalog.%s stores a parameter, and takes no grants: %v", s.name, f.Name.Name, params)
			}
			taking[f.Name.Name] = takes
		}
	}
	for _, verb := range giving {
		if !taking[verb] {
			t.Errorf("Catalog.%s takes no grants", verb)
		}
	}
	for _, s := range sources(t) {
		if s.test || s.pkg != "console" && s.pkg != "internal/engine/admin" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				at := types.ExprString(n)
				if strings.HasPrefix(at, "grants.") && !slices.Contains([]string{"grants.Grants", "grants.Of", "grants.In"}, at) || slices.Contains(ofHosts, n.Sel.Name) {
					t.Errorf("%s: %s is for the host", s.name, at)
				}
				if n.Sel.Name == "Scheduler" && strings.HasSuffix(types.ExprString(n.X), "Config") {
					t.Errorf("%s: %s knows no users: use the console's own", s.name, at)
				}
			case *ast.CallExpr:
				f, ok := n.Fun.(*ast.SelectorExpr)
				if ok && taking[f.Sel.Name] && !givesGrants(n) {
					t.Errorf("%s: %s is called without grants", s.name, types.ExprString(n))
				}
			}
			return true
		})
	}
	if len(taking) == 0 {
		t.Fatal("there is no verb")
	}
}

// givesGrants reports whether a call of a verb passes on who calls.
func givesGrants(call *ast.CallExpr) bool {
	said := fmt.Sprint(types.ExprString(call))
	for _, by := range []string{"grantsOf(", "grants.In(ctx, g)", "ctx, g, "} {
		if strings.Contains(said, by) {
			return true
		}
	}
	return false
}
