package executor

// Results on their way to an admin: in memory, or in the spool, until it has taken them.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/executor/internal/spool"
	"github.com/xxljob/xxljob/wire"
)

// Back-off after a failed callback.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 5 * time.Second
)

// exitWait is how long a cancelled callback has to return before Stop leaves it.
const exitWait = time.Second

// outbox holds results, in the order they were recorded, until the admin has taken
// them. While a callback is under way further results gather, so batches grow
// with the load. Its size is bounded by what Run accepts: see owed.
//
// With a spool, results are first written to it by a goroutine of their own (see
// outbox.write), and sent from there.
type outbox struct {
	log   *slog.Logger // names the admin, but for one of this process
	limit batchLimit

	// owed counts accepted runs whose result is not delivered: Run raises it, the
	// reporter lowers it.
	owed atomic.Int64

	ctx    context.Context // of the callbacks, cancelled when Stop has no more time
	cancel context.CancelFunc
	hurry  chan struct{} // closed when there is no time for a pause any more
	more   chan struct{} // has a buffer of one: something has come while the reporter rests

	settled func([]runID) // called with runs whose results are delivered, or will never be

	logs atomic.Pointer[logAdmin] // the admin, if it wants the lines of runs; nil for others

	ids []runID // of the reporter alone: what was delivered last

	mu      sync.Mutex
	admin   wire.Admin
	pending []wire.CallbackRequest
	room    []wire.CallbackRequest // where pending begins, of length 0
	sent    []wire.CallbackRequest // room of a batch that was delivered to an admin that forgets it, of length 0
	peak    int                    // how many were pending at most since the reporter began
	few     int                    // how many times in a row that was less than a quarter of the room
	active  bool                   // the reporter runs
	resting bool                   // it waits for what may be tried later, and for more
	refused []*refused             // what the admin has refused alone, but for what is under way
	turn    bool                   // one of these was taken last
	spool   *spool.Spool           // nil for none; set before the first result
	kept    []parcel               // what the spool holds, oldest first, but for what is under way
	writing bool                   // the writer runs
	unkept  int                    // results taken from pending that are in no file
	gaveUp  bool                   // the reporter has ended for good
	last    bool                   // hurry is closed: one failure more and the reporter gives up
	lost    int                    // results given up
	idle    chan struct{}          // made by flush, closed when it is quiet
	away    func()                 // called when the admin goes away, and when it is back; nil for nobody
}

func newOutbox(cfg Config, limit batchLimit) *outbox {
	o := &outbox{log: cfg.Logger, limit: limit, hurry: make(chan struct{}), more: make(chan struct{}, 1)}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

// openLog asks the admin where the lines of a run go as well: nil functions mean nowhere else.
func (o *outbox) openLog(k runID) (more adminLog) {
	if admin := o.logs.Load(); admin != nil {
		if more.write, more.end = (*admin).OpenLog(k.id, k.date); more.write == nil || more.end == nil {
			return adminLog{}
		}
	}
	return more
}

// previous asks the admin for the instant of the schedule before those of a run.
func (o *outbox) previous(k runID) time.Time {
	o.mu.Lock()
	admin, knows := o.admin.(interface {
		Previous(logID, logDateTim int64) time.Time
	})
	o.mu.Unlock()
	if !knows {
		return time.Time{}
	}
	return admin.Previous(k.id, k.date)
}

// logAdmin is what an admin that wants the lines of runs has beside wire.Admin.
type logAdmin interface {
	OpenLog(logID, logDateTim int64) (write func(time.Time, slog.Level, string), end func())
}

// forgetfulAdmin is an admin that keeps nothing of the results that Callback was given, once that has
// returned without an error.
type forgetfulAdmin interface{ ForgetsResults() }

// onAway sets who is told when the admin is seen to go away, and to be back.
func (o *outbox) onAway(tell func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.away = tell
}

func (o *outbox) sawAway() {
	o.mu.Lock()
	tell := o.away
	o.mu.Unlock()
	if tell != nil {
		tell()
	}
}

// abandoned tells an admin that wants to know that a handler was, and reports whether there is one.
func (o *outbox) abandoned() bool {
	o.mu.Lock()
	admin, wants := o.admin.(interface{ Abandoned() })
	o.mu.Unlock()
	if wants {
		admin.Abandoned()
	}
	return wants
}

// bind sets the admin and delivers to it what is there.
func (o *outbox) bind(admin wire.Admin) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.admin = admin
	o.logs.Store(nil)
	if logs, wants := admin.(logAdmin); wants {
		o.logs.Store(&logs)
	}
	o.wake()
}

// add takes one result. It never blocks for an admin.
func (o *outbox) add(res wire.CallbackRequest) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.makeRoom()
	o.pending = append(o.pending, res)
	o.wake()
}

// makeRoom has room for one more result behind the pending ones: that of delivered ones, where
// it is a quarter of all at least. mu is held.
func (o *outbox) makeRoom() {
	n := len(o.pending)
	switch {
	case n < cap(o.pending):
	case n > 0 && 4*n <= 3*cap(o.room):
		all := o.room[:cap(o.room)]
		copy(all, o.pending)
		clear(all[max(n, cap(all)-n):])
		o.pending = all[:n]
	default:
		o.pending = slices.Grow(o.pending, 1)
		o.room = o.pending[:0]
	}
}

// resultID is the run that a result is of.
func resultID(r *wire.CallbackRequest) runID { return runID{r.LogID, r.LogDateTim} }

// wake starts the reporter, and with a spool the writer, when there is something
// to do. They end by themselves when nothing is left; flush waits for them. mu is
// held.
func (o *outbox) wake() {
	waiting := len(o.pending)
	if o.spool != nil {
		if waiting > 0 && !o.writing {
			o.writing = true
			go o.write()
		}
		if waiting = len(o.kept); o.gaveUp {
			return
		}
	}
	if o.resting && waiting > 0 {
		select {
		case o.more <- struct{}{}:
		default:
		}
	}
	if o.active || o.admin == nil || waiting == 0 {
		return
	}
	o.active = true
	go o.report()
}

// report delivers until nothing is left.
func (o *outbox) report() {
	fails, away := 0, false
	unread := streak{log: o.log}
	p := pace{most: o.limit.results}
	var b batch
	for {
		var admin wire.Admin
		var last bool
		var wait time.Duration
		if admin, b, last, wait = o.next(b, &unread); admin == nil {
			return
		}
		if wait > 0 {
			o.rest(wait)
			unread.past = false
			continue
		}
		if b.results == nil {
			err := o.load(&b)
			unread.note(err, len(b.results))
		}
		switch {
		case b.results != nil:
		case last && unread.n > 0 || o.ctx.Err() != nil:
			o.giveUp(b)
			return
		default: // nothing of it makes sense, or can be read at this moment
			continue
		}
		sent := p.cut(b.results)
		err := deliver(o.ctx, admin, sent)
		why := refusalOf(err)
		switch {
		case err == nil:
			if fails > 0 {
				o.log.Info("executor: delivery of results has recovered", "failures", fails)
			}
			if away {
				o.sawAway() // it is back
			}
			o.taken(&b, len(sent))
			p.accepted(o.limit.results)
			fails, away = 0, false
			if len(b.results) == 0 {
				o.settle(b)
				o.useAgain(b.all, admin)
				o.gather(b, len(sent))
				b = batch{}
			}
			continue
		case why.way != 0 && o.ctx.Err() == nil && len(sent) > 1: // perhaps for one of them
			p.most = len(sent) / 2
			continue
		case b.again != nil && why.way != 0: // it was told when that was refused first
		default:
			if fails++; fails == 1 {
				o.log.Warn("executor: could not deliver results; retrying", "results", len(sent), "error", err)
			}
		}
		if !away && !errors.Is(err, errRefused) && (why.way == 0 || p.row > 0) {
			away = true
			o.sawAway()
		}
		switch {
		case o.ctx.Err() != nil, last && why.way == 0:
			o.giveUp(b)
			return
		case why.way == 0:
			o.pause(fails)
		default:
			p.row++
			b = o.refuse(b, why, p.calls)
			if p.row > 1 {
				o.pause(1 + p.row/patientRow)
			}
		}
	}
}

// streak is the attempts in a row that could not read all they should from the spool.
type streak struct {
	log    *slog.Logger
	logged bool
	n      int  // the last ones of them, that could read nothing
	past   bool // the last one was such: the next one is about what has not been tried
}

// note takes in the outcome of an attempt, and how many results it has read.
func (s *streak) note(err error, results int) {
	past := s.past
	s.past = err != nil && results == 0
	switch {
	case past && err == nil: // what cannot be read was not tried
	case err == nil && s.logged:
		s.log.Info("executor: reading the spool has recovered")
		s.logged = false
	case err != nil && !s.logged:
		s.log.Error("executor: could not read results in the spool; retrying", "error", err)
		s.logged = true
	}
	if s.n++; err == nil || results > 0 {
		s.n = 0
	}
}

// deliver is one callback.
func deliver(ctx context.Context, admin wire.Admin, batch []wire.CallbackRequest) error {
	ret, err := admin.Callback(ctx, batch)
	if err == nil && !ret.OK() {
		err = fmt.Errorf("xxljob: executor: the admin %w the results: code %d: %s", errRefused, ret.Code, ret.Msg)
	}
	return err
}

// next returns what to send, to whom, and whether it is the last attempt: the
// batch that failed before, or else the oldest results. Where all that is left is to be tried later
// it returns how long that is. When there is nothing to
// do the admin is nil, and the reporter has ended for all others.
func (o *outbox) next(b batch, unread *streak) (wire.Admin, batch, bool, time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.resting = false
	if o.admin == nil { // unbound meanwhile, so without a spool
		o.pending = slices.Concat(b.results, o.takeRefused(), o.pending) // the admin may have kept these
		o.room = nil
		o.end()
		return nil, batch{}, false, 0
	}
	if b.results != nil {
		return o.admin, b, o.last, 0
	}
	if b = o.take(unread.past); b.results != nil || b.parcels != nil {
		return o.admin, b, o.last, 0
	}
	wait := o.untilRefused()
	if len(o.kept) > 0 {
		wait = min(wait, pauseAfter(unread.n))
	}
	switch {
	case len(o.refused) == 0 && len(o.kept) == 0:
		o.end()
	case len(o.kept) == 0 && o.last:
		o.leave(batch{})
	default:
		o.resting = true
		return o.admin, batch{}, o.last, wait
	}
	return nil, batch{}, false, 0
}

// take returns the oldest results, or with a spool where they are; an empty batch
// when there are none. What was refused alone comes in turns with the others when it is due.
// past leaves out what could not be read. mu is held.
func (o *outbox) take(past bool) (b batch) {
	if !o.turn {
		if b = o.takeDue(); b.again != nil {
			o.turn = true
			return b
		}
	}
	if b = o.takeFresh(past); b.results == nil && b.parcels == nil {
		b = o.takeDue()
	}
	o.turn = b.again != nil
	return b
}

func (o *outbox) takeFresh(past bool) batch {
	if o.spool != nil {
		return o.takeKept(past)
	}
	results := o.cut()
	return batch{results: results, all: results, owed: len(results), full: len(o.pending) > 0}
}

const (
	// mostRoom is for how many results room is kept while there are none. Eight times as much is
	// kept until a quarter of it was not needed lastTimes in a row: between two herds some results
	// come alone.
	mostRoom  = 2048
	lastTimes = 16
)

// cut takes as many of the pending results as travel together, nil for none. mu
// is held.
func (o *outbox) cut() []wire.CallbackRequest {
	o.peak = max(o.peak, len(o.pending))
	n := o.limit.cut(o.pending)
	if n == 0 {
		return nil
	}
	results := append(o.sent, o.pending[:n]...) // not these, for the admin may keep them
	o.sent = nil
	clear(o.pending[:n])
	if o.pending = o.pending[n:]; len(o.pending) == 0 {
		o.pending = o.room
	}
	return results
}

// taken ends the first results of a batch, which were delivered.
func (o *outbox) taken(b *batch, n int) {
	o.ids = appendRuns(o.ids[:0], b.results[:n])
	o.settled(o.ids)
	b.results = b.results[n:]
}

// settle ends a batch of which nothing is left.
func (o *outbox) settle(b batch) {
	o.unkeep(b.parcels)
	o.owed.Add(-int64(b.owed))
}

// useAgain has the next batch in the room of one that its admin has forgotten.
func (o *outbox) useAgain(results []wire.CallbackRequest, admin wire.Admin) {
	if _, forgets := admin.(forgetfulAdmin); !forgets {
		return
	}
	clear(results)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent = results[:0]
}

// end marks the reporter as ended, and gives back room that is not needed. mu is held.
func (o *outbox) end() {
	o.active = false
	c := cap(o.room)
	if o.few++; o.peak >= c/4 {
		o.few = 0
	}
	if len(o.pending) == 0 && c > mostRoom && (c > 8*mostRoom || o.few >= lastTimes) {
		o.pending, o.room = nil, nil
	}
	o.peak = 0
	o.checkQuiet()
}

// checkQuiet tells flush when neither the reporter nor the writer runs. mu is
// held.
func (o *outbox) checkQuiet() {
	if o.idle != nil && !o.active && !o.writing {
		close(o.idle)
		o.idle = nil
	}
}

// giveUp drops everything that is in no spool, at the end of Stop only.
func (o *outbox) giveUp(b batch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leave(b)
}

// leave is giveUp where mu is held.
func (o *outbox) leave(b batch) {
	if o.spool != nil {
		o.gaveUp = true
		for _, r := range o.refused {
			b.parcels = append(b.parcels, r.parcel)
		}
		o.kept = append(b.parcels, o.kept...)
	} else {
		o.lost += len(b.results) + len(o.refused) + len(o.pending)
		o.pending, o.room = nil, nil
	}
	o.refused = nil
	o.end()
}

// pause waits between attempts: 50 ms, doubled by each further failure up to 5 s, less
// up to a quarter so that many executors do not knock in step.
func (o *outbox) pause(fails int) {
	t := time.NewTimer(pauseAfter(fails))
	defer t.Stop()
	select {
	case <-t.C:
	case <-o.hurry:
	}
}

func pauseAfter(fails int) time.Duration {
	d := maxPause
	if fails < 8 { // 50 ms << 7 is over 5 s
		d = min(firstPause<<(fails-1), maxPause)
	}
	return d - rand.N(d/4)
}

// rest waits until what is left may be tried again, or there is more.
func (o *outbox) rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-o.more:
	case <-o.hurry:
	}
}

// hurryUp ends a pause, and lets the reporter try just once more.
func (o *outbox) hurryUp() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.last {
		o.last = true
		close(o.hurry)
	}
}

// flush waits until all results are delivered or ctx ends. Then each batch has one
// attempt, the first failure ends it, and all together have at most grace. It returns
// how many results were not delivered and are not in the spool either; without an
// admin nobody misses them.
func (o *outbox) flush(ctx context.Context, grace time.Duration) int {
	defer o.cancel()
	done := o.done()
	select {
	case <-done:
	case <-ctx.Done():
		o.hurryUp()
		if !within(done, grace) {
			o.cancel()
			within(done, exitWait)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spool != nil {
		return o.leaveKept()
	}
	if o.active { // a callback that cannot be cancelled
		return int(o.owed.Load())
	}
	return o.lost
}

// done returns a channel that is closed when it is quiet.
func (o *outbox) done() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	ch := make(chan struct{})
	if o.active || o.writing {
		o.idle = ch
	} else {
		close(ch)
	}
	return ch
}

// within waits for done for at most d and reports whether it came.
func within(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// gatherTime is how long results gather, between two callbacks to a cluster, while they come
// faster than callbacks are answered.
const gatherTime = 4 * time.Millisecond

// gather lets results come together after a callback that has brought several of them, so that
// there are fewer callbacks under load, which cost both sides more than what is in them. It does
// not where a callback was full, and not when Stop is in a hurry. A result that comes alone waits
// for nothing.
func (o *outbox) gather(b batch, sent int) {
	if o.limit.gather == 0 || sent < 2 || b.full {
		return
	}
	t := time.NewTimer(o.limit.gather)
	defer t.Stop()
	select {
	case <-t.C:
	case <-o.hurry:
	}
}

// open gives an outbox its admin and, where there is one, its spool, with what an
// earlier process has left in it. It is called once, before the first result.
func (o *outbox) open(admin wire.Admin, s *spool.Spool, left []spool.Parcel) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.admin, o.spool = admin, s
	o.kept = parcelsOf(left)
	o.wake()
}

// close releases the spool. It is called once, after flush.
func (o *outbox) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spool == nil {
		return nil
	}
	return o.spool.Close()
}

// adopt looks for results that other processes have left since, when they ended.
func (o *outbox) adopt() {
	o.mu.Lock()
	s := o.spool
	o.mu.Unlock()
	if s == nil {
		return
	}
	found := s.Adopt()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = append(o.kept, parcelsOf(found)...)
	o.wake()
}

// write moves pending results to the spool until there are none. While it writes
// further ones gather, so a slow disk makes larger batches.
func (o *outbox) write() {
	for {
		o.mu.Lock()
		results := o.cut()
		if results == nil {
			o.writing = false
			o.checkQuiet()
			o.mu.Unlock()
			return
		}
		o.unkept += len(results)
		o.mu.Unlock()

		p := parcel{Parcel: o.spool.Put(results), owed: len(results), runs: appendRuns(make([]runID, 0, len(results)), results)}

		o.mu.Lock()
		if p.Results == nil {
			o.unkept -= len(results)
		}
		o.kept = append(o.kept, p)
		o.wake()
		o.mu.Unlock()
	}
}

// takeKept takes the oldest parcels that travel together: after an outage many
// small ones. past leaves out those in front that could not be read. mu is held.
func (o *outbox) takeKept(past bool) (b batch) {
	left := 0
	for past && left < len(o.kept) && o.kept[left].unread {
		left++
	}
	n, count, size := left, 0, 0
	for ; n < len(o.kept); n++ {
		p := &o.kept[n]
		count += p.Count
		size += 2 * p.Bytes
		if n > left && (count > o.limit.results || size > o.limit.bytes) {
			break
		}
	}
	if n == left {
		return b
	}
	b.parcels = o.kept[left:n:n]
	if left > 0 {
		b.parcels = slices.Clone(b.parcels)
		copy(o.kept[n-left:n], o.kept[:left])
	}
	if o.kept = o.kept[n-left:]; len(o.kept) == 0 {
		o.kept = nil
	}
	b.full, b.behind = len(o.kept) > left, left
	return b
}

// load reads the results of a batch, which has none yet, from the spool.
// What makes no sense is out of the batch, and will never be delivered. What cannot be
// read at this moment goes back to where it was, and err says why: the others do not
// wait for it.
func (o *outbox) load(b *batch) (err error) {
	var good, later []parcel
	for _, p := range b.parcels {
		results := p.Results
		if results == nil {
			var failed error
			if results, failed = o.spool.Get(p.Parcel); failed != nil {
				p.unread = true
				later, err = append(later, p), failed
				continue
			}
		}
		if results == nil {
			o.owed.Add(-int64(p.owed))
			o.settled(p.runs)
			continue
		}
		b.results = append(b.results, results...)
		b.owed += p.owed
		good = append(good, p)
	}
	b.parcels, b.all = good, nil
	if later != nil {
		o.mu.Lock()
		o.kept = slices.Concat(o.kept[:b.behind], later, o.kept[b.behind:])
		o.mu.Unlock()
	}
	return err
}

// unkeep removes delivered parcels.
func (o *outbox) unkeep(parcels []parcel) {
	if o.spool == nil {
		return
	}
	unkept := 0
	for _, p := range parcels {
		if p.Results != nil {
			unkept += len(p.Results)
			continue
		}
		o.spool.Remove(p.Parcel)
	}
	if unkept > 0 {
		o.mu.Lock()
		o.unkept -= unkept
		o.mu.Unlock()
	}
}

// diskFull reports whether the spool holds as much as it may, and how much that
// is.
func (o *outbox) diskFull() (int64, bool) {
	if o.spool == nil { // not changed after the first run
		return 0, false
	}
	return o.spool.Full()
}

// leaveKept returns how many results are lost at the end, when the disk has
// failed and fails again. mu is held.
func (o *outbox) leaveKept() int {
	if !o.writing { // or it hangs at the disk, and so would this
		for i := range o.kept {
			if p := &o.kept[i]; p.Results != nil && o.spool.Put(p.Results).Results == nil {
				o.unkept -= p.Count
			}
		}
	}
	return o.unkept + len(o.pending)
}
