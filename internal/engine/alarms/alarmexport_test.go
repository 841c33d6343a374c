package alarms

import (
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

// AlarmBook is the book of alarms of a node.
type AlarmBook struct{ book *alarmBook }

// AlarmFlight is a message, with the alarms that it tells and the place of its rule.
type AlarmFlight struct {
	alarm.Message
	Rule int
	Rows []int64
	m    alarmMessage
}

// NewAlarmBook is the book of a node that has come up.
func NewAlarmBook(rules []alarm.Rule) *AlarmBook {
	return &AlarmBook{book: newAlarmBook(NewRules(rules), "node")}
}

// Take takes alarms in, and what is known of their jobs.
func (b *AlarmBook) Take(list []store.Alarm, told func(ids []int64) []store.JobTold) {
	for _, a := range list {
		b.book.take(a)
	}
	if ids := b.book.unknown(); len(ids) > 0 {
		b.book.know(ids, told(ids))
	}
}

// Due are the messages that are to go now, with what had to be read again, and when the next
// one is.
func (b *AlarmBook) Due(now time.Time, room func(rule int) bool, read func(id int64) store.Alarm) (list []AlarmFlight, next time.Time) {
	messages, next := b.book.due(now, room)
	for _, m := range messages {
		var more []store.Alarm
		for _, id := range m.missing {
			more = append(more, read(id))
		}
		m.complete(more)
		list = append(list, AlarmFlight{m.said, m.rule, m.rows, m})
	}
	return list, next
}

// Sent takes in the end of one.
func (b *AlarmBook) Sent(f AlarmFlight, now time.Time, err error) { b.book.sent(&f.m, now, err) }

// Save gives what is to be noted to the store.
func (b *AlarmBook) Save(mark func(store.AlarmMarks)) {
	m := b.book.marks
	mark(m)
	b.book.saved(m)
}

// Key is what the store calls a rule.
func Key(r alarm.Rule) string { return NewRules([]alarm.Rule{r})[0].kept.Key }

// Jobs is how many jobs it has.
func (b *AlarmBook) Jobs() int { return len(b.book.jobs) }

// Size is how many alarms it has.
func (b *AlarmBook) Size() int { return b.book.size }

// Keep forgets what others have had.
func (b *AlarmBook) Keep(shards ...store.Shard) { b.book.keep(shards) }

// Marks is what the store does not have yet.
func (b *AlarmBook) Marks() store.AlarmMarks { return b.book.marks }

// TroubleBook is the book of the troubles that a node passes on; it has no rules.
type TroubleBook struct{ book *troubleBook }

// NewTroubleBook is the book of a node that has come up.
func NewTroubleBook() *TroubleBook {
	b := &TroubleBook{newTroubleBook(nil, "node")}
	b.book.passOn()
	return b
}

// Note takes in the troubles that there are, and gives what is to be noted now to pass, which says whether
// it was.
func (b *TroubleBook) Note(all []store.Trouble, now time.Time, pass func(count int, over bool) error) {
	b.book.note(all, now, now)
	messages, _ := b.book.due(now, func(int) bool { return true })
	for _, m := range messages {
		b.book.ended(&m, now, nil, pass(len(m.troubles.keys), m.troubles.over))
	}
}
