package registry_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/engine/registry"
)

// TestGoodbyesAreBounded: addresses that are gone are remembered by app, so that one which says
// goodbye for many leaves those of the others alone, and old ones make room.
func TestGoodbyesAreBounded(t *testing.T) {
	const at1 = "http://10.0.0.1:9999/"
	var gone registry.Gone
	now := time.Now()
	gone.Note("near", at1, now)
	for i := range 3 * registry.MaxGone {
		gone.Note("far", fmt.Sprint(i), now)
		gone.Note(fmt.Sprint("made-up-", i%100), fmt.Sprint(i%20), now)
	}
	if n := gone.Len(); n > registry.MaxGone || !gone.Has("near", at1) {
		t.Errorf("%d are remembered, at most %d may be; the other app's: %t", n, registry.MaxGone, gone.Has("near", at1))
	}
	for i := range registry.MaxGone + 1 { // a long time later
		gone.Note(fmt.Sprint("new-", i), at1, now.Add(time.Hour))
	}
	if gone.Has("near", at1) {
		t.Error("old ones are kept")
	}
}
