package xxljob_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestNothingRecoversWhileTheStoreFails: no line says that something has recovered while each call of
// the store fails, as where a schema is dropped.
func TestNothingRecoversWhileTheStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults, log := storetest.Wrap(memory.New()), new(stage.LogLines)
		s, err := xxljob.New(stage.NeverAlone{Store: faults}, xxljob.Config{App: "app", Logger: slog.New(slog.NewTextHandler(log, nil))})
		stage.Must(t, err)
		stage.Must(t, s.Handle("work", stage.NothingToDo))
		stage.Must(t, s.Start(t.Context()))
		time.Sleep(time.Minute)
		stage.AddSeconds(t, s, 10)
		time.Sleep(10*time.Second + 500*time.Millisecond)
		mend := faults.Inject(storetest.All, storetest.Fault{Before: true})
		time.Sleep(10 * time.Minute)
		for _, line := range log.With("recovered") {
			t.Errorf("while the store fails: %s", line)
		}
		mend()
		time.Sleep(5 * time.Minute)
		if len(log.With("recovered")) == 0 {
			t.Error("nothing has recovered")
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}
