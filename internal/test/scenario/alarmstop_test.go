package scenario_test

// What a stop does to messages that are on their way, and how many recover at once.

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// slowSink is a sink that takes its time, whatever its context says.
type slowSink struct {
	sink
	takes time.Duration
}

func (s *slowSink) Alarm(ctx context.Context, m alarm.Message) error {
	time.Sleep(s.takes)
	return s.sink.Alarm(ctx, m)
}

// TestAStopBetweenAMessageAndItsMark: what an alarmer has taken while its node stops is told
// once, though another node takes the shards over at once. That is so for a tenth of a second.
func TestAStopBetweenAMessageAndItsMark(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{80 * time.Millisecond, 140 * time.Millisecond} {
		inBubble(t, takes.String(), func(t *testing.T) {
			st, slow := memory.New(), &slowSink{takes: takes}
			slow.began = time.Now()
			rule := withRule(alarm.Rule{Name: "sink", To: slow, Window: -1})
			fail := func(context.Context, *xxljob.Task) error { return errBoom }
			a := startFailing(t, st, "a", fail, rule)
			stage.TriggerNew(t, a, xxljob.Job{Name: "j", Handler: "try"})
			time.Sleep(50 * time.Millisecond)
			b := startFailing(t, st, "b", fail, rule)
			began := time.Now()
			stage.Stop(t, a.Node)
			if took := time.Since(began); took > takes {
				t.Errorf("the stop took %v, want at most %v", took, takes)
			}
			time.Sleep(time.Minute)
			if all := slow.messages(); len(all) != 1 {
				t.Errorf("told %d times, want once", len(all))
			}
			stage.Stop(t, b.Node)
		})
	}
}

// TestAStopBehindWhichAMessageArrives: one that takes longer is noted all the same, for whoever
// comes later.
func TestAStopBehindWhichAMessageArrives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, slow := memory.New(), &slowSink{takes: 900 * time.Millisecond}
		slow.began = time.Now()
		rule := withRule(alarm.Rule{Name: "sink", To: slow, Window: -1})
		fail := func(context.Context, *xxljob.Task) error { return errBoom }
		a := startFailing(t, st, "a", fail, rule)
		stage.TriggerNew(t, a, xxljob.Job{Name: "j", Handler: "try"})
		time.Sleep(50 * time.Millisecond)
		stage.Stop(t, a.Node)
		b := startFailing(t, st, "b", fail, rule)
		time.Sleep(time.Minute)
		if all := slow.messages(); len(all) != 1 {
			t.Errorf("told %d times, want once", len(all))
		}
		stage.Stop(t, b.Node)
	})
}

// TestManyRecoverAtOnce: 1,200 jobs that recover together are all told of, each once, before
// the first of them could be told of again.
func TestManyRecoverAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const jobs = 1200
		st, slow, m := memory.New(), &slowSink{takes: 20 * time.Millisecond}, &mending{}
		slow.began = time.Now()
		f := startFailing(t, st, "a", m.handle, withRule(alarm.Rule{Name: "sink", To: slow, Causes: andRecovered}))
		var list []xxljob.Job
		for i := range jobs {
			list = append(list, addJob(t, f, xxljob.Job{Name: fmt.Sprint("j", i)}))
		}
		for round := range 2 {
			for _, job := range list {
				stage.Trigger(t, f, job)
			}
			time.Sleep(2 * time.Minute)
			if n := len(slow.messages()); n != jobs*(round+1) {
				t.Fatalf("told %d times, want %d", n, jobs*(round+1))
			}
			m.Store(true)
		}
		causes := map[alarm.Cause]int{}
		for _, said := range slow.messages() {
			causes[said.Cause]++
		}
		if causes[alarm.Failed] != jobs || causes[alarm.Recovered] != jobs {
			t.Errorf("told %v, want %d each", causes, jobs)
		}
		stage.Stop(t, f.Node)
	})
}
