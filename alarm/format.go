package alarm

import (
	"errors"
	"fmt"
	htmltemplate "html/template"
	"net/url"
	"sync"
	texttemplate "text/template"
	"time"
)

// Bounds of a Text, in bytes.
const (
	maxSubject = 200
	maxPlain   = 64 << 10
	maxLink    = 2 << 10
	maxWritten = 256 << 10 // by a template; the HTML is not cut, as that would break it
)

// Text is how a message reads.
type Text struct {
	// Subject is one line of at most 200 bytes without control characters.
	Subject string
	// Plain has several lines, at most 64 KiB, without control characters but line feeds.
	Plain string
	// HTML is a whole document of at most 256 KiB with everything in it escaped that is not
	// the template's.
	HTML string
}

// FormatConfig says how messages read. The zero value is a text in English with times in
// UTC.
type FormatConfig struct {
	// Language is that of the texts. Empty means English.
	Language Language
	// Location is where times are shown. Nil means UTC.
	Location *time.Location
	// Link returns the address of a page about a message, of a console for example: one of
	// http or https of at most 2 KiB. "" means none. It is called with a message that Clean
	// has made safe, by several goroutines, and a panic in it is an error of Render.
	Link func(m Message) string
	// Subject and Plain are templates of text/template, and HTML is one of html/template, in
	// place of the built-in ones. They are executed with a View. Empty means the built-in
	// one. A template is the host's own code: one that never ends is not ended.
	Subject, Plain, HTML string
}

// Format makes texts of messages. Its zero value is complete: English, with times in UTC.
// It is safe for concurrent use, and must not be copied.
type Format struct {
	link     func(Message) string
	words    catalogue
	location *time.Location

	once    sync.Once // for the zero value
	subject *texttemplate.Template
	plain   *texttemplate.Template
	html    *htmltemplate.Template
	own     struct{ plain, html bool } // the templates are the user's
}

// NewFormat makes a Format. It returns an error for a language that there are no texts in,
// for a template that does not compile, and for one that fails on a message made up for it,
// as one does that names a field that a View has not.
func NewFormat(cfg FormatConfig) (*Format, error) {
	words, err := catalogueOf(cfg.Language)
	if err != nil {
		return nil, err
	}
	f := &Format{link: cfg.Link, words: words, location: cfg.Location}
	if cfg.Subject != "" {
		if f.subject, err = texttemplate.New("subject").Parse(cfg.Subject); err != nil {
			return nil, fmt.Errorf("alarm: FormatConfig.Subject: %w", err)
		}
	}
	if cfg.Plain != "" {
		f.own.plain = true
		if f.plain, err = texttemplate.New("plain").Parse(cfg.Plain); err != nil {
			return nil, fmt.Errorf("alarm: FormatConfig.Plain: %w", err)
		}
	}
	if cfg.HTML != "" {
		f.own.html = true
		if f.html, err = htmltemplate.New("html").Parse(cfg.HTML); err != nil {
			return nil, fmt.Errorf("alarm: FormatConfig.HTML: %w", err)
		}
	}
	f.ready()
	v := newView(sample(), f.words, f.location)
	v.Link = "https://console.example.org/runs/7"
	if _, err := f.render(v); err != nil {
		return nil, err
	}
	return f, nil
}

// sample is a message that uses all there is.
func sample() Message {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	event := Event{Cause: Failed, At: at, RunID: 7, State: "failed", Attempt: 1, Instant: at, Text: "a reason\nof two lines"}
	return Message{
		ID: "7/sample", Cause: Failed, App: "app", JobID: 1, JobKey: "key", JobName: "name", Emails: []string{"a@example.org"},
		Count: 3, First: at, Last: at, Events: []Event{event, event}, Node: "node",
	}
}

// ready completes what was not made by NewFormat.
func (f *Format) ready() *Format {
	f.once.Do(func() {
		if f.words == nil {
			f.words = english()
		}
		if f.location == nil {
			f.location = time.UTC
		}
		if f.plain == nil {
			f.plain = texttemplate.Must(texttemplate.New("plain").Parse(builtinPlain))
		}
		if f.html == nil {
			f.html = htmltemplate.Must(htmltemplate.New("html").Parse(builtinHTML))
		}
	})
	return f
}

// Render makes a text of a message, which may hold anything: what it shows of it is what
// Clean leaves. The text is complete also where it returns an error: that of a template or
// of Link, which has failed, panicked, or written more than a text may be long. What that
// was to be is the built-in text then, or no link, so that people are told even so.
func (f *Format) Render(m Message) (Text, error) {
	f.ready()
	v := newView(m, f.words, f.location)
	var linkErr error
	v.Link, linkErr = f.linkOf(v.Message)
	text, err := f.render(v)
	return text, errors.Join(linkErr, err)
}

// Link returns the address of a page about a message, or "": what FormatConfig.Link says,
// if it is one of http or https.
func (f *Format) Link(m Message) string {
	link, _ := f.linkOf(Clean(m))
	return link
}

func (f *Format) linkOf(m Message) (link string, err error) {
	if f.link == nil {
		return "", nil
	}
	defer func() {
		if v := recover(); v != nil {
			link, err = "", fmt.Errorf("alarm: FormatConfig.Link: panic: %v", v)
		}
	}()
	s := f.link(m)
	if s == "" {
		return "", nil
	}
	u, err := url.Parse(s)
	if err != nil || len(s) > maxLink || Line(s, maxLink) != s || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("alarm: FormatConfig.Link returned no address of http or https of at most 2 KiB")
	}
	return s, nil
}

func (f *Format) render(v View) (Text, error) {
	text := Text{Subject: subject(v)}
	var subjectErr, plainErr, htmlErr error
	if f.subject != nil {
		var s string
		if s, subjectErr = execute(f.subject, v, maxWritten); subjectErr == nil && Line(s, maxSubject) != "" {
			text.Subject = Line(s, maxSubject)
		}
	}
	text.Plain, plainErr = execute(f.plain, v, maxWritten)
	if plainErr != nil && f.own.plain {
		text.Plain, _ = execute(texttemplate.Must(texttemplate.New("plain").Parse(builtinPlain)), v, maxWritten)
	}
	text.Plain = Block(text.Plain, maxPlain)
	text.HTML, htmlErr = execute(f.html, v, maxWritten)
	if htmlErr != nil && f.own.html {
		text.HTML, _ = execute(htmltemplate.Must(htmltemplate.New("html").Parse(builtinHTML)), v, maxWritten)
	}
	return text, errors.Join(subjectErr, plainErr, htmlErr)
}
