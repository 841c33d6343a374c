package executor_test

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// waitForever is what the profiles of these tests are searched for.
//
//go:noinline
func waitForever(started chan<- struct{}, end <-chan struct{}) {
	started <- struct{}{}
	<-end
}

// TestLabels: the goroutine of a handler, and one that it starts, say in a profile whose they
// are, and the handler's own labels are added to these.
func TestLabels(t *testing.T) {
	for name, tt := range map[string]struct {
		req  wire.TriggerRequest
		want map[string]string
	}{
		"a job with a key":     {wire.TriggerRequest{JobID: 7, App: "shop", JobKey: "mails", TriggerType: "CRON"}, map[string]string{"xxljob.app": "shop", "xxljob.job": "mails", "xxljob.trigger": "CRON"}},
		"a job without one":    {wire.TriggerRequest{JobID: 8, TriggerType: "API"}, map[string]string{"xxljob.app": "own", "xxljob.job": "8", "xxljob.trigger": "API"}},
		"a run of a Java peer": {wire.TriggerRequest{JobID: 9}, map[string]string{"xxljob.app": "own", "xxljob.job": "9", "xxljob.trigger": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := executor.New(executor.Config{App: "own"})
			if err != nil {
				t.Fatal(err)
			}
			started, end, seen := make(chan struct{}), make(chan struct{}), make(chan map[string]string, 1)
			err = e.Handle("h", func(ctx context.Context, _ *executor.Task) error {
				labels := map[string]string{}
				pprof.ForLabels(ctx, func(key, value string) bool { labels[key] = value; return true })
				seen <- labels
				go waitForever(started, end)
				waitForever(started, end)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			tt.req.LogID, tt.req.ExecutorHandler = 1, "h"
			if ret, _ := e.Run(t.Context(), tt.req); !ret.OK() {
				t.Fatal(ret.Msg)
			}
			for range 2 {
				<-started
			}
			labels := <-seen
			for key, want := range tt.want {
				if got, there := labels[key]; got != want || !there {
					t.Errorf("label %s of the context is %q, %t, want %q", key, got, there, want)
				}
			}
			if n := labelled(t, tt.want); n != 2 {
				t.Errorf("%d goroutines have the labels %v, want that of the handler and the one that it started", n, tt.want)
			}
			close(end)
			if err := e.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// labelled is how many goroutines wait in waitForever with these labels.
func labelled(t *testing.T, labels map[string]string) (n int) {
	t.Helper()
	var text bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		t.Fatal(err)
	}
	for record := range strings.SplitSeq(text.String(), "\n\n") {
		has := strings.Contains(record, "waitForever")
		for key, value := range labels {
			has = has && strings.Contains(record, `"`+key+`":"`+value+`"`)
		}
		if has {
			head, _, _ := strings.Cut(record, " @ ") // the profile's first line may stand before it
			count, err := strconv.Atoi(head[strings.LastIndex(head, "\n")+1:])
			if err != nil {
				t.Fatal(err)
			}
			n += count
		}
	}
	return n
}
