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
	log   *slog.Logger
	limit batchLimit

	// owed counts accepted runs whose result is not delivered: Run raises it, the
	// reporter lowers it.
	owed atomic.Int64

	ctx    context.Context // of the callbacks, cancelled when Stop has no more time
	cancel context.CancelFunc
	hurry  chan struct{} // closed when there is no time for a pause any more

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
	o := &outbox{log: cfg.Logger, limit: limit, hurry: make(chan struct{})}
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

// abandoned tells an admin that wants to know that a handler was.
func (o *outbox) abandoned() {
	o.mu.Lock()
	admin, wants := o.admin.(interface{ Abandoned() })
	o.mu.Unlock()
	if wants {
		admin.Abandoned()
	}
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
	var b batch
	for {
		var admin wire.Admin
		var last bool
		if admin, b, last = o.next(b); admin == nil {
			return
		}
		if b.results == nil {
			err := o.load(&b)
			unread.note(err, len(b.results))
		}
		switch {
		case b.results != nil:
		case unread.n == 0: // nothing of it makes sense
			continue
		case last || o.ctx.Err() != nil:
			o.giveUp(b)
			return
		default: // nothing of it can be read at this moment
			o.pause(unread.n)
			continue
		}
		err := deliver(o.ctx, admin, b.results)
		if err == nil {
			if fails > 0 {
				o.log.Info("executor: delivery of results has recovered", "failures", fails)
			}
			if away {
				o.sawAway() // it is back
			}
			o.settle(b)
			o.useAgain(b.results, admin)
			o.gather(b)
			fails, away, b = 0, false, batch{}
			continue
		}
		if fails++; fails == 1 {
			o.log.Warn("executor: could not deliver results; retrying", "results", len(b.results), "error", err)
		}
		if !away && !errors.Is(err, errRefused) {
			away = true
			o.sawAway()
		}
		if last || o.ctx.Err() != nil {
			o.giveUp(b)
			return
		}
		o.pause(fails)
	}
}

// streak is the attempts in a row that could not read all they should from the spool.
type streak struct {
	log    *slog.Logger
	logged bool
	n      int // the last ones of them, that could read nothing
}

// note takes in the outcome of an attempt, and how many results it has read.
func (s *streak) note(err error, results int) {
	switch {
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
// batch that failed before, or else the oldest results. When there is nothing to
// do the admin is nil, and the reporter has ended for all others.
func (o *outbox) next(b batch) (wire.Admin, batch, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.admin == nil { // unbound meanwhile, so without a spool
		o.pending = slices.Concat(b.results, o.pending) // the admin may have kept these
		o.room = nil
		o.end()
		return nil, batch{}, false
	}
	if b.results == nil {
		b = o.take()
	}
	if b.results == nil && b.parcels == nil {
		o.end()
		return nil, batch{}, false
	}
	return o.admin, b, o.last
}

// take returns the oldest results, or with a spool where they are; an empty batch
// when there are none. mu is held.
func (o *outbox) take() batch {
	if o.spool != nil {
		return o.takeKept()
	}
	results := o.cut()
	return batch{results: results, owed: len(results), full: len(o.pending) > 0}
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

// settle ends what was delivered.
func (o *outbox) settle(b batch) {
	o.ids = appendRuns(o.ids[:0], b.results)
	o.settled(o.ids)
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
	if o.spool != nil {
		o.gaveUp = true
		o.kept = append(b.parcels, o.kept...)
	} else {
		o.lost += len(b.results) + len(o.pending)
		o.pending, o.room = nil, nil
	}
	o.end()
}

// pause waits between attempts: 50 ms, doubled by each further failure up to 5 s, less
// up to a quarter so that many executors do not knock in step.
func (o *outbox) pause(fails int) {
	d := maxPause
	if fails < 8 { // 50 ms << 7 is over 5 s
		d = min(firstPause<<(fails-1), maxPause)
	}
	t := time.NewTimer(d - rand.N(d/4))
	defer t.Stop()
	select {
	case <-t.C:
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
func (o *outbox) gather(sent batch) {
	if o.limit.gather == 0 || len(sent.results) < 2 || sent.full {
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

		p := parcel{o.spool.Put(results), len(results), appendRuns(make([]runID, 0, len(results)), results)}

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
// small ones. mu is held.
func (o *outbox) takeKept() (b batch) {
	n, count, size := 0, 0, 0
	for ; n < len(o.kept); n++ {
		p := &o.kept[n]
		count += p.Count
		size += 2 * p.Bytes
		if n > 0 && (count > o.limit.results || size > o.limit.bytes) {
			break
		}
	}
	if n == 0 {
		return b
	}
	b.parcels = o.kept[:n:n]
	if o.kept = o.kept[n:]; len(o.kept) == 0 {
		o.kept = nil
	}
	b.full = len(o.kept) > 0
	return b
}

// load reads the results of a batch, which has none yet, from the spool.
// What makes no sense is out of the batch, and will never be delivered. What cannot be
// read at this moment goes back to its place, and err says why: the others do not
// wait for it.
func (o *outbox) load(b *batch) (err error) {
	var good, later []parcel
	for _, p := range b.parcels {
		results := p.Results
		if results == nil {
			var failed error
			if results, failed = o.spool.Get(p.Parcel); failed != nil {
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
	b.parcels = good
	if later != nil {
		o.mu.Lock()
		o.kept = append(later, o.kept...)
		o.mu.Unlock()
	}
	return err
}

// unkeep removes delivered parcels.
func (o *outbox) unkeep(parcels []parcel) {
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
