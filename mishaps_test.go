package xxljob_test

// What executors elsewhere are refused for want of room, as the node counts it.

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/xxljob/xxljob/internal/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// TestRefusedResultsAreCounted: each request that is told to come again.
func TestRefusedResultsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.Wrap(memory.New())
		e := twoApps(t, faults)
		hang := make(chan struct{})
		faults.Inject("RunsByID", storetest.Fault{Hang: hang})
		var refused, accepted atomic.Uint64
		page := repeated(wire.CallbackRequest{HandleCode: 200, HandleMsg: strings.Repeat("x", 15_000)}, 120)
		var all sync.WaitGroup
		for i := range 12 {
			for k := range page {
				page[k].LogID = int64(1<<40 + 1000*i + k)
			}
			body := wire.EncodeCallback(nil, wire.CallbackList, page)
			all.Go(func() {
				if stage.Post(t, e.admin, "of-rude", "rude", "callback", body).OK() {
					accepted.Add(1)
				} else {
					refused.Add(1)
				}
			})
			synctest.Wait()
		}
		before := refused.Load()
		if got := e.Stats().ResultsRefused; got != before || before == 0 {
			t.Errorf("%d requests are counted, and %d were refused", got, before)
		}
		close(hang)
		all.Wait()
		if got := e.Stats().ResultsRefused; got != before || refused.Load() != before || accepted.Load() != 12-before {
			t.Errorf("when there is room again, %d requests are counted, %d were refused and %d accepted", got, refused.Load(), accepted.Load())
		}
	})
}

// TestRefusedRegistrationsAreCounted: the same for those that register.
func TestRefusedRegistrationsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.Wrap(memory.New())
		e := twoApps(t, faults)
		const executors = 9000
		hang := make(chan struct{})
		faults.Inject("PutAddresses", storetest.Fault{Hang: hang})
		can := slices.Repeat([]string{strings.Repeat("c", 32)}, 16)
		var refused, accepted atomic.Uint64
		var all sync.WaitGroup
		for i := range executors {
			body := wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: "rude", RegistryValue: fmt.Sprintf("http://10.1.%d.%d:9999/", i/200, i%200), Capabilities: can}.Encode(nil)
			all.Go(func() {
				if stage.Post(t, e.admin, "of-rude", "rude", "registry", body).OK() {
					accepted.Add(1)
				} else {
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		before := refused.Load()
		if got := e.Stats().RegistrationsRefused; got != before || before == 0 {
			t.Errorf("%d registrations are counted, and %d were refused", got, before)
		}
		close(hang)
		all.Wait()
		if got := e.Stats().RegistrationsRefused; got != before || refused.Load() != before || accepted.Load() != executors-before {
			t.Errorf("when there is room again, %d registrations are counted, %d were refused and %d accepted", got, refused.Load(), accepted.Load())
		}
	})
}
