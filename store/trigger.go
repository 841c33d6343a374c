package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
)

// What a run outside the schedule is asked for with.

// Trigger asks for one run of a job outside its schedule. The zero value runs
// it now, as it is defined.
type Trigger struct {
	// Param replaces the job's parameter; nil keeps it. At most 64 KiB.
	Param *string
	// JSON is a value whose JSON, as encoding/json makes it in the call, replaces the job's
	// parameter; nil keeps it. It cannot be given together with Param. At most 64 KiB as
	// JSON.
	JSON any
	// Addresses replace the app's, for retries of the run as well; empty keeps them. At most
	// 1,000, which have at most 64 KiB together, since they are kept with each of these runs.
	Addresses []string
	// Shard runs one part of a broadcast only.
	Shard Sharding
	// Retries replaces the job's number of retries, whatever becomes of that; nil keeps it.
	Retries *int
	// At is when the run is due, after the beginning of 1970 and before the year 2059; zero means
	// now. One that is past starts now and stands for that instant (Run.StandsFor,
	// Task.ScheduledAt): so work of a day that was missed is done later. It may be years ahead. A
	// run that is due more than two days ahead is kept apart until a day before At: see
	// Scheduler.Trigger.
	At time.Time
	// Key makes the call idempotent: a second call for the same job with the
	// same key returns the ids of the first. Empty: each call is new. At most
	// 255 bytes; those that begin with "xxljob/" are the scheduler's own.
	Key string
	// Type is MANUAL, the default, or API.
	Type TriggerType
	// Trace is the trace that the run belongs to, in W3C Trace Context: the text of a
	// traceparent and, behind a blank, that of a tracestate, which may be missing. At most
	// 600 bytes of visible ASCII. Config.Tracer gives one where it is empty.
	Trace string

	again *standing // what the run stands for that is repeated; nil for none
}

// standing is what a run stands for.
type standing struct {
	instant, first, last, business time.Time
	count, depth                   int
	parent                         int64
}

// Repeating, for Schedulers, returns a trigger whose run stands for what the given one does: its
// Instant, its BusinessTime where that is another's, and the instants that it makes up for. It has
// the ParentID and the Depth of that, so that what the parent has given it, and was secret there, is
// secret still.
func (t Trigger) Repeating(r *Run) Trigger {
	s := &standing{instant: r.Instant(), business: r.Business, parent: r.ParentID, depth: r.Depth}
	if r.Count > 0 {
		s.first, s.last, s.count = r.First, r.Last, r.Count
	}
	t.again = s
	return t
}

// Stand, for authors of stores, sets in a run that is made for the trigger what it stands for:
// StandsFor, Business, First, Last and Count, and ParentID and Depth where it repeats another. Now is
// the present time. It is pure.
func (t *Trigger) Stand(r *Run, now time.Time) {
	if s := t.again; s != nil {
		r.StandsFor, r.Business, r.First, r.Last, r.Count, r.ParentID, r.Depth = s.instant, s.business, s.first, s.last, s.count, s.parent, s.depth
		return
	}
	if at := t.At.UTC().Truncate(time.Millisecond); !t.At.IsZero() && at.Before(now) {
		r.StandsFor = at
	}
}

// maxTrace is how many bytes a Trace may have: a traceparent, a blank, and a tracestate of what
// every system has to pass on.
const maxTrace = 600

// lastYear is the last in which runs can be due: their ids, which stores make of times,
// reach 2^53 in the next.
const lastYear = 2058

// Validate reports every fault of the trigger at once, or nil.
func (t Trigger) Validate() error {
	_, err := t.Encode()
	return err
}

// GoodTrace reports whether a text may be a Trace.
func GoodTrace(s string) bool {
	return len(s) <= maxTrace && strings.Count(s, " ") <= 1 && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// Encode, for authors of stores, returns the trigger with the JSON of its JSON as Param, and
// every fault of it as an error. Stores are given encoded triggers. It makes the JSON once:
// what is checked is what is used.
func (t Trigger) Encode() (Trigger, error) {
	f := Faults{Of: "trigger"}
	f.Text("Key", t.Key, 0, 255)
	if strings.HasPrefix(t.Key, OwnKeys) {
		f.Add("Key", t.Key, fmt.Errorf("keys that begin with %q are the scheduler's own", OwnKeys))
	}
	if !GoodTrace(t.Trace) {
		f.Add("Trace", errs.Shorten(t.Trace, 40), fmt.Errorf("want at most %d bytes of visible ASCII, with one blank at most", maxTrace))
	}
	f.OneOf("Type", string(t.Type), "", string(TriggerManual), string(TriggerAPI))
	switch at := t.At.UTC(); {
	case at.Year() > lastYear:
		f.Add("At", at.Format(time.RFC3339), fmt.Errorf("want a time before the year %d, which is as far as ids of runs reach", lastYear+1))
	case !t.At.IsZero() && at.UnixMilli() <= 0:
		f.Add("At", at.Format(time.RFC3339), errors.New("want a time after the beginning of 1970, or none for now"))
	}
	if t.Param != nil {
		f.Text("Param", *t.Param, 0, maxParam)
	}
	if t.again == nil { // else they are those of a run that is there
		checkGiven(&f, t.Addresses)
	}
	if t.Shard != (Sharding{}) && (t.Shard.Index < 0 || t.Shard.Index >= t.Shard.Total) {
		f.Add("Shard", t.Shard, fmt.Errorf("want an index from 0 to total-1"))
	}
	if t.Retries != nil && (*t.Retries < 0 || *t.Retries > mostRetries) {
		f.Add("Retries", *t.Retries, fmt.Errorf("want 0 to %d", mostRetries))
	}
	encoded := t
	if t.JSON != nil {
		text := t.encode(&f)
		encoded.Param, encoded.JSON = &text, nil
	}
	if err := f.Err(); err != nil {
		return t, err
	}
	return encoded, nil
}

// The bounds of the addresses of a trigger: how many there may be, and of how many bytes.
const (
	mostGiven  = 1000
	givenBytes = 64 << 10
)

// checkGiven adds what is wrong with the addresses of a trigger.
func checkGiven(f *Faults, addresses []string) {
	if len(addresses) > mostGiven {
		f.Add("Addresses", len(addresses), coded{"too-long", fmt.Errorf("%d addresses, at most %d", len(addresses), mostGiven)})
		return
	}
	size := 0
	for _, a := range addresses {
		size += len(a)
	}
	if size > givenBytes {
		f.Add("Addresses", size, coded{"too-long", fmt.Errorf("%d bytes, at most %d", size, givenBytes)})
	}
}

// maxParam is how many bytes a parameter may have.
const maxParam = 64 << 10

// encode is the JSON of a trigger that has some.
func (t Trigger) encode(f *Faults) string {
	text, err := json.Marshal(t.JSON)
	switch {
	case err != nil:
		f.Add("JSON", fmt.Sprintf("%T", t.JSON), err)
	case t.Param != nil:
		f.Add("JSON", fmt.Sprintf("%T", t.JSON), errors.New("is given together with Param"))
	default:
		f.Text("JSON", string(text), 0, maxParam)
	}
	return string(text)
}
