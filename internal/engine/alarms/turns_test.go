package alarms_test

// Whose turn it is in a book of alarms, and what a shard that moves takes with it.

import (
	"errors"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/engine/alarms"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

// alarmNoon is when all of these happen.
func alarmNoon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// bookOf is a book with so many alarms of each job, which are numbered from 1, in shard 3.
func bookOf(rule alarm.Rule, counts ...int) *alarms.AlarmBook {
	b := alarms.NewAlarmBook([]alarm.Rule{rule})
	b.Keep(store.Shard{ID: 3, Epoch: 1})
	var list []store.Alarm
	for i, n := range counts {
		for range n {
			list = append(list, store.Alarm{ID: int64(len(list) + 1), JobID: int64(i + 1), Shard: 3, Cause: string(alarm.Failed), At: alarmNoon()})
		}
	}
	b.Take(list, func([]int64) []store.JobTold { return nil })
	return b
}

func readNothing(id int64) store.Alarm { return store.Alarm{ID: id, Shard: 3} }

// eight is how much room there is.
func eight() func(int) bool {
	n := 0
	return func(int) bool { n++; return n <= 8 }
}

// TestEachJobHasItsTurn: with eight calls at a time, neither storms of jobs with lower ids nor
// messages that fail keep a job from being told of for longer than a round.
func TestEachJobHasItsTurn(t *testing.T) {
	for name, fails := range map[string]error{"storms": nil, "failures": errors.New("refused")} {
		counts := make([]int, 401)
		for i := range counts {
			counts[i] = 20
		}
		counts[400] = 1
		b, now := bookOf(alarm.Rule{Name: "r", Window: -1}, counts...), alarmNoon()
		told := false
		for range 51 { // as many rounds as there are eights of jobs
			list, _ := b.Due(now, eight(), readNothing)
			for _, f := range list {
				told = told || f.Rows[0] == 8001
				b.Sent(f, now, fails)
			}
			now = now.Add(30 * time.Second)
		}
		if !told {
			t.Errorf("%s: the last job was not tried once in a round of all", name)
		}
	}
}

// TestAShardThatMovesTakesItsAlarmsAlong: what was another node's for a while is read again, no
// mark of before is saved over that node's, and of a message that was on its way it is noted
// that it was told, and nothing else.
func TestAShardThatMovesTakesItsAlarmsAlong(t *testing.T) {
	b, now := bookOf(alarm.Rule{Name: "r", Causes: []alarm.Cause{alarm.Failed, alarm.Recovered}}, 1, 1), alarmNoon()
	list, _ := b.Due(now, eight(), readNothing)
	if len(list) != 2 {
		t.Fatalf("%d messages, want 2", len(list))
	}
	b.Sent(list[0], now, nil)
	b.Keep(store.Shard{ID: 3, Epoch: 2})
	if m := b.Marks(); len(m.Jobs) != 0 || len(m.Told) != 1 || m.Told[0].ID != 1 || b.Jobs() != 0 {
		t.Errorf("marks %+v of %d jobs, want that one alarm was told, and nothing of its job", m, b.Jobs())
	}
	b.Sent(list[1], now, nil)
	if m := b.Marks(); len(m.Jobs) != 0 || len(m.Told) != 2 || m.Told[1].ID != 2 {
		t.Errorf("marks %+v, want that the second alarm was told", m)
	}
}

// TestATimeThatIsToCome: a message is not held back by a time that lies further ahead than its
// window, since the clock was set back; a node whose clock lags by little keeps the window.
func TestATimeThatIsToCome(t *testing.T) {
	for ahead, want := range map[time.Duration]int{72 * time.Hour: 1, time.Second: 0} {
		b := alarms.NewAlarmBook([]alarm.Rule{{Name: "r"}})
		b.Take([]store.Alarm{{ID: 9, JobID: 1, Cause: string(alarm.Failed), At: alarmNoon()}}, func([]int64) []store.JobTold {
			return []store.JobTold{{JobID: 1, Rule: alarms.Key(alarm.Rule{Name: "r"}), At: alarmNoon().Add(ahead)}}
		})
		if list, _ := b.Due(alarmNoon(), eight(), readNothing); len(list) != want {
			t.Errorf("told last in %v: %d messages, want %d", ahead, len(list), want)
		}
	}
}

// TestAClockThatIsSetBackWhileATurnWaits: neither a window nor a back-off that was read off a
// clock three days ahead holds a message back.
func TestAClockThatIsSetBackWhileATurnWaits(t *testing.T) {
	for name, err := range map[string]error{"window": nil, "back-off": errors.New("refused")} {
		b, ahead := bookOf(alarm.Rule{Name: "r", Window: time.Hour}, 1), alarmNoon().Add(72*time.Hour)
		list, _ := b.Due(ahead, eight(), readNothing)
		b.Sent(list[0], ahead, err)
		b.Take([]store.Alarm{{ID: 2, JobID: 1, Shard: 3, Cause: string(alarm.Failed), At: ahead}}, nil)
		if list, next := b.Due(ahead, eight(), readNothing); len(list) != 0 || !next.After(ahead) {
			t.Fatalf("%s: %d messages at once, the next at %v", name, len(list), next)
		}
		if list, _ := b.Due(alarmNoon(), eight(), readNothing); len(list) != 1 {
			t.Errorf("%s: %d messages once the clock is set back, want 1", name, len(list))
		}
	}
}

// TestABookHasItsMost: it says when it is full, and that it is no longer when alarms are done
// with, or went with their shards.
func TestABookHasItsMost(t *testing.T) {
	b := bookOf(alarm.Rule{Name: "r"}, 300, 200)
	if n := b.Size(); n != 500 {
		t.Errorf("%d alarms, want 500", n)
	}
	list, _ := b.Due(alarmNoon(), eight(), readNothing)
	b.Sent(list[0], alarmNoon(), nil)
	b.Save(func(store.AlarmMarks) {})
	if n := b.Size(); n != 200 {
		t.Errorf("%d alarms once those of the first job are told, want 200", n)
	}
	b.Sent(list[1], alarmNoon(), nil)
	b.Keep()
	b.Save(func(store.AlarmMarks) {})
	if n := b.Size(); n != 0 || b.Jobs() != 0 {
		t.Errorf("%d alarms of %d jobs without a shard", n, b.Jobs())
	}
}

// BenchmarkAlarmBook is a storm: each of 10,000 jobs has failed ten times, a rule tells of each
// alarm, another of each job, and eight calls of each are under way at once.
//
//	go test -run '^$' -bench AlarmBook -benchtime 1x -benchmem ./internal/engine/alarms
func BenchmarkAlarmBook(b *testing.B) {
	const jobs, each = 10_000, 10
	for range b.N {
		book, now, id := alarms.NewAlarmBook([]alarm.Rule{{Name: "each", Window: -1}, {Name: "jobs"}}), alarmNoon(), int64(0)
		book.Keep(store.Shard{ID: 3, Epoch: 1})
		var list []store.Alarm
		for range each {
			for job := range int64(jobs) {
				id++
				list = append(list, store.Alarm{ID: id, JobID: job, Shard: 3, Cause: string(alarm.Failed), At: now})
			}
		}
		book.Take(list, func([]int64) []store.JobTold { return nil })
		calls := 0
		for book.Jobs() > 0 {
			due, _ := book.Due(now, eight(), readNothing)
			for _, f := range due {
				calls++
				book.Sent(f, now, nil)
			}
			book.Save(func(store.AlarmMarks) {})
			if len(due) == 0 {
				b.Fatalf("%d jobs are left that are not told of", book.Jobs())
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*calls), "µs/message")
	}
}
