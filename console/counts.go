package console

// How many there are: of the runs and jobs behind the links above lists, and of what needs attention,
// which the rail says.

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/console/internal/lang"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
)

const (
	mostCounted  = 1000             // of a kind
	countedSince = 24 * time.Hour   // of runs that have ended
	countedFor   = 5 * time.Second  // how old counts may be that are shown without another reading,
	polledFor    = 15 * time.Second // and where a page is refreshed
	countsKept   = time.Minute      // how old those may be that the rail shows where none are read
	mostCounts   = 64               // kept, each for people of the same rights
	countsAtOnce = 2

	countsPatience = 100 * time.Millisecond
)

// count is how many there are of a kind, or as many as were counted.
type count struct {
	N    int
	More bool
}

func (c count) String() string {
	if c.More {
		return lang.Number(int64(c.N)) + "+"
	}
	return lang.Number(int64(c.N))
}

// counts are what was counted, by the key of the preset, or "overview" for what needs attention.
type counts struct {
	at  time.Time
	of  map[string]count
	era int // changes that were made here before
}

// counted are the last counts of those who may see the same.
type counted struct {
	mu  sync.Mutex
	by  map[string]counts // guarded by mu
	era int               // guarded by mu: changes that were made here
	on  map[string]bool   // guarded by mu: what is being counted, by key; never more than countsAtOnce

	patience time.Duration // of a list that has no counts to show; countsPatience, and longer in tests
}

// begin counts beside the request, if nobody counts the same: what is read beside requests costs no more
// than two of them. It returns what is closed when that has ended, and nil where it has not begun.
func (k *counted) begin(key string, count func()) (done <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.on[key] || len(k.on) >= countsAtOnce {
		return nil
	}
	if k.on == nil {
		k.on = map[string]bool{}
	}
	k.on[key] = true
	end := make(chan struct{})
	go func() {
		defer func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			delete(k.on, key)
			close(end)
		}()
		count()
	}()
	return end
}

// last returns what was counted no longer ago than that, if something was changed here since or not; nil
// where nothing was.
func (k *counted) last(key string, within time.Duration) *counts {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, there := k.by[key]
	if age := time.Since(c.at); !there || age < 0 || age >= within {
		return nil
	}
	return &c
}

// keep keeps counts. There are never more than so many: where all are young, one of them goes.
func (k *counted) keep(key string, c counts) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.by == nil {
		k.by = map[string]counts{}
	}
	for other, old := range k.by {
		if age := time.Since(old.at); age < 0 || age >= countsKept || len(k.by) >= mostCounts {
			delete(k.by, other)
		}
	}
	k.by[key] = c
}

// changed has the next list count anew, and what is being counted now not be taken for it.
func (k *counted) changed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.era++
}

// now is how many changes were made here.
func (k *counted) now() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.era
}

// countsKey is what counts depend on.
func (q *request) countsKey() string { return fmt.Sprintf("counts %t %q", q.user.Admin, q.user.Apps) }

// learnCounts counts for a list, once in a while for all who may see the same. It reads a hundred times
// what a list does, so the list waits for it a moment only, and where it shows nothing else: what was
// counted last is there meanwhile, and what comes too late is there when the page is refreshed.
func (q *request) learnCounts() {
	key, young := q.countsKey(), countedFor
	if q.IsPart() {
		young = polledFor
	}
	era := q.counted.now()
	q.counts = q.counted.last(key, young)
	if q.counts != nil && q.counts.era == era {
		return
	}
	ctx, cancel := context.WithTimeout(store.WithShortTexts(context.WithoutCancel(q.ctx), 0), partTime)
	// A request of its own, since this one goes on.
	beside := &request{console: q.console, Exchange: q.Beside(), ctx: ctx, user: q.user, look: q.look}
	done := q.counted.begin(key, func() {
		defer cancel()
		c, err := beside.readCounts()
		if c.era = era; err != nil {
			beside.Logger.Info("console: lists are shown without counts", "request", beside.ID, "error", err)
			if c.of = nil; beside.counted.last(key, countsKept) != nil {
				c.of = beside.counted.last(key, countsKept).of
			}
		}
		beside.counted.keep(key, c)
	})
	if done == nil {
		cancel()
	}
	if q.counts = q.counted.last(key, countsKept); done != nil && (q.counts == nil || q.counts.era != era) {
		select {
		case <-done:
		case <-time.After(q.counted.patience):
		}
		q.counts = q.counted.last(key, countsKept)
	}
}

// readCounts asks the store, for a bounded number of everything.
func (q *request) readCounts() (c counts, err error) {
	defer func() { // it would end the process: there is nobody above who recovers
		if v := recover(); v != nil {
			err = fmt.Errorf("counting has panicked: %v", v)
		}
	}()
	c = counts{at: time.Now(), of: map[string]count{}}
	apps, all, err := q.visibleApps()
	if err != nil || !all && len(apps) == 0 {
		return c, err
	}
	apps = apps[:min(len(apps), mostAppsRead)]
	if err := q.countRuns(&c, apps); err != nil {
		return c, err
	}
	if err := q.countJobs(&c, apps); err != nil {
		return c, err
	}
	world, err := q.readWorld(q.ctx)
	if err != nil {
		return c, err
	}
	mutes, err := q.readMutes()
	if err != nil {
		return c, err
	}
	seen := q.seenOf(world)
	open, _ := q.apart(q.attentionHere(seen), q.muted(mutes), &seen)
	c.of["overview"] = count{N: len(open)}
	return c, nil
}

// countRuns counts those that have not ended, and those that did of late in ways that are asked for.
func (q *request) countRuns(c *counts, apps []string) error {
	reader, ok := q.Store.(store.RunReader)
	if !ok {
		return nil
	}
	open, err := reader.OpenRuns(q.ctx, mostCounted)
	if err != nil {
		return err
	}
	sum := func(by map[string]int) (n int) {
		for app, of := range by {
			if allowed(q.user, see, app) {
				n += of
			}
		}
		return n
	}
	// That there are more says something of all apps, and is for whoever sees them.
	if _, all := visible(q.user, nil); all || !open.MoreRunning {
		c.of["open"] = count{sum(open.Running), open.MoreRunning}
	}
	if _, all := visible(q.user, nil); all || !open.MorePlanned {
		c.of[waiting] = count{sum(open.Planned), open.MorePlanned}
	}
	now, err := q.storeNow()
	for _, state := range []string{"bad", "skipped"} {
		if err != nil {
			break
		}
		states, _ := statesOf(state)
		var found store.RunsFound
		found, err = reader.SearchRuns(q.ctx, store.RunSearch{Apps: apps, States: states, Since: now.Add(-countedSince), Limit: mostCounted})
		c.of[state] = count{len(found.Runs), found.SearchedTo > 1}
	}
	return err
}

// countJobs counts those that fail, and those that are stopped.
func (q *request) countJobs(c *counts, apps []string) error {
	reader, ok := q.Store.(store.JobReader)
	if !ok {
		return nil
	}
	stopped := true
	off, err := reader.SearchJobs(q.ctx, store.JobSearch{Apps: apps, Stopped: &stopped, Limit: mostCounted})
	if err != nil {
		return err
	}
	self := 0
	for i := range off {
		if off[i].StopReason != "" {
			self++
		}
	}
	c.of["off"], c.of["self"] = count{len(off), len(off) == mostCounted}, count{self, len(off) == mostCounted}
	if _, searches := q.Store.(store.RunReader); !searches {
		return nil
	}
	failing, more, err := q.failing(&jobFilter{rows: mostCounted}, &store.JobSearch{Apps: apps})
	c.of["failing"] = count{len(failing), more}
	return err
}

// counts are those of a list of which nothing else is asked than what the presets ask: of others it
// is not known how many there are.
func (q *request) presetCounts(list []preset, others []string) []preset {
	if slices.ContainsFunc(others, func(name string) bool { return q.Query(name) != "" }) {
		return list
	}
	for i := range list {
		if q.counts == nil {
			break
		}
		c, there := q.counts.of[list[i].count]
		if list[i].Counted = there; there {
			list[i].Count, list[i].Lately = c.String(), list[i].count == "bad" || list[i].count == "skipped"
		}
	}
	return list
}

// Causes is how many things need attention, as the rail says it: as far as that was found out within
// a minute, and "" where there are none.
func (p *page) Causes() string {
	if p.q.user == nil {
		return ""
	}
	c := p.q.counts
	if c == nil {
		c = p.q.counted.last(p.q.countsKey(), countsKept)
	}
	if c == nil || c.of["overview"].N == 0 {
		return ""
	}
	return c.of["overview"].String()
}

// jobPresets are questions about jobs that are asked often, as links.
func (q *request) jobPresets() (list []preset) {
	for _, p := range []struct{ key, name, value string }{{"failing", "failing", "yes"}, {"off", "state", "off"}, {"self", "state", "self"}} {
		one := preset{Key: "jobs.preset." + p.key, count: p.key, Set: q.Query(p.name) == p.value}
		values := map[string]string{"failing": "", "state": "", "after": "", web.Trail: "", "seen": "", "said": ""}
		if !one.Set {
			values[p.name] = p.value
		}
		one.Link = q.With(values)
		list = append(list, one)
	}
	return list
}
