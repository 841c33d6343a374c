package xxljob

// Runs that the store has marked started. Output: flights of this process, to send.go, or
// runs that other nodes take, to watch.go.

import (
	"time"

	"github.com/xxljob/xxljob/store"
)

// launcher has started runs go on. It belongs to the start loop.
type launcher struct {
	*shared
	engine    *engine
	teller    *teller
	callees   *callees
	deliverer *deliverer
	watcher   *watcher
}

// launch moves an entry from the held to the flights, or to the away runs, and
// sends it when its time has come.
func (l *launcher) launch(a attempt, run Run, began time.Time) {
	answer := Started{Status: store.StartOK, Run: run}
	l.launched(&run, a.job, l.engine.takeOffAll([]attempt{a}, []Started{answer}, began)[0])
}

// launched goes on with a run that is a flight of this process by now, or, without one, another
// node's.
func (l *launcher) launched(run *Run, job *Job, f *flight) {
	l.teller.started(run, job)
	if f != nil {
		l.deliverer.deliverAt(f)
	} else {
		l.watcher.goneAway(*run)
	}
}

// launchAll is launched for those runs of a batch that were started.
func (l *launcher) launchAll(batch []attempt, answers []Started, flights []*flight) {
	here := make([]*flight, 0, len(batch))
	for i := range batch {
		if !started(&answers[i]) {
			continue
		}
		l.teller.started(&answers[i].Run, batch[i].job)
		if flights[i] != nil {
			here = append(here, flights[i])
		} else {
			l.watcher.goneAway(answers[i].Run)
		}
	}
	l.deliverer.deliverAllAt(here)
}

// launchSibling does the same for a further part of a broadcast. It takes its
// place without asking: the parts of a broadcast start together.
func (l *launcher) launchSibling(a attempt, run Run, began time.Time) {
	r := routed{address: run.Address}
	l.callees.equip(&r, a.job)
	if r.remote {
		r.lane, r.fanned = laneNone, true // takes its turn in fanOut instead
	}
	l.teller.started(&run, a.job)
	if f := l.engine.takeOffSibling(r, run, a.job, began); f != nil {
		l.deliverer.deliverAt(f)
	} else {
		l.watcher.goneAway(run)
	}
}
