package console

// Times and lengths of time, as pages show them.

import (
	"html/template"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/look"
)

// Time is a moment on a page, in the viewer's zone; "–" for none. What stands beside the text
// says the offset and the time in UTC.
func (p *page) Time(t time.Time) template.HTML { return p.timeTag(t, p.q.look.Stamp(t), "") }

// Stamp is a moment as plain text, to the second.
func (p *page) Stamp(t time.Time) string { return p.q.look.Stamp(t.Truncate(time.Second)) }

// Second is Time, to the second.
func (p *page) Second(t time.Time) template.HTML {
	if t.IsZero() {
		return "–"
	}
	return p.Time(t.Truncate(time.Second))
}

// Ago is a moment by how long ago it was, or how long it takes until it is.
func (p *page) Ago(t time.Time) template.HTML {
	if t.IsZero() {
		return "–"
	}
	d := p.Now.Sub(t)
	key := "time.ago"
	if d < 0 {
		key, d = "time.in", -d
	}
	return p.timeTag(t, p.T(key, "d", p.Span(look.Rounded(d))), " data-rel")
}

// Moment is a time of a day that is told elsewhere, to the second.
func (p *page) Moment(t time.Time) template.HTML {
	_, clock, _ := strings.Cut(p.q.look.Stamp(t.Truncate(time.Second)), " ")
	return p.timeTag(t, clock, " data-rel")
}

// Late is how late a run began, where that is more than a second; "" else.
func (p *page) Late(r xxljob.Run) string {
	if r.Started.IsZero() || r.Lateness() <= time.Second {
		return ""
	}
	return p.Span(look.Rounded(r.Lateness()))
}

func (p *page) timeTag(t time.Time, text, more string) template.HTML {
	if t.IsZero() {
		return "–"
	}
	in := t.In(p.q.look.Zone)
	title := in.Format("2006-01-02 15:04:05.000 -07:00") + " · " + t.UTC().Format("2006-01-02 15:04:05.000") + " UTC"
	return template.HTML(`<time datetime="` + t.UTC().Format("2006-01-02T15:04:05.000Z") + `" title="` + title + `"` + more + `>` + template.HTMLEscapeString(text) + `</time>`)
}

// Span is a length of time in words: its two largest units.
func (p *page) Span(d time.Duration) string { return p.q.look.Span(d) }

// exact is a length of time to the second, or as people write it who need it shorter.
func (q *request) exact(d time.Duration) string {
	if d <= 0 || d%time.Second != 0 {
		return shortSpan(d)
	}
	return q.look.Exact(d)
}

// storeNow is the time by the store's clock.
func (q *request) storeNow() (time.Time, error) {
	now, err := q.Store.Now(q.ctx)
	if err == nil && now.IsZero() { // a store in this process goes by its clock
		now = time.Now()
	}
	return now, err
}
