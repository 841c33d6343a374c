package console

// How often somebody may ask for what costs more than a page, in this process.

import (
	"time"

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
	lookupsAtOnce = 16 // who somebody is: half of them, as nobody is known yet, a quarter for a network
	pagesAtOnce   = 12 // pages, but for those that take minutes
	lengthyAtOnce = 24 // what takes minutes: files, and what is done with many
	costlyAtOnce  = 4  // searches for a text in runs, and files of many jobs, which are in memory until they are sent
)

// hold takes a slot for the user until the request is answered.
func (q *request) hold(of *slots.Slots) error {
	if !q.Hold(q.ctx, of, q.holder()) {
		return web.TooOften(slots.Patience)
	}
	return nil
}

// holder is for whom slots count: a user, else a network.
func (q *request) holder() slots.Holder {
	if q.user == nil {
		return slots.Holder{Named: q.Client.Network().String()}
	}
	return slots.Holder{Proved: q.user.Name}
}

// asking is who asks, as paces are kept by: a user, in whatever session and with whatever token,
// else an address.
func (q *request) asking() string {
	if q.user == nil {
		return "address " + q.Client.Network().String()
	}
	return "user " + q.user.Name
}

// limitRate counts a question of a kind, or says how long it has to wait.
func (q *request) limitRate(kind rateKind) error {
	p := q.limiters[kind]
	if p == nil {
		return nil
	}
	if _, wait := p.Turn(q.asking(), time.Now()); wait > 0 {
		return web.TooOften(wait)
	}
	return nil
}
