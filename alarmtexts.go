package xxljob

// What a book of alarms has in full.

import "github.com/xxljob/xxljob/store"

// alarmTextsMost is how many alarms are kept in full, about 3 kB each at most.
const alarmTextsMost = 4096

// alarmTexts are the alarms that were taken in last, in full. What else a message tells of is
// read again.
type alarmTexts struct {
	byID  map[int64]store.Alarm
	order []int64 // in which they came, a ring
	next  int     // the place in it of the next one
}

func newAlarmTexts() alarmTexts { return alarmTexts{byID: map[int64]store.Alarm{}} }

// add adds an alarm, in the place of the oldest where there are too many.
func (t *alarmTexts) add(a store.Alarm) {
	if len(t.order) < alarmTextsMost {
		t.order = append(t.order, a.ID)
	} else {
		delete(t.byID, t.order[t.next])
		t.order[t.next] = a.ID
		t.next = (t.next + 1) % alarmTextsMost
	}
	t.byID[a.ID] = a
}
