package console

// Times and lengths of time, as pages show them.

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/xxljob/xxljob/console/internal/web"
)

// Time is a moment on a page, in the viewer's zone; "–" for none. What stands beside the text
// says the offset and the time in UTC.
func (p *page) Time(t time.Time) template.HTML { return p.timeTag(t, p.q.stamp(t), "") }

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

// Span is a length of time in words that are alike in all languages: its two largest units.
func (p *page) Span(d time.Duration) string { return spanOf(d) }

func spanOf(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	switch {
	case d < time.Second:
		return fmt.Sprintf("%s%d ms", sign, d.Milliseconds())
	case d < time.Minute:
		return sign + strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
	}
	d = rounded(d)
	parts := []struct {
		n    time.Duration
		unit string
	}{{d / (24 * time.Hour), "d"}, {d / time.Hour % 24, "h"}, {d / time.Minute % 60, "min"}, {d / time.Second % 60, "s"}}
	var out []string
	for _, part := range parts {
		if part.n > 0 && len(out) < 2 {
			out = append(out, fmt.Sprintf("%d %s", part.n, part.unit))
		} else if len(out) > 0 {
			break
		}
	}
	return sign + strings.Join(out, " ")
}
