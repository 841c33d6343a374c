package xxljob_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestStopSaysWhoTookTooLong: where the time of Run's end is over, the error tells handlers that had not
// ended from a store that has not taken what they returned.
func TestStopSaysWhoTookTooLong(t *testing.T) {
	for _, x := range []struct {
		name    string
		handler time.Duration
		broken  string
		words   string
	}{
		{"handlers", time.Hour, "", "handlers had not ended within StopGrace 10s"},
		{"the store", 2 * time.Second, "Finish", "all handlers had ended within StopGrace 10s"},
		{"nobody", 2 * time.Second, "", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				faults := storetest.Wrap(memory.New())
				s, err := xxljob.New(faults, xxljob.Config{App: "app", Logger: stage.QuietLog(), StopGrace: 10 * time.Second})
				stage.Must(t, err)
				stage.Must(t, s.Handle("handler", func(ctx context.Context, _ *xxljob.Task) error {
					select {
					case <-time.After(x.handler):
					case <-ctx.Done():
					}
					return nil
				}))
				ctx, cancel := context.WithCancel(t.Context())
				over := make(chan error)
				go func() { over <- s.Run(ctx) }()
				time.Sleep(time.Minute)
				stage.TriggerNew(t, s, stage.GoodJob())
				time.Sleep(time.Second)
				mend := func() {}
				if x.broken != "" {
					mend = faults.Inject(x.broken, storetest.Fault{Before: true})
				}
				cancel()
				err = <-over
				if x.words == "" && err != nil || x.words != "" && (err == nil || !strings.Contains(err.Error(), x.words)) {
					t.Errorf("Run: %v", err)
				}
				mend()
				time.Sleep(time.Minute)
			})
		})
	}
}
