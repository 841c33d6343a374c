package alarms

import (
	"cmp"
	"slices"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/store"
)

// Config.Alarms: what is wrong with a rule, and which alarms it is about.

// alarmRule is a rule that is in order.
type alarmRule struct {
	alarm.Rule
	kept   store.AlarmRule // as stores keep it
	window time.Duration   // 0: each event is a message of its own
}

func NewRules(given []alarm.Rule) []alarmRule {
	rules := make([]alarmRule, len(given))
	for i, r := range given {
		r.Apps, r.Jobs, r.Causes = slices.Clone(r.Apps), slices.Clone(r.Jobs), slices.Clone(r.Causes)
		if len(r.Causes) == 0 {
			r.Causes = core.DefaultCauses()
		}
		r.Timeout = cmp.Or(r.Timeout, core.AlarmTimeout)
		rules[i] = alarmRule{Rule: r, kept: store.NewAlarmRule(r), window: cmp.Or(r.Window, core.DefaultWindow)}
		if r.Window == core.NoWindow {
			rules[i].window = 0
		}
	}
	return rules
}

// concerns reports whether a rule is about a job, whatever happens to it.
func (r *alarmRule) concerns(app, key string) bool {
	return (len(r.Apps) == 0 || slices.Contains(r.Apps, app)) && (len(r.Jobs) == 0 || slices.Contains(r.Jobs, app+"/"+key))
}

func (r *alarmRule) wants(cause alarm.Cause) bool { return slices.Contains(r.Causes, cause) }

// AnyWants reports whether some rule tells of the cause.
func AnyWants(rules []alarmRule, cause alarm.Cause) bool {
	return slices.ContainsFunc(rules, func(r alarmRule) bool { return r.wants(cause) })
}
