package queue

import (
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/compact"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/internal/idmap"
	"github.com/xxljob/xxljob/internal/timering"
	"github.com/xxljob/xxljob/store"
)

// What a node holds of an app's planned runs. Memory is bounded: of an app with
// more runs than that the node holds the earliest, up to a horizon, and reads on
// in the store when they run low.

// held are the planned runs that a node has in memory: on the ring, due, waiting or
// being started.
type held struct {
	most  int // of an app: Limits.MaxHeld
	wakes core.Wakes
	jobs  *jobBook
	// Nowhere is the route of runs that are not routed yet.
	nowhere *Routed

	mu   *sync.Mutex         // the lock of the Queue
	ring *guardedRing        // guarded by mu
	runs idmap.Map[*Entry]   // guarded by mu
	apps map[string]*holding // guarded by mu: what is held of each app
}

func newHeld(cfg *core.Config, wakes core.Wakes, jobs *jobBook, mu *sync.Mutex, panics *guard.Log) *held {
	held := &held{
		most: cfg.Limits.MaxHeld, wakes: wakes, jobs: jobs, nowhere: &Routed{}, mu: mu, apps: map[string]*holding{},
	}
	held.ring = newGuardedRing(cfg, panics, held.onRing)
	return held
}

// onRing are the runs that have not come up yet.
func (hr *held) onRing(yield func(at time.Time, runID int64)) {
	for id, en := range hr.runs.All() {
		if !en.due {
			yield(en.Run.Scheduled(), id)
		}
	}
}

// holding is what a node holds of one app.
type holding struct {
	n int
	// bounded says that runs behind the horizon are in the store only.
	bounded bool
	horizon timering.Key
}

// entries are what is held of runs, in their order; nil where nothing is. They are looked up one
// right after the other: so the processor waits for the memory of many at once.
func (hr *held) entries(ids []int64) []*Entry {
	all := make([]*Entry, len(ids))
	for i, id := range ids {
		all[i] = hr.runs.Of(id)
	}
	return all
}

func (hr *held) holdOne(r *store.Run, job *store.Job) {
	hr.runs.Set(r.ID, &Entry{Run: compact.PlannedOf(r), Ref: hr.jobs.ref(r.JobID, job), held: true})
	hr.apps[r.App].n++
	hr.ring.push(r.Scheduled, r.ID)
}

// hasRoom reports whether a run is to be held: it is not behind the horizon, or
// there is none. A full app gets one, for which some are forgotten.
func (hr *held) hasRoom(r *store.Run) (has bool, forgotten []*Entry) {
	h := hr.apps[r.App]
	if h == nil {
		h = &holding{}
		hr.apps[r.App] = h
	}
	key := compact.KeyOf(r)
	if h.n >= hr.most && (!h.bounded || !h.horizon.Before(key)) {
		forgotten = hr.shed(r.App, h)
	}
	return !h.bounded || !h.horizon.Before(key), forgotten
}

// shed forgets the last quarter of what is on the ring for an app: more than that, and the
// next look would read it again at once. The ring goes on holding their ids, which mean
// nothing any more when they come up.
func (hr *held) shed(app string, h *holding) (forgotten []*Entry) {
	var keys []timering.Key
	for _, en := range hr.runs.All() {
		if en.Run.App == app && !en.due {
			keys = append(keys, en.Run.Key())
		}
	}
	h.bounded = true
	if len(keys) < 2 {
		h.horizon = timering.Key{} // all that is held is due: nothing else fits
		return nil
	}
	slices.SortFunc(keys, func(a, b timering.Key) int {
		if a.Before(b) {
			return -1
		}
		return 1
	})
	kept := max(1, len(keys)*3/4)
	h.horizon = keys[kept-1]
	for _, k := range keys[kept:] {
		en := hr.runs.Of(k.RunID)
		hr.unhold(en)
		forgotten = append(forgotten, en)
	}
	hr.wakes.Scan.Poke()
	return forgotten
}

// unhold takes an entry out of the books.
func (hr *held) unhold(en *Entry) {
	en.held = false
	hr.runs.Delete(en.Run.ID)
	hr.jobs.unref(en.Ref)
	h := hr.apps[en.Run.App]
	h.n--
	switch {
	case h.n == 0 && !h.bounded:
		delete(hr.apps, en.Run.App)
	case h.n <= hr.most/2 && h.bounded:
		hr.wakes.Scan.Poke()
	}
}

// Thirsty returns the apps that have runs in the store only and too few here,
// with the key behind which to read on.
func (hr *held) Thirsty() map[string]timering.Key {
	hr.mu.Lock()
	defer hr.mu.Unlock()
	var apps map[string]timering.Key
	for app, h := range hr.apps {
		if h.bounded && h.n <= hr.most/2 {
			if apps == nil {
				apps = map[string]timering.Key{}
			}
			apps[app] = h.horizon
		}
	}
	return apps
}

// HoldNext holds a page of an app's runs from behind its horizon, which moves on
// with them; last says that nothing comes behind the page. It reports whether
// there is room for another page. Where the horizon is not any more where the
// page begins, some of what was held is forgotten: the page is not held.
func (hr *held) HoldNext(app string, from timering.Key, runs []store.Run, last bool) (more bool) {
	hr.mu.Lock()
	defer hr.mu.Unlock()
	h := hr.apps[app]
	if h == nil || h.horizon != from {
		return false
	}
	for i := range runs {
		if hr.runs.Of(runs[i].ID) == nil {
			hr.holdOne(&runs[i], nil)
		}
		h.horizon = compact.KeyOf(&runs[i])
	}
	hr.wakes.Start.Poke()
	if last {
		h.bounded = false
		if h.n == 0 {
			delete(hr.apps, app)
		}
	}
	return !last && h.n < min(hr.most*3/4, hr.most-core.ScanRuns)
}

// nextDue is when the ring has something due, and how much, at most.
func (hr *held) nextDue() (at time.Time, n int, ok bool) {
	hr.mu.Lock()
	defer hr.mu.Unlock()
	return hr.ring.next()
}

// RefreshRuns is entry.refresh for those of the runs that are held.
func (hr *held) RefreshRuns(runs []store.Run) {
	hr.mu.Lock()
	defer hr.mu.Unlock()
	for i := range runs {
		if en := hr.runs.Of(runs[i].ID); en != nil {
			en.refresh(&runs[i])
		}
	}
}

// Unheld are those of the runs that are neither held nor behind the horizon of a full
// app.
func (hr *held) Unheld(runs []store.Run) (missing []store.Run) {
	hr.mu.Lock()
	defer hr.mu.Unlock()
	for i := range runs {
		r := &runs[i]
		if h := hr.apps[r.App]; hr.runs.Of(r.ID) == nil && !(h != nil && h.bounded && h.horizon.Before(compact.KeyOf(r))) {
			missing = append(missing, *r)
		}
	}
	return missing
}
