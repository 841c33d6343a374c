package finding

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// What Read asks for at most.
const (
	mostBad     = 1000 // ended badly, of which the jobs are looked at
	mostLooked  = store.MostLastRuns / LastRuns
	mostWaiting = 1000
	mostStopped = 1000
	mostOpen    = 1000
	badSince    = 8 * 24 * time.Hour
	mostJobs    = 1000
	mostAddress = 1000 // a page
	mostPages   = 20
	mostNotes   = 100 // of runs, and so many at once: their rows are read as a whole
	notesAtOnce = 20
)

// Read reads from a store what [Attention] looks at. However much is in the store, what it costs is
// bounded: of runs that ended badly the newest 1,000 of eight days are looked at, among the newest
// 20,000 of all, and of runs that wait, that are under way, and of jobs that are stopped, 1,000 each.
// What the store cannot be asked is left out, see [store.RunReader], [store.JobReader] and
// [store.ClusterReader]. Troubles are the caller's to add. Errors are those of the store.
func Read(ctx context.Context, st store.Store) (World, error) {
	r := reader{ctx: ctx, st: st}
	w, err := r.cluster("")
	if err != nil {
		return w, err
	}
	if jobs, ok := st.(store.JobReader); ok {
		if w.Counts, err = jobs.CountJobs(ctx); err != nil {
			return w, err
		}
		stopped := true
		found, err := jobs.SearchJobs(store.WithShortTexts(ctx, 0), store.JobSearch{Stopped: &stopped, Limit: mostStopped})
		if err != nil {
			return w, err
		}
		for _, j := range found {
			if stoppedByError(&j) {
				w.Jobs = append(w.Jobs, j)
			}
		}
	}
	if runs, ok := st.(store.RunReader); ok {
		if err := r.runs(runs, &w); err != nil {
			return w, err
		}
	}
	return w, r.jobsOf(&w)
}

// ReadCluster is [Read] without how runs have ended and without jobs: what [Attention] finds in it of
// nodes, shards and apps that nobody serves is what it finds of these in a World of Read. Bounds and
// errors are those of Read.
func ReadCluster(ctx context.Context, st store.Store) (World, error) {
	r := reader{ctx: ctx, st: st}
	w, err := r.cluster("")
	if err != nil {
		return w, err
	}
	if jobs, ok := st.(store.JobReader); ok {
		if w.Counts, err = jobs.CountJobs(ctx); err != nil {
			return w, err
		}
	}
	if runs, ok := st.(store.RunReader); ok {
		err = r.open(store.WithShortTexts(ctx, shortText), runs, &w)
	}
	return w, err
}

// LastRuns is how many of the last runs of a job are looked at.
const LastRuns = 20

// reader asks a store.
type reader struct {
	ctx context.Context
	st  store.Store
}

// cluster reads nodes, shards and who serves the apps, or this one, of which no addresses are read.
func (r reader) cluster(app string) (w World, err error) {
	if c, ok := r.st.(store.ClusterReader); ok {
		view, err := c.View(r.ctx)
		if err != nil {
			return w, err
		}
		w.Now, w.Nodes, w.Shards = view.Now, view.Nodes, view.Shards
	} else if w.Now, err = r.st.Now(r.ctx); err != nil {
		return w, err
	}
	if w.Now.IsZero() { // a store in this process goes by its clock
		w.Now = time.Now()
	}
	if app == "" {
		w.Groups, err = r.st.Groups(r.ctx)
	} else if g, one := r.st.Group(r.ctx, app); one == nil {
		w.Groups = []store.Group{g}
	} else if !errors.Is(one, store.ErrNotFound) {
		err = one
	}
	if err != nil {
		return w, err
	}
	apps := []string{app}
	if app == "" {
		apps = make([]string, 0, len(w.Groups))
		for _, g := range w.Groups {
			apps = append(apps, g.App)
		}
	}
	for batch := range slices.Chunk(apps, mostAddress) {
		served, err := r.st.Served(r.ctx, batch)
		if err != nil {
			return w, err
		}
		w.Served = append(w.Served, served...)
	}
	if app != "" {
		return w, nil
	}
	f := store.RegistrationFilter{Limit: mostAddress}
	for range mostPages {
		regs, err := r.st.Registrations(r.ctx, f)
		if err != nil {
			return w, err
		}
		w.Registrations = append(w.Registrations, regs...)
		if len(regs) < f.Limit {
			break
		}
		last := regs[len(regs)-1]
		f.After, f.AfterAddress = last.App, last.Address
	}
	return w, nil
}

// runs reads what waits and runs, runs that have ended badly, and the last runs of the jobs of these
// and of those that wait.
func (r reader) runs(st store.RunReader, w *World) error {
	ctx := store.WithShortTexts(r.ctx, shortText)
	if err := r.open(ctx, st, w); err != nil {
		return err
	}
	bad, err := st.SearchRuns(ctx, store.RunSearch{States: []store.State{store.StateFailed, store.StateTimedOut, store.StateLost, store.StateRefused},
		Since: w.Now.Add(-badSince), Limit: mostBad})
	if err != nil {
		return err
	}
	if bad.SearchedTo > 1 || len(bad.Runs) == mostBad {
		w.Back = bad.SearchedTime
	}
	jobs := map[int64]bool{}
	for i := range w.Waiting {
		jobs[w.Waiting[i].JobID] = true
	}
	for i := range bad.Runs {
		jobs[bad.Runs[i].JobID] = true
	}
	if ids := slices.Sorted(maps.Keys(jobs)); len(ids) > 0 {
		if w.Ended, err = st.LastRuns(ctx, ids[:min(len(ids), mostLooked)], LastRuns); err != nil {
			return err
		}
	}
	return ReadNotes(r.ctx, r.st, w.Ended)
}

// ReadNotes fills in [store.Run.TriggerMsg] of those ended runs, newest first and as lists have them without
// it ([store.WithShortTexts]), where that text alone says whether another attempt follows: of the last attempts
// of triggers that have given a number of retries. It reads the texts of the first 100 of these. Errors are
// those of the store.
func ReadNotes(ctx context.Context, st store.Store, ended []store.Run) error {
	last := map[[2]int64]bool{} // by trigger and part
	at := map[int64]int{}
	for i := range ended {
		r := &ended[i]
		part := [2]int64{cmp.Or(r.TriggerID, r.ID), int64(r.Sharding.Index)}
		if !last[part] && isBad(r.State) && r.RetriesSet && r.KillReason == "" && r.TriggerMsg == "" && !r.FailedForGood() && len(at) < mostNotes {
			at[r.ID] = i
		}
		last[part] = true
	}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(at)), notesAtOnce) {
		runs, err := st.RunsByID(ctx, ids)
		if err != nil {
			return err
		}
		for i := range runs {
			ended[at[runs[i].ID]].TriggerMsg = runs[i].TriggerMsg
		}
	}
	return nil
}

// open reads what waits though it is due, and what is under way.
func (r reader) open(ctx context.Context, st store.RunReader, w *World) error {
	waiting, err := st.Waiting(ctx, store.Run{}, mostWaiting)
	if err != nil {
		return err
	}
	for _, x := range waiting {
		if x.Scheduled.Before(w.Now) {
			w.Waiting = append(w.Waiting, x)
		}
	}
	running, err := st.SearchRuns(ctx, store.RunSearch{States: []store.State{store.StateStarted, store.StateDispatched}, Limit: mostOpen})
	w.Running = running.Runs
	return err
}

// shortText is how much of a run's texts is read: an error's first line is within it.
const shortText = 600

// jobsOf reads the jobs of the runs, but for those that are there already.
func (r reader) jobsOf(w *World) error {
	seen := map[int64]bool{}
	for i := range w.Jobs {
		seen[w.Jobs[i].ID] = true
	}
	var ids []int64
	for _, list := range [][]store.Run{w.Ended, w.Waiting, w.Running} {
		for i := range list {
			if id := list[i].JobID; !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	for batch := range slices.Chunk(ids, mostJobs) {
		jobs, err := r.st.Jobs(store.WithShortTexts(r.ctx, 0), store.JobFilter{IDs: batch, Limit: len(batch)})
		if err != nil {
			return err
		}
		w.Jobs = append(w.Jobs, jobs...)
	}
	return nil
}

// ReadJob reads from a store what [WhyJob] and [WhyRun] look at, of one job. A job that is not there
// is no error: WhyJob says so. Of other apps no addresses are read,
// and of its own one that lives, where nothing else says who serves it.
func ReadJob(ctx context.Context, st store.Store, id int64) (World, error) {
	j, err := st.Job(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return World{}, nil
	} else if err != nil {
		return World{}, err
	}
	w, err := ReadAround(ctx, st, j)
	if err != nil {
		return w, err
	}
	if w.Skipped, err = st.Runs(store.WithShortTexts(ctx, shortText), store.RunFilter{JobID: id, States: []store.State{store.StateSkipped}, Limit: LastRuns}); err != nil {
		return w, err
	}
	if runs, ok := st.(store.RunReader); ok {
		if w.Ended, err = runs.LastRuns(store.WithShortTexts(ctx, shortText), []int64{id}, LastRuns); err != nil {
			return w, err
		}
	}
	return w, ReadNotes(ctx, st, w.Ended)
}

// ReadAround is [ReadJob] for who has read the job itself and its last runs: World.Ended and
// World.Skipped are the caller's to add, the newest [LastRuns] of each.
func ReadAround(ctx context.Context, st store.Store, j store.Job) (World, error) {
	w, err := (reader{ctx: ctx, st: st}).cluster(j.App)
	if err != nil {
		return w, err
	}
	w.Jobs = []store.Job{j}
	ctx = store.WithShortTexts(ctx, shortText)
	open := []store.State{store.StatePlanned, store.StateStarted, store.StateDispatched}
	var newest []store.Run
	if runs, ok := st.(store.RunReader); ok {
		found, err := runs.SearchRuns(ctx, store.RunSearch{JobIDs: []int64{j.ID}, States: open, Limit: mostOpen})
		if err != nil {
			return w, err
		}
		newest = found.Runs
	} else if newest, err = st.Runs(ctx, store.RunFilter{JobID: j.ID, States: open, Limit: mostOpen}); err != nil {
		return w, err
	}
	for _, x := range newest {
		switch {
		case x.State != store.StatePlanned:
			w.Running = append(w.Running, x)
		case x.Scheduled.Before(w.Now):
			w.Waiting = append(w.Waiting, x)
		default:
			w.Planned = append(w.Planned, x)
		}
	}
	// One address that lives says what nodes and what they have noted do not.
	l := lookAt(&w)
	if has, known := l.hasHandler(&j); !l.served[j.App] || known && !has {
		w.Registrations, err = st.Registrations(ctx, store.RegistrationFilter{App: j.App, Within: defaultDead, Limit: 1})
	}
	return w, err
}
