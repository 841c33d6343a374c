package executor

// Results that an admin refuses. In: a batch of which the admin, or what stands before it, has
// answered that it does not take it. It is halved until it is known which of its results that is
// about, and the others go on. Out: one that was refused alone comes again beside the others, and
// is put aside when it was refused three times while the admin has taken others, or 24 times in a way that
// may be about the address.

import (
	"slices"
	"time"

	"github.com/xxljob/xxljob/executor/internal/spool"
	"github.com/xxljob/xxljob/wire"
)

const (
	// mostRefusals is how often a result is refused alone, maxPause apart at least and the same way,
	// before it is put aside.
	mostRefusals = 3
	// mostDoubtful is the same of doubtful answers. A balancer that gives these for every second request, whatever is
	// in it, gives so many in a row once in sixteen million times.
	mostDoubtful = 24
	// patientRow is of how many results in a row, each refused alone, the next one is sent with the
	// same pause: there may be as many of them among others.
	patientRow = 32
)

// pace is how many results are sent at once, of those that travel together: half as many after
// each refusal, and twice as many again after each callback that was taken.
type pace struct {
	most  int
	row   int // how many were refused alone since the last callback that was taken
	calls int // callbacks that were taken
}

func (p *pace) cut(results []wire.CallbackRequest) []wire.CallbackRequest {
	return results[:min(len(results), p.most)]
}

func (p *pace) accepted(limit int) {
	p.most, p.row, p.calls = min(2*p.most, limit), 0, p.calls+1
}

// refused is a result that was refused alone, and comes again by itself.
type refused struct {
	parcel
	tries int
	due   time.Time // when it comes again
	tried bool      // the reporter was in a hurry when it came last

	way   int       // see refusal
	times int       // how often that counts: for the first time, and where others were taken since
	since time.Time // when it has counted last, and
	calls int       // how many callbacks had been taken by then
}

// takeDue returns the first of the refused results that is due; in a hurry each is, once. mu is held.
func (o *outbox) takeDue() (b batch) {
	if len(o.refused) == 0 {
		return b
	}
	now := time.Now()
	i := slices.IndexFunc(o.refused, func(r *refused) bool { return o.last && !r.tried || !o.last && !r.due.After(now) })
	if i < 0 {
		return b
	}
	r := o.refused[i]
	o.refused = slices.Delete(o.refused, i, i+1)
	r.tried = o.last
	return batch{again: r, parcels: []parcel{r.parcel}}
}

// untilRefused is how long it takes until the next of the refused results is due. mu is held.
func (o *outbox) untilRefused() time.Duration {
	d := maxPause
	for _, r := range o.refused {
		d = min(d, time.Until(r.due))
	}
	return max(d, time.Millisecond)
}

// takeRefused returns the refused results of an outbox without a spool. mu is held.
func (o *outbox) takeRefused() (results []wire.CallbackRequest) {
	for _, r := range o.refused {
		results = append(results, r.Results...)
	}
	o.refused = nil
	return results
}

// refuse takes the first result out of a batch, which was refused alone, and returns what is left
// of that. calls is how many callbacks the admin has taken.
func (o *outbox) refuse(b batch, why refusal, calls int) batch {
	res := b.results[0]
	r := b.again
	if r == nil {
		r = o.apart(&b, res)
	}
	r.tries++
	now := time.Now()
	r.due = now.Add(pauseAfter(r.tries))
	switch {
	case !why.all: // another node may take it
	case why.way != r.way:
		r.way, r.times, r.since, r.calls = why.way, 1, now, calls
	case calls > r.calls && now.Sub(r.since) >= maxPause:
		r.times, r.since, r.calls = r.times+1, now, calls
	}
	most := mostRefusals
	if why.doubtful {
		most = mostDoubtful
	}
	if r.times < most {
		o.mu.Lock()
		o.refused = append(o.refused, r)
		o.mu.Unlock()
	} else {
		o.putAside(r, res, why)
	}
	if b.again != nil {
		return batch{}
	}
	if b.results = b.results[1:]; len(b.results) > 0 {
		return b
	}
	o.settle(b) // what is left of it has a place of its own
	return batch{}
}

// apart gives a result of a batch a place of its own.
func (o *outbox) apart(b *batch, res wire.CallbackRequest) *refused {
	id, alone := resultID(&res), []wire.CallbackRequest{res}
	r := &refused{parcel: parcel{Parcel: spool.Parcel{Results: alone, Count: 1}, runs: []runID{id}}}
	if o.spool == nil || slices.ContainsFunc(b.parcels, func(p parcel) bool { return p.owed > 0 && slices.Contains(p.runs, id) }) {
		r.owed = 1
	}
	b.owed -= r.owed
	if o.spool == nil {
		return r
	}
	if r.Parcel = o.spool.Put(alone); r.Results != nil { // the disk has failed
		o.mu.Lock()
		o.unkept++
		o.mu.Unlock()
	}
	return r
}

// putAside ends a result that the admin will never take.
func (o *outbox) putAside(r *refused, res wire.CallbackRequest, why refusal) {
	file := ""
	if o.spool != nil && r.Results == nil {
		file = o.spool.PutAside(r.Parcel)
	} else {
		o.unkeep([]parcel{r.parcel})
	}
	o.settled([]runID{resultID(&res)})
	o.owed.Add(-int64(r.owed))
	o.log.Error("executor: the admin takes other results and refuses this one: put it aside, the run will have no result", "run", res.LogID, "file", file, "error", why.error)
}
