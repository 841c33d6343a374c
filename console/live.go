package console

// Regions of pages that are refreshed while somebody looks at them. What they ask the store for
// is shared: however many look at the same thing, it is read once a second at most.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	snapshotAge   = time.Second     // how old a shared reading may be
	keptFor       = 5 * time.Second // how long one is kept, for the next to be compared with
	flightTime    = 5 * time.Second // how long one may take
	mostSnapshots = 64
	mostOfAPoll   = 8 << 10 // bytes of an address whose region is kept for others
)

// snapshots are readings that requests share. The zero value is complete.
type snapshots struct {
	flights singleflight.Group
	mu      sync.Mutex
	kept    map[string]snapshot // guarded by mu
}

// snapshot is what was read, and when that began; and when the first of those readings did, one
// after the other, that have found the same.
type snapshot struct {
	at    time.Time
	value any
	since time.Time
}

// young reports whether the reading may still be shared.
func (s *snapshot) young() bool { return s.within(snapshotAge) }

// within reports whether the reading is younger than that. One of the future, before a clock was
// set back, is not.
func (s *snapshot) within(most time.Duration) bool {
	age := time.Since(s.at)
	return age >= 0 && age < most
}

// get returns what was read of a key within the last second, or reads it, once for all who ask
// in the meantime. The key has to say all that the reading depends on, and so which apps it is
// for.
func (s *snapshots) get(ctx context.Context, key string, read func(context.Context) (any, error)) (snapshot, error) {
	if one, there := s.fresh(key); there {
		return one, nil
	}
	v, err := s.once(ctx, key, func(ctx context.Context) (any, error) {
		if one, there := s.fresh(key); there { // of a flight that has ended since
			return one, nil
		}
		at := time.Now()
		v, err := read(ctx)
		if err != nil {
			return nil, err
		}
		return s.keep(key, snapshot{at: at, value: v}), nil
	})
	if err != nil {
		return snapshot{}, err
	}
	return v.(snapshot), nil
}

// once reads something, once for all who ask while it is read. The reading goes on when the one
// who has begun it goes away.
func (s *snapshots) once(ctx context.Context, key string, read func(context.Context) (any, error)) (any, error) {
	done := s.flights.DoChan(key, func() (v any, err error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flightTime)
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
		return nil, ctx.Err()
	}
}

func (s *snapshots) fresh(key string) (kept snapshot, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, there = s.kept[key]
	return kept, there && kept.young()
}

// keep keeps a reading for others, and for a while to compare the next one with, and returns it
// complete. There are never more than so many: where all are young, one of them goes.
func (s *snapshots) keep(key string, one snapshot) snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]snapshot{}
	}
	one.since = one.at
	if last, there := s.kept[key]; there && reflect.DeepEqual(last.value, one.value) {
		one.since = last.since
	}
	for k, old := range s.kept {
		if !old.within(keptFor) {
			delete(s.kept, k)
		}
	}
	for k := range s.kept {
		if len(s.kept) < mostSnapshots {
			break
		}
		delete(s.kept, k)
	}
	s.kept[key] = one
	return one
}

// shared reads something: for who asks for a part of a page again and again, together with others
// who see the same apps, and for a whole page anew. What a user has just changed is so on the
// next page.
func shared[T any](q *request, key string, read func(context.Context) (T, error)) (T, error) {
	v, _, err := sharedAt(q, key, read)
	return v, err
}

// sharedAt is shared, and says when the reading began that is shared, and since which one the same
// was found; both are zero where none is shared.
func sharedAt[T any](q *request, key string, read func(context.Context) (T, error)) (v T, of snapshot, err error) {
	if !q.isPart() {
		v, err = read(q.ctx)
		return v, of, err
	}
	if of, err = q.live.get(q.ctx, key, func(ctx context.Context) (any, error) { return read(ctx) }); err != nil {
		return v, of, err
	}
	return of.value.(T), of, nil
}

// under is the request as a reading for several carries it out, which ends when that does.
func (q *request) under(ctx context.Context) *request {
	r := *q
	r.ctx = ctx
	return &r
}

// sightKey is the set of apps that are visible, as a part of a key. Names of apps have no line
// feeds in them that a quoted text does not show.
func sightKey(apps []string, all bool) string {
	if all {
		return "all"
	}
	return fmt.Sprintf("%q", apps)
}

// showLive answers with a page that has a region which is refreshed. The region is the template
// "region" of the page; poll is the address that it is asked for at, or "" where it has come to
// rest. Who has seen its content already is told that there is nothing new. since is the reading
// that has found all that the region shows, or the first of those that found the same where it
// does not show how long something goes on; zero where it shows more than what was read.
func (q *request) showLive(name, poll string, since time.Time, body any) error {
	p := q.page(name, body)
	if poll != "" && q.isForeign() && q.query(plainly) == "" {
		poll = withQuery(poll, plainly+"=1")
	}
	r, err := q.region(p, poll, since)
	if err != nil {
		return &problem{status: http.StatusInternalServerError, key: "problem.panic", cause: err}
	}
	p.Region, p.Tag, p.Packed = r.content, r.tag, r.packed
	if poll != "" {
		p.Poll = withQuery(poll, "seen="+p.Tag)
	}
	q.w.Header().Set("X-Read", p.Clock())
	if q.isPart() && q.query("seen") == p.Tag {
		return q.nothingNew()
	}
	start := "frame"
	if q.isPart() {
		start = "live"
	}
	return q.write(http.StatusOK, start, p)
}

// withQuery is an address with one more value in its query.
func withQuery(to, value string) string {
	sep := "?"
	if strings.Contains(to, "?") {
		sep = "&"
	}
	return to + sep + value
}

// Every is how often the region of the page is asked for. What a run does is of the moment; lists
// and pages of jobs change with the next one. What is so large that a viewer would be sent more than
// mostAMinute is asked for less often.
func (p *page) Every() string {
	seconds := 2
	if p.Name == "jobs" || p.Name == "job" {
		seconds = 10
	}
	return fmt.Sprintf("%ds", max(seconds, (p.Packed*60+mostAMinute-1)/mostAMinute))
}

// region is what a page has in its region, the tag by which that is known, and the reading that it
// was made of (see showLive).
type region struct {
	content template.HTML
	tag     string
	since   time.Time
	packed  int
}

// region makes the region of a page, once for all who see the same reading in the same language,
// zone and columns, and may do the same.
func (q *request) region(p *page, poll string, since time.Time) (region, error) {
	shares, key := poll != "" && len(poll) <= mostOfAPoll && !since.IsZero() && q.user != nil, ""
	if shares {
		key = fmt.Sprintf("region %s %q %s %s %v %t %q", p.Name, poll, q.look.language.Tag, q.look.zone, p.Shown(p.Name), q.user.Admin, q.user.Apps)
		if r, there := q.live.region(key, since); there {
			return r, nil
		}
	}
	content, err := p.Own("region")
	if err != nil {
		return region{}, err
	}
	sum := sha256.Sum256([]byte(string(content) + poll))
	r := region{content: content, tag: hex.EncodeToString(sum[:8]), since: since}
	if poll != "" {
		r.packed = len(packed([]byte(content)))
	}
	if shares {
		q.live.keep(key, snapshot{at: time.Now(), value: r})
	}
	return r, nil
}

// region is one that was made of the reading, if it is kept.
func (s *snapshots) region(key string, since time.Time) (r region, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, there := s.kept[key]
	if r, _ = one.value.(region); !there || !r.since.Equal(since) {
		return region{}, false
	}
	one.at = time.Now() // it is still of use
	s.kept[key] = one
	return r, true
}

// nothingNew answers who follows something that there is nothing to add.
func (q *request) nothingNew() error {
	q.w.Header().Set("Vary", varies)
	q.wrote = true
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}
