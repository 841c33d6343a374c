package events

import (
	"context"
	"log/slog"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Ends that had no line of their own, and behind which no other end of their job came that could have said
// how many they are: the last ones of a burst. Comes in what endLines has counted, goes out a line that
// counts them, a while after the time in which they could have none, and at Stop.

// leftOut are such ends of a job.
type leftOut struct {
	lineKey        // without a job: of several
	app     string // of the last of them
	run     int64  // the last of them
	count   int
}

// behind is how long after the time in which a job has no further line it is counted what had none: an end
// that comes meanwhile says it. It is how often that is looked for as well.
func (l *endLines) behind() time.Duration { return max(l.every/6, time.Second) }

// takeLeftOut returns what is to be counted now, or all that had no line, and whether there is more.
func (l *endLines) takeLeftOut(now time.Time, all bool) (list []leftOut, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, e := range l.jobs {
		switch {
		case e.unsaid == 0:
		case all || now.Sub(e.said) >= l.every+l.behind():
			list = append(list, leftOut{key, e.app, e.last, e.unsaid})
			e.unsaid = 0
		default:
			more = true
		}
	}
	l.waiting = more
	return list, more
}

// LeftOutDuty counts in a line what had none.
func (t *Bus) LeftOutDuty() loop.Duty {
	return loop.Duty{What: "counting failures that had no line", Aside: true, Wakes: []<-chan struct{}{t.lines.wake}, Once: func(context.Context) (time.Duration, error) {
		list, more := t.lines.takeLeftOut(time.Now(), false)
		t.sayLeftOut(list)
		if more {
			return t.lines.behind(), nil
		}
		return loop.Forever, nil
	}}
}

// sayLeftOut logs them. A key that is not in memory is waited for as in say.
func (t *Bus) sayLeftOut(list []leftOut) {
	for _, x := range list {
		_, key, known := t.hooks.names.inMemory(x.job)
		if known || x.job == 0 {
			x.log(t.Logger, key)
			continue
		}
		t.hooks.queue.add(waitingEvent{Event: core.Event{Run: &store.Run{ID: x.run, JobID: x.job, App: x.app}}, line: func(key string) { x.log(t.Logger, key) }})
	}
}

func (x *leftOut) log(log *slog.Logger, key string) {
	about := []any{"app", x.app, "key", key, "job", x.job, "last_run", x.run}
	switch {
	case x.job == 0 && x.skipped:
		log.Warn("xxljob: instants of many jobs were skipped without a line of their own", "records_without_line", x.count, "last_run", x.run)
	case x.job == 0:
		log.Warn("xxljob: runs of many jobs have failed without a line of their own", "runs_without_line", x.count, "last_run", x.run)
	case x.skipped:
		log.Warn("xxljob: further instants were skipped", append(about, "records_without_line", x.count)...)
	default:
		log.Warn("xxljob: further runs have failed", append(about, "runs_without_line", x.count)...)
	}
}
