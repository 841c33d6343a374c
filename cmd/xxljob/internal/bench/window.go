package bench

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/internal/test/measure"
)

// window is the time that is measured: what is used in it, and how much memory at once.
type window struct {
	meter measure.Meter
	begun measure.Moment
	heap  *measure.HeapWatch
}

// openWindow begins to measure. The caller has to call close.
func (n *node) openWindow(ctx context.Context, m measure.Meter) *window {
	if n.fleet != nil {
		m.Children = n.fleet.pids()
	}
	measure.ResetPeakRSS()
	return &window{meter: m, begun: m.Now(ctx), heap: measure.WatchHeap(20 * time.Millisecond)}
}

// close ends the measurement and says in the report what was used at most.
func (w *window) close(ctx context.Context, r *Report, f *fleet) measure.Usage {
	used := w.begun.To(w.meter.Now(ctx))
	r.PeakHeap = w.heap.Stop()
	r.PeakRSS = measure.Proc{}.PeakRSS()
	if f != nil {
		r.PeakChildren = f.peak()
	}
	r.Seconds = used.Elapsed.Seconds()
	r.OtherCores = used.OtherCores
	return used
}
