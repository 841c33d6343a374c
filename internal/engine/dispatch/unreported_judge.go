package dispatch

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/wire"
)

// When a run that its executor has accepted, and nobody has reported, is over. All of it is
// pure. Input: what is known of the run and what its executor has just said. Output: whether
// it is lost, and when to ask again.
//
// Neither silence nor a question without an answer is enough by itself: an executor that
// registers nowhere may be asked, and one that cannot be reached may run on. A process that
// has another at its address has ended, but the other one delivers first what it has found on
// the spool. An executor of others says whether the job is idle, and no more.

// unreportedBounds are what the judge goes by.
type unreportedBounds struct {
	dead, lostAfter time.Duration // of Config.Cluster
	every           time.Duration // how often a run is looked at that there may be news of
}

func newUnreportedBounds(c *core.ClusterConfig) unreportedBounds {
	return unreportedBounds{dead: c.Dead, lostAfter: c.LostAfter, every: min(unreportedEvery, max(c.LostAfter/3, time.Millisecond))}
}

// unreportedEvery is how often, at most, there is a look at runs that nobody has reported.
const unreportedEvery = 10 * time.Second

// unreportedRarely is how often, at least, a run is asked about that is where it should be.
const unreportedRarely = 10 * time.Minute

// evidence is what is known of such a run at a moment.
type evidence struct {
	registry.Standing               // of its address
	boot              string        // the process that it was started for; empty at executors of others
	watched           time.Duration // for how long this node has looked after the run
	age               time.Duration // since its start
	overdue           time.Duration // the age from which on it is overdue
	absent            time.Duration // since its executor was first known not to have it
	lacksInARow       int           // to how many questions in a row was answered that it is not there, by whichever process
	lackingFor        time.Duration // since the first of these
	denied            bool          // where there are several processes: all that are there have said that they do not have it
	deaf              time.Duration // for how long nobody has answered at the address
}

// reply is what has come of a question.
type reply struct {
	answerAbout
	err    error // there is no answer
	nobody bool  // and nobody is there who might give one
}

// replyOf is what an answer, or an error, says.
func replyOf(said answerAbout, err error) reply {
	r := reply{answerAbout: said, err: err}
	var failed *wire.CallError
	if !errors.As(err, &failed) {
		return r // it has refused to be asked, for example
	}
	switch failed.Status {
	case 0, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		r.nobody = true
	}
	return r
}

// unnamed reports whether the answer is about the job, and not about the run.
func (r reply) unnamed() bool { return r.err == nil && r.state == "" }

// speaksFor reports whether the process has answered that has the run, if anybody has it: one
// of others, or of a run of which it is not known, is the one that is there.
func (r reply) speaksFor(boot string) bool { return r.err == nil && (boot == "" || r.boot == boot) }

// lacks reports whether the answer says that the run is not there, or not any more.
func (r reply) lacks(boot string) bool {
	switch {
	case r.unnamed():
		return !r.busy
	case r.state == wire.RunUnknown || r.state == wire.RunForgotten:
		return r.speaksFor(boot)
	}
	return false
}

// note takes in what has come of a question. That a job is idle counts from the second such
// answer in a row: an executor takes a run from its queue and then says that it is busy.
func (o *askedRun) note(r reply, boot string, now time.Time) {
	if o.deaf = laterOf(o.deaf, now, r.nobody); r.err != nil {
		return
	}
	if !r.lacks(boot) {
		o.lacks = 0
		if r.state == wire.RunHeld {
			o.lackedSince, o.denied = time.Time{}, nil
		}
		return
	}
	if r.unnamed() {
		o.lastIdle = now
	}
	if o.lacks++; o.lacks == 1 {
		o.firstLack = now
	}
	if o.lacks > 1 || !r.unnamed() {
		errs.SetDefault(&o.lackedSince, o.firstLack)
	}
}

// laterOf is since when something is so, where it is.
func laterOf(since, now time.Time, is bool) time.Time {
	switch {
	case !is:
		return time.Time{}
	case since.IsZero():
		return now
	}
	return since
}

// conclusion is what is to be done about a run.
type conclusion struct {
	lost    string // why it is lost; empty where it may not be
	reread  bool   // its result was acknowledged: the store tells
	overdue bool   // its executor has it, and should not any more
}

// conclude says what is to be done about a run after a question.
func (b unreportedBounds) conclude(e evidence, r reply) conclusion {
	switch why := ""; {
	case r.err == nil && r.state == wire.RunHeld:
		return conclusion{overdue: e.age >= e.overdue}
	case r.err == nil && r.state == wire.RunReported:
		return conclusion{reread: true}
	default:
		if why = b.lost(e, r); why != "" && r.err != nil {
			why += ": " + errs.PlainText(errs.Shorten(r.err.Error(), core.MaxAnswer))
		}
		return conclusion{lost: why}
	}
}

// lost says why a run is lost, "" while it may not be.
func (b unreportedBounds) lost(e evidence, r reply) string {
	named := r.err == nil && !r.unnamed()
	switch {
	case r.state == wire.RunUnknown && e.boot != "" && r.boot == e.boot:
		return "lost: accepted, but its executor does not know the run"
	case e.boot != "" && e.Replaced >= b.lostAfter:
		return fmt.Sprintf("lost: the executor was restarted, and no result came within %v", b.lostAfter)
	case named && !r.speaksFor(e.boot) && !e.Manual && e.Silent >= b.dead:
		return fmt.Sprintf("lost: the executor was not heard of for %v, and another one is in its place", b.dead)
	case r.nobody && !e.Manual && e.Silent >= b.dead:
		return fmt.Sprintf("lost: the executor was not heard of for %v, and nobody answers", b.dead)
	case r.nobody && e.Manual && e.deaf >= b.dead:
		return fmt.Sprintf("lost: nobody has answered at the address for %v", b.dead)
	case e.Several && r.unnamed() && !r.busy && e.boot == "" && e.lacksInARow >= idleInARow && e.lackingFor >= 2*b.dead:
		return fmt.Sprintf("lost: several processes are at the address, and each of the last %d answers, over %v, was that the job is idle", e.lacksInARow, e.lackingFor.Round(time.Second))
	case r.lacks(e.boot) && e.absent >= b.dead && e.believes(r):
		return fmt.Sprintf("lost: the executor does not have the run any more, and no result came within %v", b.dead)
	case e.age < e.overdue || e.watched < b.dead || r.lacks(e.boot) && e.absent < b.dead && !e.Several:
		return ""
	case r.unnamed() && r.busy:
		return fmt.Sprintf("lost: no result within %v, though the job is busy", e.overdue)
	}
	return fmt.Sprintf("lost: no result within %v, and its executor does not say that it has the run", e.overdue)
}

// believes reports whether an answer that the run is not there is one of the process that has it,
// if any has. Where several are at the address an answer about the job may be another's, and one
// about a run of which nobody knows where it went has to be that of all.
func (e evidence) believes(r reply) bool {
	switch {
	case !e.Several:
		return true
	case r.unnamed():
		return false
	}
	return e.boot != "" || e.denied
}

// next is when to ask again about a run of which there was nothing to conclude: when something
// is over that it is to be judged by, or there may be news.
func (b unreportedBounds) next(e evidence) time.Duration {
	wait := b.every
	switch {
	case b.settled(e):
		wait = max(b.dead, min(e.age/4, unreportedRarely))
	case e.Listed && !e.Manual && e.absent == 0 && e.deaf == 0: // that it is idle is soon enough known then
		wait = min(2*b.every, max(b.lostAfter-b.every, b.every))
	}
	if e.lacksInARow > 0 { // so often before that is believed, whether or not several are known to be there
		wait = min(wait, b.dead/idleInARow)
	}
	for _, until := range []struct {
		is, bound time.Duration
	}{{e.Silent, b.dead}, {e.Replaced, b.lostAfter}, {e.absent, b.dead}, {e.deaf, b.dead}, {e.age, e.overdue}} {
		if left := until.bound - until.is; until.is > 0 && left > 0 {
			wait = min(wait, left)
		}
	}
	return wait
}

// settled reports whether the process that has the run is one of ours and still registered:
// it reports what it has, and says good-bye.
func (b unreportedBounds) settled(e evidence) bool {
	return e.boot != "" && e.Listed && !e.Unnamed && e.Replaced == 0 && !e.Several && e.absent == 0 && e.deaf == 0
}
