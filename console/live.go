package console

// Regions of pages that are refreshed while somebody looks at them. What they ask the store for
// is shared: however many look at the same thing, it is read once a second at most.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	snapshotAge   = time.Second     // how old a shared reading may be
	flightTime    = 5 * time.Second // how long one may take
	mostSnapshots = 64
)

// snapshots are readings that requests share. The zero value is complete.
type snapshots struct {
	flights singleflight.Group
	mu      sync.Mutex
	kept    map[string]snapshot // guarded by mu
}

// snapshot is what was read, and when that began.
type snapshot struct {
	at    time.Time
	value any
}

// young reports whether the reading may still be shared. One of the future, before a clock was set
// back, may not.
func (s *snapshot) young() bool {
	age := time.Since(s.at)
	return age >= 0 && age < snapshotAge
}

// get returns what was read of a key within the last second, or reads it, once for all who ask
// in the meantime. The key has to say all that the reading depends on, and so which apps it is
// for.
func (s *snapshots) get(ctx context.Context, key string, read func(context.Context) (any, error)) (any, error) {
	if v, there := s.fresh(key); there {
		return v, nil
	}
	return s.once(ctx, key, func(ctx context.Context) (any, error) {
		if v, there := s.fresh(key); there { // of a flight that has ended since
			return v, nil
		}
		at := time.Now()
		v, err := read(ctx)
		if err == nil {
			s.keep(key, snapshot{at, v})
		}
		return v, err
	})
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

func (s *snapshots) fresh(key string) (any, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, there := s.kept[key]
	if !there || !kept.young() {
		return nil, false
	}
	return kept.value, true
}

// keep keeps a reading for a second. There are never more than so many: where all are young, one
// of them goes.
func (s *snapshots) keep(key string, one snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]snapshot{}
	}
	for k, old := range s.kept {
		if !old.young() {
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
}

// shared reads something: for who asks for a part of a page again and again, together with others
// who see the same apps, and for a whole page anew. What a user has just changed is so on the
// next page.
func shared[T any](q *request, key string, read func(context.Context) (T, error)) (T, error) {
	if !q.isPart() {
		return read(q.ctx)
	}
	v, err := q.live.get(q.ctx, key, func(ctx context.Context) (any, error) { return read(ctx) })
	if err != nil {
		var none T
		return none, err
	}
	return v.(T), nil
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
// rest. Who has seen its content already is told that there is nothing new.
func (q *request) showLive(name, poll string, body any) error {
	p := q.page(name, body)
	var b bytes.Buffer
	if err := q.pages[q.look.language.Tag].byName[name].ExecuteTemplate(&b, "region", p); err != nil {
		return &problem{status: http.StatusInternalServerError, key: "problem.panic", cause: err}
	}
	sum := sha256.Sum256(append(b.Bytes(), poll...))
	p.Tag = hex.EncodeToString(sum[:8])
	p.Region = template.HTML(b.String()) // of the template above, which has escaped it
	if poll != "" {
		sep := "?"
		if strings.Contains(poll, "?") {
			sep = "&"
		}
		p.Poll = poll + sep + "seen=" + p.Tag
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

// nothingNew answers who follows something that there is nothing to add.
func (q *request) nothingNew() error {
	q.w.Header().Set("Vary", varies)
	q.wrote = true
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}
