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

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// TestRefusedResultsAreCounted: each request that is told to come again.
func TestRefusedResultsAreCounted(t *testing.T) {
	page := repeated(wire.CallbackRequest{HandleCode: 200, HandleMsg: strings.Repeat("x", 15_000)}, 2) // short enough to be read whatever else is
	refusedAreCounted(t, "callback", "RunsByID", 400, func(i int) []byte {
		for k := range page {
			page[k].LogID = int64(1<<40 + 1000*i + k)
		}
		return wire.EncodeCallback(nil, wire.CallbackList, page)
	}, func(s xxljob.Stats) uint64 { return s.ResultsRefused })
}

// TestRefusedRegistrationsAreCounted: the same for those that register.
func TestRefusedRegistrationsAreCounted(t *testing.T) {
	can := slices.Repeat([]string{strings.Repeat("c", 32)}, 16)
	refusedAreCounted(t, "registry", "PutAddresses", 9000, func(i int) []byte {
		return wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: "rude", RegistryValue: fmt.Sprintf("http://10.1.%d.%d:9999/", i/200, i%200), Capabilities: can}.Encode(nil)
	}, func(s xxljob.Stats) uint64 { return s.RegistrationsRefused })
}

// refusedAreCounted posts requests of one app while a method of the store hangs, more than there
// is room for, and compares how many were refused with what the node has counted: then, and when
// the store is back.
func refusedAreCounted(t *testing.T, path, method string, requests int, body func(i int) []byte, counted func(xxljob.Stats) uint64) {
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.Wrap(memory.New())
		e := twoApps(t, faults)
		hang := make(chan struct{})
		faults.Inject(method, storetest.Fault{Hang: hang})
		var refused, accepted atomic.Uint64
		var all sync.WaitGroup
		for i := range requests {
			b := body(i)
			all.Go(func() {
				if stage.Post(t, e.admin, "of-rude", "rude", path, b).OK() {
					accepted.Add(1)
				} else {
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		before := refused.Load()
		if got := counted(e.Stats()); got != before || before == 0 {
			t.Errorf("%d requests are counted, and %d were refused, %d accepted", got, before, accepted.Load())
		}
		close(hang)
		all.Wait()
		if got := counted(e.Stats()); got != before || refused.Load() != before || accepted.Load() != uint64(requests)-before {
			t.Errorf("when there is room again, %d requests are counted, %d were refused and %d accepted", got, refused.Load(), accepted.Load())
		}
	})
}
