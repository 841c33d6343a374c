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
	"strings"
	"time"

	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
)

const (
	mostOfAPoll = 8 << 10    // bytes of an address whose region is kept for others
	mostAMinute = 180 * 1000 // bytes that one viewer of a refreshed page is sent in a minute, and room for headers
)

// shared reads something: for who asks for a part of a page again and again, together with others
// who see the same apps, and for a whole page anew. What a user has just changed is so on the
// next page.
func shared[T any](q *request, key string, read func(context.Context) (T, error)) (T, error) {
	v, _, err := sharedAt(q, key, read)
	return v, err
}

// sharedFor is sharedAt for what may be older than a second.
func sharedFor[T any](q *request, most time.Duration, key string, read func(context.Context) (T, error)) (v T, of web.Reading, err error) {
	if !q.IsPart() {
		v, err = read(q.ctx)
		return v, of, err
	}
	if of, err = q.live.GetWithin(q.ctx, most, key, func(ctx context.Context) (any, error) { return read(ctx) }); err != nil {
		return v, of, err
	}
	return of.Value.(T), of, nil
}

// sharedAt is shared, and says when the reading began that is shared, and since which one the same
// was found; both are zero where none is shared.
func sharedAt[T any](q *request, key string, read func(context.Context) (T, error)) (v T, of web.Reading, err error) {
	return sharedFor(q, web.SharedFor, key, read)
}

// under is the request as a reading for several carries it out, which ends when that does.
func (q *request) under(ctx context.Context) *request {
	r := *q
	r.ctx = ctx
	return &r
}

// briefly is the request for which lists are read without long texts.
func (q *request) briefly() *request { return q.under(store.WithShortTexts(q.ctx, 0)) }

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
	return q.showLiveMade(name, poll, since, func() any { return body })
}

// showLiveMade is showLive for a body that is dear to make: it is not where somebody else sees the same.
func (q *request) showLiveMade(name, poll string, since time.Time, body func() any) error {
	p := q.page(name, nil)
	if since.IsZero() || !q.IsPart() {
		p.Body = body()
	}
	if poll != "" && q.IsForeign() && q.Query(web.Plainly) == "" {
		poll = withQuery(poll, web.Plainly+"=1")
	}
	r, err := q.region(p, poll, since, body)
	if err != nil {
		return &web.Problem{Status: http.StatusInternalServerError, Key: "problem.panic", Cause: err}
	}
	p.Region, p.Tag, p.Packed = r.content, r.tag, r.packed
	if poll != "" {
		p.Poll = withQuery(poll, "seen="+p.Tag)
	}
	q.W.Header().Set("X-Read", p.Clock())
	if q.IsPart() && q.Query("seen") == p.Tag {
		return q.NothingNew()
	}
	start := "frame"
	if q.IsPart() {
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

// Every is how often the region of the page is asked for. What a run does is of the moment; the
// overview is of a time in which somebody looks up, and lists and pages of jobs, of executors and the
// timetable change with the next one. What is so large that a viewer would be sent more than
// mostAMinute is asked for less often.
func (p *page) Every() string { return fmt.Sprintf("%ds", max(p.soonest(), secondsFor(p.Packed))) }

// soonest is after how many seconds the region is asked for at least.
func (p *page) soonest() int {
	switch p.Name {
	case "overview":
		return 5
	case "jobs", "job", "timetable", "executors":
		return 10
	}
	return 2
}

// secondsFor is how far polls are apart, in seconds, that bring so many bytes each.
func secondsFor(n int) int { return (n*60 + mostAMinute - 1) / mostAMinute }

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
func (q *request) region(p *page, poll string, since time.Time, body func() any) (region, error) {
	shares, key := poll != "" && len(poll) <= mostOfAPoll && !since.IsZero() && q.user != nil, ""
	if shares {
		key = fmt.Sprintf("region %s %q %s %s %v %t %q", p.Name, poll, q.look.Language.Tag, q.look.Zone, p.Shown(p.Name), q.user.Admin, q.user.Apps)
		if r, there := q.live.Renew(key, func(v any) bool { r, is := v.(region); return is && r.since.Equal(since) }); there {
			return r.(region), nil
		}
	}
	if p.Body == nil {
		p.Body = body()
	}
	content, err := p.Own("region")
	if err != nil {
		return region{}, err
	}
	sum := sha256.Sum256([]byte(string(content) + poll))
	r := region{content: content, tag: hex.EncodeToString(sum[:8]), since: since}
	switch {
	case poll == "":
	case secondsFor(len(content)) <= p.soonest(): // packed it would be less
		r.packed = len(content)
	default:
		r.packed = len(web.Gzip([]byte(content)))
	}
	if shares {
		q.live.Keep(key, web.Reading{At: time.Now(), Value: r})
	}
	return r, nil
}
