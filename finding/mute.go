package finding

import (
	"slices"
	"strconv"
	"strings"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

// Muted returns the first of the mutes that is about the finding: of its Key, or of its only job. It
// is nil where there is none.
func Muted(mutes []store.Mute, f Finding) *store.Mute {
	key := f.Key()
	for i := range mutes {
		if m := &mutes[i]; m.JobID == 0 && m.Key == key && m.App == f.App || m.JobID != 0 && len(f.Jobs) == 1 && f.Jobs[0] == m.JobID {
			return m
		}
	}
	return nil
}

// alarmsOf are the causes of alarms that a cause leads to, and the states of their runs.
var alarmsOf = map[Cause]struct {
	causes []alarm.Cause
	states []store.State
}{
	Failing:       {[]alarm.Cause{alarm.Failed, alarm.Attempt}, []store.State{store.StateFailed}},
	Flapping:      {[]alarm.Cause{alarm.Failed, alarm.Attempt}, []store.State{store.StateFailed}},
	TimingOut:     {[]alarm.Cause{alarm.Failed, alarm.Attempt}, []store.State{store.StateTimedOut}},
	Losing:        {[]alarm.Cause{alarm.Lost, alarm.Attempt}, []store.State{store.StateLost}},
	Refused:       {[]alarm.Cause{alarm.Failed, alarm.Attempt}, []store.State{store.StateRefused}},
	NoExecutor:    {[]alarm.Cause{alarm.Failed, alarm.Attempt, alarm.Late}, []store.State{store.StateRefused, store.StatePlanned}},
	NoHandler:     {[]alarm.Cause{alarm.Failed, alarm.Attempt, alarm.Late}, []store.State{store.StateRefused, store.StateFailed, store.StatePlanned}},
	Stopped:       {[]alarm.Cause{alarm.Stopped}, nil},
	FallingBehind: {[]alarm.Cause{alarm.Late}, nil},
	Overdue:       {[]alarm.Cause{alarm.Late}, nil},
}

// MutedAlarm returns the first of the mutes that is about the alarm: of its job, or of a cause that
// leads to such alarms. It is nil where there is none.
func MutedAlarm(mutes []store.Mute, a store.Alarm) *store.Mute {
	if a.Trouble != "" {
		if a.Over { // who was told that it has begun is told that it is over
			return nil
		}
		return MutedTrouble(mutes, store.Trouble{Cause: a.Trouble, App: a.App, JobID: a.JobID, Address: a.Address})
	}
	for i := range mutes {
		m := &mutes[i]
		if m.JobID != 0 {
			if m.JobID == a.JobID {
				return m
			}
			continue
		}
		cause, rest, _ := strings.Cut(m.Key, "/")
		of, known := alarmsOf[Cause(cause)]
		if !known || m.App != a.App || !slices.Contains(of.causes, alarm.Cause(a.Cause)) ||
			of.states != nil && !slices.ContainsFunc(of.states, func(s store.State) bool { return s.String() == a.State }) {
			continue
		}
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, m.App), "/")
		if rest == "" || rest == strconv.FormatInt(a.JobID, 10) || rest == hashOf(Signature(a.Text)) {
			return m
		}
	}
	return nil
}

// MutedTrouble returns the first of the mutes that is about what a scheduler says of itself. It is nil
// where there is none.
func MutedTrouble(mutes []store.Mute, t store.Trouble) *store.Mute {
	f := Finding{Cause: Cause(t.Cause), App: t.App, Trouble: &t}
	if t.JobID != 0 {
		f.Jobs = []int64{t.JobID}
	}
	if t.Cause == store.TroubleNoExecutor && t.JobID == 0 {
		f.Trouble = nil // as Attention has it
	}
	return Muted(mutes, f)
}
