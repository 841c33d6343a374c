package xxljob

// Starts that were under way here and are over.

// landings remember the latest flights that have landed: what was read of a run
// a moment ago may still show it under way, and must not put it up again.
type landings struct {
	latest, before map[landing]struct{}
}

// landing is one start of a run.
type landing struct{ runID, token int64 }

// landingsKept is how many are remembered at least.
const landingsKept = 10_000

func (l *landings) add(runID, token int64) {
	if len(l.latest) >= landingsKept || l.latest == nil {
		l.latest, l.before = l.before, l.latest
		if clear(l.latest); l.latest == nil {
			l.latest = map[landing]struct{}{}
		}
	}
	l.latest[landing{runID, token}] = struct{}{}
}

func (l *landings) has(r *Run) bool {
	k := landing{r.ID, r.Token}
	_, latest := l.latest[k]
	_, before := l.before[k]
	return latest || before
}
