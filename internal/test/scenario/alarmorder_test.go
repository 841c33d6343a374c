package scenario_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// committedLate is a store whose alarms of one job are seen a while after later ones, as where
// the transaction that inserts them takes that long.
type committedLate struct {
	st    xxljob.Store
	after time.Duration
}

func (s committedLate) Alarms(ctx context.Context, shards []store.Shard, rules []string, after int64, limit int) ([]store.Alarm, error) {
	list, err := s.st.Alarms(ctx, shards, rules, after, limit)
	return slices.DeleteFunc(list, func(a store.Alarm) bool { return a.JobName == "late" && time.Since(a.At) < s.after }), err
}

// TestAlarmsThatAreCommittedLate: what comes behind alarms that were read is told too, also where
// the store could not be read for longer than it is read again.
func TestAlarmsThatAreCommittedLate(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]time.Duration{"": 0, "after an outage": 3 * time.Minute} {
		inBubble(t, name, func(t *testing.T) {
			s := &sink{began: time.Now()}
			mem := memory.New()
			faults := storetest.Wrap(bent.StoreOf(mem, committedLate{mem, 20 * time.Second}))
			f := startFailing(t, faults, "a", failsAlways, withRule(alarm.Rule{Name: "sink", To: s, Window: -1}))
			job := addJob(t, f, xxljob.Job{Name: "late"})
			other := addJob(t, f, xxljob.Job{Name: "j"})
			stage.Trigger(t, f, job)
			time.Sleep(time.Second)
			stage.Trigger(t, f, other)
			time.Sleep(time.Second)
			s.require(t, "before it is committed", "j failed x1 @1s")
			mend := faults.Inject("Alarms", storetest.Fault{Before: true})
			if outage == 0 {
				mend()
			}
			time.Sleep(time.Second)
			stage.Trigger(t, f, other)
			time.Sleep(20*time.Second + outage)
			mend()
			stage.Trigger(t, f, other)
			time.Sleep(5 * time.Minute)
			s.mu.Lock()
			n := 0
			for _, m := range s.all {
				if m.JobName == "late" {
					n++
				}
			}
			if n != 1 || len(s.all) != 4 {
				t.Errorf("told %q, want the late one once, and four in all", s.told)
			}
			s.mu.Unlock()
			synctest.Wait()
			stage.Stop(t, f.Node)
		})
	}
}
