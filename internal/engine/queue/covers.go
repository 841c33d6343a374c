package queue

import (
	"slices"

	"github.com/xxljob/xxljob/internal/blockrule"
	"github.com/xxljob/xxljob/store"
)

// Runs of jobs that cover earlier ones (COVER_EARLY). Of several that a schedule has made, that are
// due and that go to one address, the latest is started, and the start takes the place of the others
// (Start.Covers). They are grouped where places are taken: those of one batch, and those
// that find another one waiting for room, with which they go from then on, in no waitlist of their own.
// Runs that somebody has asked for, and parts of broadcasts, go by themselves. All of it is guarded
// by the lock of the Queue.

// mostCovers is how many starts of a batch take the place of others: each is a transaction of its own.
const mostCovers = 8

// coverAt is where runs of a job cover each other.
type coverAt struct {
	jobID   int64
	address string
}

// covering is what a due run of such a job goes with.
type covering struct {
	at    coverAt
	alone bool     // it is one that goes by itself
	with  []*Entry // runs that go with it
}

// coversWaiting are the runs of such jobs that wait for room, or have waited for it, in their order.
type coversWaiting map[coverAt][]*Entry

// last is the latest at an address, nil where none waits.
func (c coversWaiting) last(at coverAt) *Entry {
	if waiting := c[at]; len(waiting) > 0 {
		return waiting[len(waiting)-1]
	}
	return nil
}

func (c coversWaiting) add(en *Entry) {
	at := en.cover.at
	i, has := slices.BinarySearchFunc(c[at], en, func(a, b *Entry) int { return a.Run.Key().Compare(b.Run.Key()) })
	if !has {
		c[at] = slices.Insert(c[at], i, en)
	}
}

func (c coversWaiting) drop(en *Entry) {
	at := en.cover.at
	if c[at] = slices.DeleteFunc(c[at], func(other *Entry) bool { return other == en }); len(c[at]) == 0 {
		delete(c, at)
	}
}

// coverAt is where an attempt covers others, or is covered; ok is false where it goes by itself.
func (a *Attempt) coverAt() (at coverAt, ok bool) {
	r := a.Route
	routed := r.Address != "" && !r.Probing && r.Asks == nil && r.Behind == nil
	ok = routed && !a.StartsSingly() && a.Run.RunType().ScheduleBorn() && a.Run.Sharding() == (store.Sharding{})
	return coverAt{a.Job.ID, r.Address}, ok
}

// groupCovers groups the runs of a batch that cover each other behind the latest at each address. It
// returns the attempts that take no places of their own, or not now.
func (q *Queue) groupCovers(batch []Attempt, now int64) (grouped map[int]bool) {
	var groups map[coverAt][]int
	var order []coverAt
	for i := range batch {
		if !blockrule.Of(batch[i].Job.Block).Covers {
			continue
		}
		if at, ok := batch[i].coverAt(); ok {
			if groups == nil {
				groups, grouped = map[coverAt][]int{}, map[int]bool{}
			}
			if groups[at] == nil {
				order = append(order, at)
			}
			groups[at] = append(groups[at], i)
		}
	}
	covers := 0
	for _, at := range order {
		group := groups[at]
		slices.SortFunc(group, func(i, k int) int { return batch[i].Run.Key().Compare(batch[k].Run.Key()) })
		until := max(now, batch[group[0]].Run.At)
		n := slices.IndexFunc(group, func(i int) bool { return batch[i].Run.At > until }) // these are not due
		if n < 0 {
			n = len(group)
		}
		leader := batch[group[n-1]].Entry
		for _, i := range group[:n-1] {
			grouped[i] = true
			q.goesWith(leader, at, batch[i].Entry)
			q.handsOver(leader, batch[i].Entry)
		}
		switch later := q.Due.covers.last(at); {
		case later != nil && !later.cover.alone && leader.Run.Key().Before(later.Run.Key()):
			grouped[group[n-1]] = true
			q.goesWith(later, at, leader)
			q.Due.passRoomOn(leader)
			q.Due.freeJobPlace(leader.Route.JobPlace, leader.Run.ID)
		case leader.cover == nil:
		case covers == mostCovers:
			grouped[group[n-1]] = true
			q.Due.ready.push(leader)
		default:
			covers++
		}
	}
	return grouped
}

// goesWith has a run, with those that go with it, go with another one of its job.
func (q *Queue) goesWith(leader *Entry, at coverAt, en *Entry) {
	if leader.cover == nil {
		leader.cover = &covering{at: at}
	}
	leader.cover.with = append(leader.cover.with, en)
	if en.cover != nil {
		leader.cover.with = append(leader.cover.with, en.cover.with...)
		en.cover = nil
	}
}

// handsOver gives the room that a run was let in for, and its place at the address, to the one that
// it goes with.
func (q *Queue) handsOver(leader, en *Entry) {
	if en.Waited && !leader.Waited {
		leader.Waited, leader.from, en.Waited = true, en.from, false
	}
	q.Due.passRoomOn(en)
	if q.Due.serial.at(en.Route.JobPlace) != en.Run.ID {
		return
	}
	if leader.Route.JobPlace == en.Route.JobPlace {
		q.Due.serial.take(leader.Route.JobPlace, leader.Run.ID)
	} else {
		q.Due.freeJobPlace(en.Route.JobPlace, en.Run.ID)
	}
}

// parkForRoom parks an attempt that lacks room at its address, or has it go with one that waits
// already, unless a run that must go alone stands between them.
func (q *Queue) parkForRoom(room WaitKey, a *Attempt) {
	if blockrule.Of(a.Job.Block).Covers {
		at, covers := a.coverAt()
		if last := q.Due.covers.last(at); covers && last != nil && !last.cover.alone && last.Run.Key().Before(a.Run.Key()) {
			q.goesWith(last, at, a.Entry)
			q.Due.passRoomOn(a.Entry)
			q.Due.freeJobPlace(a.Route.JobPlace, a.Run.ID)
			return
		}
		if a.cover == nil {
			a.Entry.cover = &covering{}
		}
		a.cover.at, a.cover.alone = at, !covers
		q.Due.covers.add(a.Entry)
	}
	q.Due.park(room, a.Entry)
}

// apart takes those off an entry that go with it: they go the same way as long as they are not
// routed anew.
func (q *Queue) apart(en *Entry) (with []*Entry) {
	if en.cover == nil {
		return nil
	}
	q.Due.covers.drop(en)
	with, en.cover = en.cover.with, nil
	for _, other := range with {
		other.Route, other.RoutedFor, other.RoutedAt = en.Route, en.RoutedFor, en.RoutedAt
	}
	return with
}

// splitCovered has those who go with an entry that is started, or given up, go by themselves, but for
// the runs whose place it has taken.
func (q *Queue) splitCovered(en *Entry, covered []store.Run) {
	for _, other := range q.apart(en) {
		if slices.ContainsFunc(covered, func(r store.Run) bool { return r.ID == other.Run.ID }) {
			q.forget(other)
		} else {
			q.Due.ready.push(other)
		}
	}
}

// Covers are the runs whose place an attempt takes.
func (a *Attempt) Covers() (ids []int64) {
	if a.cover == nil || a.StartsSingly() {
		return nil
	}
	for _, other := range a.cover.with {
		ids = append(ids, other.Run.ID)
	}
	return ids
}
