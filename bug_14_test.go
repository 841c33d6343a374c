package xxljob_test

import (
	"testing"
	"testing/synctest"

	"github.com/xxljob/xxljob"
)

// TestUpdateLeavesNoKey: a job that came by import may have no Key. UpdateJob
// gives it its name for one, which another job of the app may have.
func TestUpdateLeavesNoKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, st := refuseWorld(t, xxljob.Config{})
		imported := goodJob()
		imported.App, imported.Key, imported.Name = "app", "", "one" // there is a job with this Key
		imported, err := st.AddJob(t.Context(), imported)
		noErr(t, err)
		imported.Author = "me"
		if job, err := s.UpdateJob(t.Context(), imported); err != nil || job.Key != "" {
			t.Errorf("Key %q, %v", job.Key, err)
		}
		noErr(t, s.Stop(t.Context()))
	})
}
