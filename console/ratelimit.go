package console

// How often somebody may ask for what costs more than a page, in this process.

import (
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/internal/slots"
)

// rateKind is a kind of such questions.
type rateKind int

const (
	noLimit  rateKind = iota
	previews          // of a schedule
	wholes            // all of a log, or all of many jobs
	unseens           // another parameter in place of one that is not shown: who is let guess, guesses
	healths           // whether the store answers, which nobody has to log in for
)

// newLimiters are the paces of all kinds.
func newLimiters() map[rateKind]*slots.Pacer {
	return map[rateKind]*slots.Pacer{
		previews: slots.NewPacer(time.Second/5, 5),
		wholes:   slots.NewPacer(time.Second/2, 20),
		unseens:  slots.NewPacer(time.Minute, 10),
		healths:  slots.NewPacer(time.Second/5, 20),
	}
}

// What is under way at a time. Each user has a quarter of the slots, in however many sessions, so
// that there are connections to the store left for others; who finds none free waits for a moment.
const (
	pagesAtOnce   = 12 // pages, but for those that take minutes
	lengthyAtOnce = 24 // what takes minutes: files, and what is done with many
	costlyAtOnce  = 4  // searches for a text in runs, and files of many jobs, of each of which so much is in memory (mostHeld) until it is sent
)

// costlyOn is how many of these there are at a time on a store: less than it has connections for people, where
// it says that, so that other pages of theirs do not wait for one.
func costlyOn(s xxljob.Store) int {
	if says, is := s.(interface{ ConnsOfPeople() int }); is {
		return max(1, min(costlyAtOnce, says.ConnsOfPeople()-1))
	}
	return costlyAtOnce
}

// asker is who asks.
func (q *request) asker() web.Asker {
	a := web.Asker{Network: q.Client.Network()}
	if q.user != nil {
		a.User = q.user.Name
	}
	return a
}

// hold takes a slot for who asks until the request is answered.
func (q *request) hold(of *slots.Slots) error { return q.Place(q.ctx, of, q.asker()) }

// limitRate counts a question of a kind, or says how long it has to wait.
func (q *request) limitRate(kind rateKind) error {
	if p := q.limiters[kind]; p != nil {
		return q.asker().Turn(p)
	}
	return nil
}
