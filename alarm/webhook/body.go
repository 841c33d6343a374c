package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/xxljob/xxljob/alarm"
)

// Body is what New's alarmer posts, as JSON in UTF-8. Fields may be added to it; those that
// are there keep their names and meanings as long as Version is 1. Numbers of jobs and runs
// are strings, as they may be larger than what JavaScript holds. Times are of RFC 3339 in
// UTC with milliseconds. All texts are safe to show as plain text, in the way of
// alarm.Clean.
type Body struct {
	// Version is 1.
	Version int `json:"version"`
	// ID names the message. One that comes again has the same ID, unless more has happened. It
	// is unique among the messages of one store, and a store in memory begins anew with each
	// process, as alarm.Message says: who leaves out repetitions compares App, JobKey and Last
	// too.
	ID string `json:"id"`
	// Cause is that of the newest event: failed, lost, attempt, skipped, stopped, late,
	// recovered, trouble or trouble-over, and what else there may be later.
	Cause string `json:"cause"`
	// Trouble is the kind of trouble that it is about, for these two causes.
	Trouble string `json:"trouble,omitempty"`
	// Recovered is true where the message is good news.
	Recovered bool `json:"recovered"`

	App     string `json:"app"`
	JobID   int64  `json:"job_id,string"`
	JobKey  string `json:"job_key"`
	JobName string `json:"job_name"`
	// Emails are whom the job names, and so whoever has written it: a receiver that writes to them
	// asks itself whether it may. PagerDuty is not told of them.
	Emails []string `json:"emails,omitempty"`

	// Count is how many events the message stands for, First and Last when they happened.
	Count int    `json:"count"`
	First string `json:"first,omitempty"`
	Last  string `json:"last,omitempty"`
	// Node is the node that sends the message.
	Node string `json:"node"`
	// Events are the newest, newest first, at most ten.
	Events []Event `json:"events"`

	// Subject is one line of at most 200 bytes, Text all that there is to say, and Link the
	// address of a page about it, if there is one: as Config.Format has them.
	Subject string `json:"subject"`
	Text    string `json:"text"`
	Link    string `json:"link,omitempty"`
}

// Event is one thing that has happened. RunID is "0", and State, Attempt and Instant are not
// there, where it is about no run.
type Event struct {
	Cause   string `json:"cause"`
	At      string `json:"at,omitempty"`
	RunID   int64  `json:"run_id,string"`
	State   string `json:"state,omitempty"`
	Attempt int    `json:"attempt,omitempty"` // from 1, as texts count; left out where no run is meant
	Instant string `json:"instant,omitempty"`
	Text    string `json:"text"`
}

// bodyOf writes a message that is clean.
func bodyOf(m alarm.Message, text alarm.Text, link string) Body {
	b := Body{
		Version: 1, ID: m.ID, Cause: string(m.Cause), Trouble: m.Trouble, Recovered: m.Cause.Good(),
		App: m.App, JobID: m.JobID, JobKey: m.JobKey, JobName: m.JobName, Emails: m.Emails,
		Count: m.Count, First: stamp(m.First), Last: stamp(m.Last), Node: m.Node, Events: []Event{},
		Subject: text.Subject, Text: text.Plain, Link: link,
	}
	for _, e := range m.Events {
		attempt := 0
		if e.RunID != 0 {
			attempt = e.Attempt + 1
		}
		b.Events = append(b.Events, Event{
			Cause: string(e.Cause), At: stamp(e.At), RunID: e.RunID, State: e.State,
			Attempt: attempt, Instant: stamp(e.Instant), Text: e.Text,
		})
	}
	return b
}

// stamp writes a time, and nothing for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

func ownRequest(h *Hook, m alarm.Message, text alarm.Text, now time.Time) (request, error) {
	body, err := encode(bodyOf(alarm.Clean(m), text, h.format.Link(m)))
	if err != nil {
		return request{}, err
	}
	r := request{body: body}
	if h.secret != "" {
		t := strconv.FormatInt(now.Unix(), 10)
		r.sign = "t=" + t + ",v1=" + hex.EncodeToString(sum(h.secret, t+"."+string(body)))
	}
	return r, nil
}

// sum is the HMAC-SHA256 of a text.
func sum(key, text string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text)) // never fails
	return mac.Sum(nil)
}
