package dispatch

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/engine/runlog"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// KnownOfRun and SaidOfRun are what the judge of runs goes by that were accepted and not
// reported.
type KnownOfRun struct {
	Boot                                                        string
	Manual, Listed, Several, Denied                             bool
	Idles                                                       int
	Silent, Replaced, Watched, Age, Overdue, Absent, Deaf, Idle time.Duration
}

// SaidOfRun is what has come of a question about one.
type SaidOfRun struct {
	State wire.RunState
	Boot  string
	Busy  bool
	Err   error
}

func (k KnownOfRun) evidence() evidence {
	return evidence{
		Standing: registry.Standing{Manual: k.Manual, Listed: k.Listed, Silent: k.Silent, Replaced: k.Replaced, Several: k.Several},
		boot:     k.Boot, watched: k.Watched, age: k.Age, overdue: k.Overdue, absent: k.Absent, deaf: k.Deaf,
		lacksInARow: k.Idles, lackingFor: k.Idle, denied: k.Denied,
	}
}

func unreportedBoundsOf(dead, lostAfter time.Duration) unreportedBounds {
	return newUnreportedBounds(&core.ClusterConfig{Dead: dead, LostAfter: lostAfter})
}

// JudgeUnreported is what is concluded, in a word.
func JudgeUnreported(dead, lostAfter time.Duration, k KnownOfRun, s SaidOfRun) string {
	c := unreportedBoundsOf(dead, lostAfter).conclude(k.evidence(), replyOf(answerAbout{state: s.State, boot: s.Boot, busy: s.Busy}, s.Err))
	switch {
	case c.lost != "":
		return "lost"
	case c.reread:
		return "reread"
	case c.overdue:
		return "overdue"
	}
	return ""
}

// AskUnreported is how long it is until the next question.
func AskUnreported(dead, lostAfter time.Duration, k KnownOfRun) time.Duration {
	return unreportedBoundsOf(dead, lostAfter).next(k.evidence())
}

// FairShare keeps at most so many runs, which are added in order of their ids and are each at
// an address. It returns those that are kept, and how many are not.
func FairShare(most int, ids []int64, address func(id int64) string) (kept []int64, left int) {
	share := fairShare{most: most}
	for _, id := range ids {
		share.add(store.Run{ID: id, Address: address(id)})
	}
	return slices.Sorted(maps.Keys(share.runs())), share.left
}

// SilentLogs opens and ends the log of a run so often, whose handler logs nothing. It returns how
// many allocations each took, and how many logs are in the book then.
func SilentLogs(times int) (allocs float64, open int) {
	all := &core.Core{Cfg: core.Config{}.WithDefaults(), Life: core.NewLife()}
	all.Leases = lease.New("n-1", core.TimesOf(&all.Cfg.Cluster), func() []store.Attachment { return nil })
	k := &runlog.Writer{Core: all, Book: runlog.NewBook(core.LogConfig{QueueBytes: 1 << 20, RunBytes: 1 << 20})}
	f := &finisher{Core: all, queue: queue.New(all, nil)}
	flight := f.queue.TakeOffSibling(queue.Destination{Exec: noExecutor{}}, store.Run{ID: 1}, &store.Job{ID: 1}, time.Now())
	admin := loggingAdmin{attachedAdmin{finisher: f, lines: k}}
	allocs = testing.AllocsPerRun(times, func() {
		flight.Lines = core.StartLog{}
		_, end := admin.OpenLog(1, 0)
		end()
	})
	return allocs, k.Book.Opened()
}
