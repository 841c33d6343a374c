package core_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/store"
)

var errNoZone = errors.New("no data of the zone")

// TestSentElsewhere: that runs were sent without what could not be worked out is a trouble also where the job's
// shard is another node's, one that is told once, and until five minutes after the last.
func TestSentElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := unableCore()
		for i := range 4 {
			c.SentUnable(c.Clock.Now(), core.UnknownZone(7, "app", 1, "Mars/Olympus", errNoZone))
			if woken := len(c.Life.Wakes.Scan) > 0; woken != (i == 0) {
				t.Errorf("at run %d a scan is asked for: %t", i, woken)
			}
			for len(c.Life.Wakes.Scan) > 0 {
				<-c.Life.Wakes.Scan
			}
			time.Sleep(4 * time.Minute)
			c.TellUnable(core.UnableDue, c.Clock.Now(), nil)
			if all := c.Troubles.Of(store.TroubleUnknownZone); len(all) != 1 || all[0].JobID != 1 {
				t.Errorf("after run %d: %v", i, all)
			}
		}
		if zones := c.Leases.Missing(); !slices.Equal(zones, []string{"Mars/Olympus"}) {
			t.Errorf("this node lacks %v", zones)
		}
		time.Sleep(2 * time.Minute)
		c.TellUnable(core.UnableDue, c.Clock.Now(), nil)
		if all := c.Troubles.Of(store.TroubleUnknownZone); len(all) != 0 || c.Unable.HasSent() {
			t.Errorf("afterwards: %v", all)
		}
	})
}

// TestUnableToldBeside: what goroutines find at the same time is all said in the end.
func TestUnableToldBeside(t *testing.T) {
	for range 50 {
		c := unableCore()
		var wg sync.WaitGroup
		for id := range int64(20) {
			wg.Go(func() {
				c.SentUnable(time.Now(), core.UnknownZone(1, "app", id+1, fmt.Sprint("Mars/", id), errNoZone))
			})
		}
		wg.Wait()
		if all := c.Troubles.Of(store.TroubleUnknownZone); len(all) != 20 {
			t.Fatalf("%d of twenty jobs are said", len(all))
		}
	}
}

// unableCore is the core of a node without shards.
func unableCore() *core.Core {
	c := core.New(core.Config{}.WithDefaults(), nil, slog.New(slog.DiscardHandler))
	c.Leases = lease.New("a-1", lease.Times{}, nil)
	return c
}
