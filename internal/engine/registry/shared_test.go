package registry_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/loop"
)

// TestSharedAddresses: an address counts as one of several processes for an hour after that has
// shown last, and no more of them are remembered than there is room for.
func TestSharedAddresses(t *testing.T) {
	began := time.Unix(0, 0)
	a := registry.NewMemory(time.Minute, loop.NewWake()).Liveness
	key := func(i int) registry.SiteKey { return registry.SiteKey{App: "app", Address: fmt.Sprint("http://", i)} }
	must := func(i int, after, want time.Duration) {
		t.Helper()
		if how, left := a.Shared(key(i), began.Add(after)); left != want || (how != "") != (want > 0) {
			t.Errorf("%d after %v: %q for %v, want %v", i, after, how, left, want)
		}
	}
	must(0, 0, 0)
	a.TookTurns(key(0), began)
	must(0, 0, time.Hour)
	must(1, 0, 0)
	a.TookTurns(key(0), began.Add(time.Minute))
	must(0, time.Hour, time.Minute)
	must(0, time.Hour+time.Minute, 0)
	for i := range 3000 {
		a.TookTurns(key(i), began.Add(time.Duration(i)*time.Second))
	}
	kept := 0
	for i := range 3000 {
		if _, left := a.Shared(key(i), began.Add(3000*time.Second)); left > 0 {
			kept++
		}
	}
	if kept != 1000 {
		t.Errorf("%d are remembered", kept)
	}
	must(2999, 3000*time.Second, time.Hour-time.Second)
}
