package finding

import (
	"cmp"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// World is what is known of a cluster at one moment. [Read] fills it; a test writes it down. Fields
// that are empty say that nothing of the kind is there.
type World struct {
	// Now is the time by the store's clock.
	Now time.Time
	// Nodes and Shards are those of the store.
	Nodes  []store.Node
	Shards []store.Shard
	// Troubles are those of Scheduler.Troubles, of as many schedulers as were asked.
	Troubles []store.Trouble
	// Groups, Registrations and Served say who serves the apps. Registrations that are older than
	// Dead do not count.
	Groups        []store.Group
	Registrations []store.Registration
	Served        []store.Served
	// Dead is how long a registration counts. Zero means 90 s, XXL-JOB's.
	Dead time.Duration
	// Counts are how many jobs apps have.
	Counts []store.JobCount
	// Jobs are the jobs that have stopped by themselves, those that are enabled and have no Next,
	// and those of the runs below, in any order.
	Jobs []store.Job
	// Ended are the newest runs of jobs that have ended, newest first for each job; a run that
	// wants to be tried again is among them.
	Ended []store.Run
	// Waiting are due runs that have not been started, Running those that are under way.
	Waiting, Running []store.Run
	// Planned are planned runs of a job whose time has not come. Attention does not look at them.
	Planned []store.Run
	// Skipped are records of instants that were not run, newest first. Attention does not look at
	// them.
	Skipped []store.Run
	// Back is how far back it was looked for runs that ended badly: a job whose last bad end is older
	// is not found. Zero where all were looked at.
	Back time.Time
	// Patience is how long a due run may wait before Attention says so. Zero means 30 s.
	Patience time.Duration
}

// Lives reports whether a registration counts: it was refreshed within Dead before Now.
func (w *World) Lives(r store.Registration) bool {
	return w.Now.Sub(r.Updated) <= cmp.Or(w.Dead, defaultDead)
}

const (
	defaultDead     = 90 * time.Second
	defaultPatience = 30 * time.Second
)

// look is a World by what is asked of it.
type look struct {
	*World
	jobs   map[int64]*store.Job
	served map[string]bool // apps that somebody serves
	gone   map[string]store.Served
	live   map[string]*store.Node // by incarnation: those that have neither left nor fallen silent
}

func lookAt(w *World) *look {
	l := &look{World: w, jobs: map[int64]*store.Job{}, served: map[string]bool{}, gone: map[string]store.Served{}, live: map[string]*store.Node{}}
	for i := range w.Jobs {
		l.jobs[w.Jobs[i].ID] = &w.Jobs[i]
	}
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if n.Left || n.Away {
			continue
		}
		l.live[n.Incarnation] = n
		if !n.Resting {
			for _, a := range n.Attached {
				l.served[a.App] = true
			}
		}
	}
	for _, r := range w.Registrations {
		if w.Lives(r) {
			l.served[r.App] = true
		}
	}
	for _, g := range w.Groups {
		if g.Manual && len(g.Addresses) > 0 {
			l.served[g.App] = true
		}
	}
	for _, s := range w.Served {
		if l.gone[s.App] = s; s.By != "" && s.Gone.IsZero() { // a registry of the user's, perhaps
			l.served[s.App] = true
		}
	}
	return l
}

func (l *look) patience() time.Duration { return cmp.Or(l.Patience, defaultPatience) }

// hasHandler reports whether an executor has the handler of a job, as far as nodes say what those that
// are attached have. known is false where the app has others, which do not say it.
func (l *look) hasHandler(j *store.Job) (has, known bool) {
	if j.Handler == "" || j.IsScript() {
		return true, false
	}
	attached := false
	for _, n := range l.live {
		for _, a := range n.Attached {
			if a.App == j.App && !n.Resting {
				attached = true
				if slices.Contains(a.Handlers, j.Handler) {
					return true, true
				}
			}
		}
	}
	for _, r := range l.Registrations {
		if r.App == j.App && l.Lives(r) {
			return false, false
		}
	}
	for _, g := range l.Groups {
		if g.App == j.App && g.Manual {
			return false, false
		}
	}
	return false, attached
}

// trigger is how a trigger has ended, of whose runs the last attempt of each part counts.
type trigger struct {
	last    *store.Run // the newest of its runs
	bad     *store.Run // the newest last attempt that has ended badly; nil where all went well
	pending bool       // an attempt has failed, and another follows
	neutral bool       // it was killed, discarded, skipped or cancelled, and says nothing
}

// isBad reports whether a state is one of a fault.
func isBad(s store.State) bool {
	return s == store.StateFailed || s == store.StateTimedOut || s == store.StateLost || s == store.StateRefused
}

// triggersOf are the triggers of one job, newest first, whose runs are given newest first.
func triggersOf(runs []*store.Run) (list []trigger) {
	at := map[int64]int{}              // by TriggerID
	parts := map[[2]int64]*store.Run{} // that were seen; not nil while it is looked for what a discarded or covered attempt was to make up for
	for _, r := range runs {
		id := cmp.Or(r.TriggerID, r.ID)
		i, ok := at[id]
		if !ok {
			i = len(list)
			at[id], list = i, append(list, trigger{last: r, neutral: true})
		}
		part := [2]int64{id, int64(r.Sharding.Index)}
		t := &list[i]
		if last, seen := parts[part]; seen { // a former attempt
			if last != nil && isBad(r.State) {
				if t.bad == last {
					t.bad = r // it has the error
				}
				parts[part] = nil
			}
			continue
		}
		parts[part] = nil
		switch {
		case r.FailedForGood():
			t.neutral = false
			if t.bad == nil {
				t.bad = r
			}
			if !isBad(r.State) {
				parts[part] = r
			}
		case isBad(r.State) && r.KillReason == "":
			t.pending = true
		case r.State == store.StateSucceeded:
			t.neutral = false
		}
	}
	return slices.DeleteFunc(list, func(t trigger) bool { return t.bad == nil && (t.pending || t.neutral) })
}
