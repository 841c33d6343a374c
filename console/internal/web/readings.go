package web

// What is read for several requests at once: however many look at the same thing, it is read once a
// second at most.

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// SharedFor is how old a shared reading may be, where nothing else is said.
const SharedFor = time.Second

const (
	keptFor      = 5 * time.Second // how long one is kept, for the next to be compared with
	flightTime   = 5 * time.Second // how long one may take
	mostReadings = 64
)

// Readings are what was read that requests share. The zero value is complete.
type Readings struct {
	flights singleflight.Group
	mu      sync.Mutex
	kept    map[string]Reading // guarded by mu
}

// Reading is what was read, and when that began; and when the first of those readings did, one
// after the other, that have found the same.
type Reading struct {
	At    time.Time
	Value any
	Since time.Time
}

// within reports whether the reading is younger than that. One of the future, before a clock was
// set back, is not.
func (s *Reading) within(most time.Duration) bool {
	age := time.Since(s.At)
	return age >= 0 && age < most
}

// Get returns what was read of a key within the last second, or reads it, once for all who ask
// in the meantime. The key has to say all that the reading depends on, and so which apps it is
// for.
func (s *Readings) Get(ctx context.Context, key string, read func(context.Context) (any, error)) (Reading, error) {
	return s.GetWithin(ctx, SharedFor, key, read)
}

// GetWithin is Get for what was read within another time, which is less than what is kept.
func (s *Readings) GetWithin(ctx context.Context, most time.Duration, key string, read func(context.Context) (any, error)) (Reading, error) {
	if one, there := s.fresh(key, most); there {
		return one, nil
	}
	v, err := s.Once(ctx, key, func(ctx context.Context) (any, error) {
		if one, there := s.fresh(key, most); there { // of a flight that has ended since
			return one, nil
		}
		at := time.Now()
		v, err := read(ctx)
		if err != nil {
			return nil, err
		}
		return s.Keep(key, Reading{At: at, Value: v}), nil
	})
	if err != nil {
		return Reading{}, err
	}
	return v.(Reading), nil
}

// Once reads something, once for all who ask while it is read. The reading goes on when the one
// who has begun it goes away, for as long as that one might have waited; it returns no sooner for
// that, so that the place which the request has is taken for as long as it costs something.
func (s *Readings) Once(ctx context.Context, key string, read func(context.Context) (any, error)) (any, error) {
	done := s.flights.DoChan(key, func() (v any, err error) {
		most := flightTime
		if end, has := ctx.Deadline(); has {
			most = min(most, time.Until(end))
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
		defer cancel()
		defer func() { // it would end the process: there is nobody above who recovers
			if p := recover(); p != nil {
				err = fmt.Errorf("a reading has panicked: %v", p)
			}
		}()
		return read(ctx)
	})
	select {
	case res := <-done:
		return res.Val, res.Err
	case <-ctx.Done():
	}
	late := time.NewTimer(flightTime) // for a reading that does not heed the end of its context
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
	return nil, ctx.Err()
}

func (s *Readings) fresh(key string, most time.Duration) (kept Reading, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, there = s.kept[key]
	return kept, there && kept.within(most)
}

// Keep keeps a reading for others, and for a while to compare the next one with, and returns it
// complete. There are never more than so many: where all are young, one of them goes.
func (s *Readings) Keep(key string, one Reading) Reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]Reading{}
	}
	one.Since = one.At
	if last, there := s.kept[key]; there && reflect.DeepEqual(last.Value, one.Value) {
		one.Since = last.Since
	}
	for k, old := range s.kept {
		if !old.within(keptFor) {
			delete(s.kept, k)
		}
	}
	for k := range s.kept {
		if len(s.kept) < mostReadings {
			break
		}
		delete(s.kept, k)
	}
	s.kept[key] = one
	return one
}

// Renew returns what is kept of a key, if it is still what is wanted; it is kept for longer then.
func (s *Readings) Renew(key string, wanted func(value any) bool) (value any, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, there := s.kept[key]
	if !there || !wanted(one.Value) {
		return nil, false
	}
	one.At = time.Now() // it is still of use
	s.kept[key] = one
	return one.Value, true
}

// Each tells of all that is kept.
func (s *Readings) Each(tell func(key string, value any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, one := range s.kept {
		tell(key, one.Value)
	}
}
