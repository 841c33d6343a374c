package executor

import "github.com/xxljob/xxljob/wire"

// open gives an outbox its admin and, where there is one, its spool, with what an
// earlier process has left in it. It is called once, before the first result.
func (o *outbox) open(admin wire.Admin, s *spool, left []parcel) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.admin, o.spool = admin, s
	o.kept = left
	o.wake()
}

// close releases the spool. It is called once, after flush.
func (o *outbox) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spool == nil {
		return nil
	}
	return o.spool.close()
}

// adopt looks for results that other processes have left since, when they ended.
func (o *outbox) adopt() {
	o.mu.Lock()
	s := o.spool
	o.mu.Unlock()
	if s == nil {
		return
	}
	found := s.adopt()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = append(o.kept, found...)
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

		p := o.spool.put(results)
		p.owed, p.runs = len(results), appendRuns(make([]runID, 0, len(results)), results)

		o.mu.Lock()
		if p.results == nil {
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
		count += p.count
		size += 2 * p.bytes
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
		results := p.results
		if results == nil {
			var failed error
			if results, failed = o.spool.get(p); failed != nil {
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
		if p.results != nil {
			unkept += len(p.results)
			continue
		}
		o.spool.remove(p)
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
	return o.spool.full()
}

// leaveKept returns how many results are lost at the end, when the disk has
// failed and fails again. mu is held.
func (o *outbox) leaveKept() int {
	if !o.writing { // or it hangs at the disk, and so would this
		for i := range o.kept {
			if p := &o.kept[i]; p.results != nil && o.spool.put(p.results).results == nil {
				o.unkept -= p.count
			}
		}
	}
	return o.unkept + len(o.pending)
}
