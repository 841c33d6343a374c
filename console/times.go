package console

// Times and lengths of time, as pages show them.

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
)

// Time is a moment on a page, in the viewer's zone; "–" for none. What stands beside the text
// says the offset and the time in UTC.
func (p *page) Time(t time.Time) template.HTML { return p.timeTag(t, p.q.stamp(t), "") }

// Stamp is a moment as plain text, to the second.
func (p *page) Stamp(t time.Time) string { return p.q.stamp(t.Truncate(time.Second)) }

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
	return p.timeTag(t, p.T(key, "d", p.Span(rounded(d))), " data-rel")
}

// Moment is a time of a day that is told elsewhere, to the second.
func (p *page) Moment(t time.Time) template.HTML {
	_, clock, _ := strings.Cut(p.q.stamp(t.Truncate(time.Second)), " ")
	return p.timeTag(t, clock, " data-rel")
}

// Late is how late a run began, where that is more than a second; "" else.
func (p *page) Late(r xxljob.Run) string {
	if r.Started.IsZero() || r.Lateness() <= time.Second {
		return ""
	}
	return p.Span(rounded(r.Lateness()))
}

func (p *page) timeTag(t time.Time, text, more string) template.HTML {
	if t.IsZero() {
		return "–"
	}
	in := t.In(p.q.look.zone)
	title := in.Format("2006-01-02 15:04:05.000 -07:00") + " · " + t.UTC().Format("2006-01-02 15:04:05.000") + " UTC"
	return template.HTML(`<time datetime="` + t.UTC().Format("2006-01-02T15:04:05.000Z") + `" title="` + title + `"` + more + `>` + template.HTMLEscapeString(text) + `</time>`)
}

// stamp is a moment to the second, or to the millisecond where it has some. A reading that comes
// twice has the offset behind it.
func (q *request) stamp(t time.Time) string {
	layout := "2006-01-02 15:04:05"
	if t.Nanosecond() != 0 {
		layout += ".000"
	}
	in := t.In(q.look.zone)
	if _, twice := web.Twin(in); twice {
		layout += " -07:00"
	}
	return in.Format(layout)
}

// rounded leaves out of a length what nobody reads.
func rounded(d time.Duration) time.Duration {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond)
	case d < time.Minute:
		return d.Round(100 * time.Millisecond)
	case d < time.Hour:
		return d.Round(time.Second)
	case d < 48*time.Hour:
		return d.Round(time.Minute)
	}
	return d.Round(time.Hour)
}

// Span is a length of time in words: its two largest units.
func (p *page) Span(d time.Duration) string { return p.q.span(d) }

func (q *request) span(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	switch {
	case d < time.Second:
		return sign + q.text("unit.ms", "n", strconv.FormatInt(d.Milliseconds(), 10))
	case d < time.Minute:
		return sign + q.text("unit.s", "n", strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0"))
	}
	return sign + q.units(rounded(d), 2)
}

// exact is a length of time to the second, or as people write it who need it shorter.
func (q *request) exact(d time.Duration) string {
	if d <= 0 || d%time.Second != 0 {
		return shortSpan(d)
	}
	return q.units(d, 4)
}

// units is a length of time by so many of its largest units.
func (q *request) units(d time.Duration, most int) string {
	parts := []struct {
		n    time.Duration
		unit string
	}{{d / (24 * time.Hour), "unit.d"}, {d / time.Hour % 24, "unit.h"}, {d / time.Minute % 60, "unit.min"}, {d / time.Second % 60, "unit.s"}}
	var out []string
	for _, part := range parts {
		if part.n > 0 && len(out) < most {
			out = append(out, q.text(part.unit, "n", strconv.FormatInt(int64(part.n), 10)))
		} else if len(out) > 0 && most < len(parts) {
			break
		}
	}
	return strings.Join(out, " ")
}
