package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/loop"
)

// Places that abandoned handlers hold: comes in what executors of this process say of them, goes
// out lines in the log, and a reason for Ready. Nothing fails for it: runs wait, and no more.

type placesWatch struct {
	*core.Core
	attached *registry.AttachedSet
}

// duty logs once for each executor that runs are kept waiting, and that it is over. It sleeps
// while no abandoned handler holds a place.
func (w *placesWatch) duty() loop.Duty {
	said := map[string]time.Time{} // by app: since when it was told of
	return loop.Duty{What: "looking for places of abandoned handlers", Aside: true, Wakes: []<-chan struct{}{w.Life.Wakes.Abandoned}, Once: func(context.Context) (time.Duration, error) {
		now := time.Now()
		all := w.attached.Stuck()
		keep := map[string]bool{}
		for i := range all {
			s := &all[i]
			if keep[s.App] = s.Keep(now.Add(-w.Cfg.Cluster.LeaseTTL)); keep[s.App] && said[s.App].IsZero() {
				said[s.App] = now
				w.Logger.Error("xxljob: abandoned handlers hold places, and due runs wait for one; they hold them until they return or the process ends",
					"app", s.App, "held", s.Places, "places", s.Of, "handlers", strings.Join(s.Handlers, ","),
					"for", now.Sub(s.Since).Round(time.Millisecond), "oldest_waits", now.Sub(s.Waiting).Round(time.Millisecond))
			}
		}
		for app, since := range said {
			if !keep[app] {
				delete(said, app)
				w.Logger.Info("xxljob: abandoned handlers do not keep runs waiting any more", "app", app, "lasted", now.Sub(since).Round(time.Millisecond))
			}
		}
		if len(all)+len(said) == 0 {
			return loop.Forever, nil
		}
		return w.Cfg.Cluster.LeaseTTL / 8, nil
	}}
}

// judge adds executors at which abandoned handlers keep due runs waiting.
func (w *placesWatch) judge(e *core.NotReadyError, now time.Time) {
	for _, s := range w.attached.Stuck() {
		if s.Keep(now.Add(-w.Cfg.Cluster.LeaseTTL)) {
			e.Add(core.NotReadyPlaces, fmt.Errorf("app %q: abandoned handlers (%s) hold %d of %d places, and a due run has waited for one for %v",
				s.App, strings.Join(s.Handlers, ", "), s.Places, s.Of, now.Sub(s.Waiting).Round(time.Millisecond)))
		}
	}
}

// held is how many places abandoned handlers hold.
func (w *placesWatch) held() (n int) {
	for _, s := range w.attached.Stuck() {
		n += s.Places
	}
	return n
}
