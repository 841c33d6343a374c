package xxljob

// What an alarmer is told: a message about one job, made of its alarms.

import (
	"cmp"
	"slices"
	"strings"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

// alarmEmails is how many addresses of a job a message has.
const alarmEmails = 20

// alarmMessage is one that is on its way.
type alarmMessage struct {
	said alarm.Message
	// flight is its number in the book: another one may go later about the same.
	flight int64
	job    int64
	rule   int
	rows   []int64 // ids; none for one that says that the job has recovered
	last   store.Alarm
	// found are those that it tells of, missing the ids of more, which have to be read again:
	// of a storm a book has few.
	found   []store.Alarm
	missing []int64
}

// complete takes in those of the missing that are still in the store.
func (m *alarmMessage) complete(more []store.Alarm) {
	m.found, m.missing = append(m.found, more...), nil
	m.say()
}

// say sets what the message says of those that are found.
func (m *alarmMessage) say() {
	slices.SortFunc(m.found, func(a, b store.Alarm) int { return cmp.Compare(b.ID, a.ID) })
	m.said.Events = nil
	for i := range m.found {
		m.said.Events = append(m.said.Events, eventOf(&m.found[i]))
	}
	if len(m.found) > 0 {
		m.last = m.found[0]
	}
	m.fill(&m.last)
}

// fill sets what each message says of the job.
func (m *alarmMessage) fill(of *store.Alarm) {
	m.said.Emails = nil
	m.said.App, m.said.JobID, m.said.JobKey, m.said.JobName = of.App, of.JobID, of.JobKey, of.JobName
	for part := range strings.SplitSeq(of.Email, ",") {
		if part = strings.TrimSpace(part); part != "" && len(m.said.Emails) < alarmEmails {
			m.said.Emails = append(m.said.Emails, part)
		}
	}
}

func eventOf(a *store.Alarm) alarm.Event {
	return alarm.Event{Cause: alarm.Cause(a.Cause), At: a.At, RunID: a.RunID, State: a.State, Attempt: a.Attempt, Instant: a.Instant, Text: a.Text}
}
