package executor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// TestTraceOfATask: the trace of a request is the handler's, as far as it fits.
func TestTraceOfATask(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for name, tt := range map[string]struct{ parent, state, want string }{
		"none":                      {},
		"a parent":                  {parent, "", parent},
		"with a state":              {parent, "a=b", parent + " a=b"},
		"a state alone":             {"", "a=b", ""},
		"all that fits":             {parent, strings.Repeat("s", 600-1-len(parent)), parent + " " + strings.Repeat("s", 600-1-len(parent))},
		"a state too long":          {parent, strings.Repeat("s", 600-len(parent)), parent},
		"a state with blanks":       {parent, "a=b, c=d", parent + " a=b, c=d"},
		"a state that is no text":   {parent, "a=\x1b[2J", parent},
		"a parent of several words": {parent + " a=b", "c=d", ""},
		"a parent that is no text":  {"00-\r\nX: y", "a=b", ""},
		"not ASCII":                 {"00-é", "a=b", ""},
		"a parent of 1 MB":          {strings.Repeat("p", 1<<20), "a=b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := executor.New(executor.Config{})
			if err != nil {
				t.Fatal(err)
			}
			got := make(chan string, 1)
			if err := e.Handle("h", func(_ context.Context, task *executor.Task) error { got <- task.Trace; return nil }); err != nil {
				t.Fatal(err)
			}
			if ret, _ := e.Run(t.Context(), wire.TriggerRequest{JobID: 1, LogID: 1, ExecutorHandler: "h", Traceparent: tt.parent, Tracestate: tt.state}); !ret.OK() {
				t.Fatal(ret.Msg)
			}
			if got := <-got; got != tt.want {
				t.Errorf("trace %.60q, want %.60q", got, tt.want)
			}
			if err := e.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}
