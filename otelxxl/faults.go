package otelxxl

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/xxljob/xxljob"
)

// faults are the counts of FaultStats, by their kinds.
func faults(s *xxljob.FaultStats) map[string]uint64 {
	var panics uint64
	for _, n := range s.Panics {
		panics += n
	}
	return map[string]uint64{
		"picked_up": s.PickedUp, "adopted": s.Adopted, "forgotten": s.Forgotten,
		"unplannable": s.Unplannable, "endless": s.Endless, "absent": s.Absent,
		"alarms_failed": s.AlarmsFailed, "events_dropped": s.EventsDropped,
		"results_refused": s.ResultsRefused, "registrations_refused": s.RegistrationsRefused,
		"unread": s.Unread, "tokens_refused": s.TokensRefused, "untraced": s.Untraced, "panics": panics,
	}
}

// observeFaults says what should not happen. All kinds are there from the start, so that the
// first time is an increase.
func (st *state) observeFaults(say func(spec, float64, ...attribute.KeyValue), s *xxljob.FaultStats) {
	for kind, n := range faults(s) {
		say(faultsSeen, float64(n), keyFault.String(kind))
	}
	places := map[string]uint64{other: 0}
	for place, n := range s.Panics {
		places[st.t.places.of(place)] += n
	}
	for place, n := range places {
		say(panicsSeen, float64(n), keyPlace.String(place))
	}
	for of, b := range st.t.calls.all() {
		say(leftOut, float64(b.left()), keyLeftOut.String(of))
	}
}

// observeLogs says what becomes of lines that go where Config.Logs says.
func observeLogs(say func(spec, float64, ...attribute.KeyValue), s *xxljob.LogStats) {
	for what, n := range map[string]uint64{"written": s.Written, "cut": s.Cut, "dropped": s.Dropped} {
		say(logLines, float64(n), keyLine.String(what))
	}
	say(logWaiting, float64(s.Waiting))
}
