package xxljob

// Config.Alarms: what is wrong with a rule, and which alarms it is about.

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

// The bounds of rules.
const (
	mostRules     = 32 // what has been told of an alarm is a bit each
	defaultWindow = 5 * time.Minute
	alarmTimeout  = 30 * time.Second
	noWindow      = -1
)

// defaultCauses are what an empty Rule.Causes stands for.
func defaultCauses() []alarm.Cause {
	return []alarm.Cause{alarm.Failed, alarm.Lost, alarm.Skipped, alarm.Stopped, alarm.Late}
}

// allCauses are those that a rule may name.
func allCauses() []alarm.Cause { return append(defaultCauses(), alarm.Attempt, alarm.Recovered) }

// validateAlarms collects the faults of the rules.
func (c *Config) validateAlarms(f *faults) {
	if n := len(c.Alarms); n > mostRules {
		f.add("Alarms", n, fmt.Errorf("%d rules, at most %d", n, mostRules))
	}
	for i := range c.Alarms {
		r, field := &c.Alarms[i], fmt.Sprintf("Alarms[%d]", i)
		switch {
		case r.Name == "" || len(r.Name) > 64 || strings.ContainsFunc(r.Name, func(r rune) bool { return r <= ' ' || r > '~' }):
			f.add(field+".Name", shorten(r.Name, 80), errors.New("want 1 to 64 printable characters of ASCII without spaces"))
		case slices.ContainsFunc(c.Alarms[:i], func(o alarm.Rule) bool { return o.Name == r.Name }):
			f.add(field+".Name", r.Name, errors.New("another rule has this name"))
		}
		if r.To == nil {
			f.add(field+".To", nil, errors.New("is nil"))
		}
		for _, app := range r.Apps {
			f.text(field+".Apps", app, 1, 64)
		}
		for _, ref := range r.Jobs {
			if _, _, ok := store.SplitRef(ref); !ok {
				f.add(field+".Jobs", shorten(ref, 80), errors.New(`want "app/key"`))
			}
		}
		for _, cause := range r.Causes {
			if !slices.Contains(allCauses(), cause) {
				f.add(field+".Causes", cause, fmt.Errorf("want some of %q", allCauses()))
			}
		}
		if r.Window != 0 && r.Window != noWindow && (r.Window < time.Second || r.Window > oneDay) {
			f.add(field+".Window", r.Window, errors.New("want 1s to 24h, 0 for five minutes, or -1 for none"))
		}
		if r.Timeout != 0 && (r.Timeout < time.Millisecond || r.Timeout > 10*time.Minute) {
			f.add(field+".Timeout", r.Timeout, errors.New("want 1ms to 10m, or 0 for 30s"))
		}
	}
}

// alarmRule is a rule that is in order.
type alarmRule struct {
	alarm.Rule
	window time.Duration // 0: each event is a message of its own
}

func newAlarmRules(given []alarm.Rule) []alarmRule {
	rules := make([]alarmRule, len(given))
	for i, r := range given {
		r.Apps, r.Jobs, r.Causes = slices.Clone(r.Apps), slices.Clone(r.Jobs), slices.Clone(r.Causes)
		if len(r.Causes) == 0 {
			r.Causes = defaultCauses()
		}
		r.Timeout = cmp.Or(r.Timeout, alarmTimeout)
		rules[i] = alarmRule{Rule: r, window: cmp.Or(r.Window, defaultWindow)}
		if r.Window == noWindow {
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

// alarmPolicy is what a store is to insert for the rules.
func alarmPolicy(rules []alarmRule) (p store.AlarmPolicy) {
	for i := range rules {
		for _, cause := range rules[i].Causes {
			switch cause {
			case alarm.Attempt:
				p.Attempts = true
			case alarm.Recovered:
			default:
				p.Ends = true
			}
		}
	}
	return p
}

// anyWants reports whether some rule tells of the cause.
func anyWants(rules []alarmRule, cause alarm.Cause) bool {
	return slices.ContainsFunc(rules, func(r alarmRule) bool { return r.wants(cause) })
}
