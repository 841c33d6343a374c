package executor

import (
	"context"
	"errors"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

// answers is a node that answers a result as it is told.
type answers struct {
	wire.Admin
	give func() (wire.Return, error)
}

func (a answers) Callback(context.Context, []wire.CallbackRequest) (wire.Return, error) {
	return a.give()
}

// TestRefusedByAll: a call is refused only where every node has answered, and refused. One
// that failed, or was not asked before the call was cut short, may be back in a moment.
func TestRefusedByAll(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	refuse := func() (wire.Return, error) { return wire.Failf(wire.MsgTokenWrong), nil }
	fail := func() (wire.Return, error) { return wire.Return{}, errors.New("no route") }
	cut := func() (wire.Return, error) { cancel(); return refuse() } // it is time to leave
	for _, c := range []struct {
		name  string
		nodes []func() (wire.Return, error)
		want  bool
	}{
		{"one that refuses", []func() (wire.Return, error){refuse}, true},
		{"all refuse", []func() (wire.Return, error){refuse, refuse}, true},
		{"one fails", []func() (wire.Return, error){refuse, fail}, false},
		{"the first fails", []func() (wire.Return, error){fail, refuse}, false},
		{"cut short", []func() (wire.Return, error){cut, refuse}, false}, // ends ctx, so it comes last
	} {
		cl := &cluster{name: "admin"}
		for _, give := range c.nodes {
			cl.nodes = append(cl.nodes, node{"http://127.0.0.1:8080", answers{give: give}})
		}
		if _, err := cl.Callback(ctx, nil); err == nil || errors.Is(err, errRefused) != c.want {
			t.Errorf("%s: %v; refused: want %v", c.name, err, c.want)
		}
	}
}
