package alarm

// Texts that others wrote, made fit to be shown. What an executor says of a run, or who
// named a job, is not to be trusted: it may be long, hold control characters that end a
// header of a mail, or turn around the direction in which a line is read.

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of the fields of a clean message, in bytes but for the lists.
const (
	maxID     = 100
	maxName   = 200 // of a job, an app, a key or a node
	maxWord   = 64  // of a cause or a state
	maxEmail  = 320
	maxEmails = 20
	maxEvents = 10
	maxReason = 2 << 10
)

// ellipsis ends what was cut.
const ellipsis = "…"

// Line returns s as one line of valid UTF-8 of at most limit bytes. Each run of line breaks
// and other control characters becomes one space, and what is not UTF-8 becomes
// U+FFFD. Characters that turn around the direction of a text are left out, and so are
// those that nobody sees, but for the two that join letters. What is too long is cut
// between two characters and ends with "…". Of a long s, only the beginning is read.
func Line(s string, limit int) string { return clean(s, limit, false) }

// Block is Line for a text of several lines: line feeds stay, and CR LF is one of them.
func Block(s string, limit int) string { return clean(s, limit, true) }

// Clean returns a copy of m whose texts are safe to show: each is what Line makes of it,
// or Block of Event.Text, and has a bound, the longest 2 KiB. At most ten events and twenty
// addresses are left, Count is at least the number of events, and at least 1. The copy
// shares nothing with m.
func Clean(m Message) Message {
	m.ID, m.Cause = Line(m.ID, maxID), Cause(Line(string(m.Cause), maxWord))
	m.App, m.JobKey, m.JobName = Line(m.App, maxName), Line(m.JobKey, maxName), Line(m.JobName, maxName)
	m.Node, m.Trouble = Line(m.Node, maxName), Line(m.Trouble, maxWord)
	m.Count = max(m.Count, len(m.Events), 1)
	emails := make([]string, 0, min(len(m.Emails), maxEmails))
	for _, e := range m.Emails[:cap(emails)] {
		emails = append(emails, Line(e, maxEmail))
	}
	m.Emails = emails
	events := make([]Event, 0, min(len(m.Events), maxEvents))
	for _, e := range m.Events[:cap(events)] {
		e.Cause, e.State = Cause(Line(string(e.Cause), maxWord)), Line(e.State, maxWord)
		e.Text = Block(e.Text, maxReason)
		events = append(events, e)
	}
	m.Events = events
	return m
}

// clean reads s until what it has written is longer than the limit, and gives up where nearly all of it is left out.
func clean(s string, limit int, lines bool) string {
	limit = max(limit, 0)
	var out strings.Builder
	out.Grow(min(len(s), limit) + utf8.UTFMax)
	gap := false // a space is due, if anything follows in this line
	seen := 0    // characters, written or not
	for _, r := range s {
		if out.Len() > limit || seen > 16*(limit+1024) {
			break
		}
		seen++
		switch {
		case lines && r == '\n':
			out.WriteByte('\n')
			gap = false
		case hidden(r):
		case unicode.IsControl(r) || r == '\u2028' || r == '\u2029':
			gap = out.Len() > 0
		default:
			if gap {
				out.WriteByte(' ')
			}
			gap = false
			out.WriteRune(r)
		}
	}
	return strings.TrimSpace(Cut(strings.TrimSpace(out.String()), limit))
}

// Cut returns s, or its beginning of at most limit bytes, which ends between two characters
// and with "…" where there is room for it. It cleans nothing.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := ellipsis
	if limit < len(end) {
		end = ""
	}
	n := max(limit-len(end), 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + end
}

// hidden reports whether a character shows nothing and changes how others are read: the
// marks and overrides of direction, joiners of words, tags, and marks of annotations. The
// joiners of letters (U+200C, U+200D) are part of scripts and of emoji.
func hidden(r rune) bool {
	switch {
	case r == '\u200c' || r == '\u200d':
		return false
	case r == '\u180e', r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}
