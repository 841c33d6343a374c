package store_test

import (
	"strings"
	"testing"

	"github.com/xxljob/xxljob/store"
)

// TestRoutedLines: the lines are as people have them in their records.
func TestRoutedLines(t *testing.T) {
	r := store.Routed{Type: "CRON", Node: "node", Route: "NEAREST", Block: "SERIAL_EXECUTION", Addresses: "local://a, local://b"}
	const want = "type: CRON\nnode: node\nroute: NEAREST, block: SERIAL_EXECUTION\naddresses: local://a, local://b"
	if got := r.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	read := store.Routed{Type: r.Type, Node: r.Node, Block: r.Block}
	if !read.Read(want) || read != r {
		t.Errorf("read %+v, want %+v", read, r)
	}
	for _, other := range []string{
		"", "type: CRON", want + "\nno address", strings.Replace(want, "CRON", "API", 1), strings.Replace(want, "node: node", "node: other", 1),
		strings.Replace(want, "SERIAL", "PARALLEL", 1), strings.Replace(want, "\naddresses", "\n\naddresses", 1), "x" + want,
	} {
		if read := (store.Routed{Type: r.Type, Node: r.Node, Block: r.Block}); read.Read(other) {
			t.Errorf("%q is read as %+v", other, read)
		}
	}
}

// FuzzRouted: a message that is read is written as it was.
func FuzzRouted(f *testing.F) {
	f.Add("CRON", "node", "SERIAL_EXECUTION", "type: CRON\nnode: node\nroute: NEAREST, block: SERIAL_EXECUTION\naddresses: local://a")
	f.Add("", "", "", "type: \nnode: \nroute: , block: \naddresses: , block: \naddresses: ")
	f.Fuzz(func(t *testing.T, kind, node, block, msg string) {
		r := store.Routed{Type: kind, Node: node, Block: block}
		if r.Read(msg) && r.String() != msg {
			t.Errorf("%q becomes %q", msg, r)
		}
	})
}

// TestNodeOf: the random text that schedulers add has no hyphen.
func TestNodeOf(t *testing.T) {
	for incarnation, want := range map[string]string{"": "", "node": "", "-": "", "node-x": "node", "a-b-c": "a-b"} {
		if got := store.NodeOf(incarnation); got != want {
			t.Errorf("%q is of node %q, want %q", incarnation, got, want)
		}
	}
}
