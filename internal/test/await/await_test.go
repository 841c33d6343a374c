package await_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/test/await"
)

// doomed is a test whose deadline is over, or which has none.
type doomed struct {
	testing.TB
	bounded bool
	said    string
}

func (d *doomed) Helper()                     {}
func (d *doomed) Deadline() (time.Time, bool) { return time.Now(), d.bounded }
func (d *doomed) Fatalf(format string, args ...any) {
	d.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestUntil(t *testing.T) {
	for _, bounded := range []bool{false, true} {
		d := &doomed{TB: t, bounded: bounded}
		looks := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			await.Until(d, "the third look", func() bool { looks++; return looks == 3 })
		}()
		<-done
		if failed := d.said != ""; failed != bounded {
			t.Errorf("bounded %v: said %q after %d looks", bounded, d.said, looks)
		}
	}
	await.Until(t, "now", func() bool { return true })
}
