package xxljob_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/xxljob/xxljob"
)

// TestAllFaultsOfAJob: all faults come as one error; that the schedule never
// fires, and that a group names an address twice, is said only when nothing else
// is wrong.
func TestAllFaultsOfAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := refuseWorld(t, xxljob.Config{})
		_, err := s.AddJob(t.Context(), xxljob.Job{Name: "job", Handler: "work", Route: "NORTH", Schedule: xxljob.Cron("0 0 0 30 2 ?")})
		if !errors.Is(err, xxljob.ErrUnknownRoute) || !errors.Is(err, xxljob.ErrNeverFires) {
			t.Errorf("AddJob: %v", err)
		}
		noErr(t, s.Stop(t.Context()))
	})
}
