package xxljobtest

import (
	"io"
	"sync"
	"testing"
	"testing/synctest"
)

// settle lets everything happen that is due, and returns true, when the test is
// inside a bubble: a Sleep that ends at an instant at which jobs are due may return
// before they have run. Outside of a bubble there is nothing like it, and
// synctest.Wait panics, which is the only way to tell.
func settle() (inBubble bool) {
	defer func() { inBubble = recover() == nil }()
	synctest.Wait()
	return true
}

// output is the output of a test until its end. A handler that ignores
// cancellation may outlive the test, and writing to a test that is over panics.
type output struct {
	mu sync.Mutex
	w  io.Writer // guarded by mu
}

func newOutput(t testing.TB) *output { return &output{w: t.Output()} }

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}

func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w = io.Discard
}
