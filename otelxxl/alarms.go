package otelxxl

import (
	"context"
	"errors"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/xxljob/xxljob/alarm"
)

// Alarms returns the rules with alarmers that count their calls (xxljob.alarm.calls), by rule,
// cause, and whether there was an error: for Config.Alarms. A rule without an alarmer is left
// as it is.
func (t *Telemetry) Alarms(rules []alarm.Rule) []alarm.Rule {
	rules = slices.Clone(rules)
	for i := range rules {
		if rules[i].To != nil {
			t.expect(&rules[i])
			rules[i].To = counted{t, rules[i].Name, rules[i].To}
		}
	}
	return rules
}

// expect makes the series of a rule, so that its first alarm is an increase.
func (t *Telemetry) expect(r *alarm.Rule) {
	causes := slices.Clone(r.Causes)
	if len(causes) == 0 {
		causes = []alarm.Cause{alarm.Failed, alarm.Lost, alarm.Skipped, alarm.Stopped, alarm.Late, alarm.Trouble}
	}
	name := r.Name
	t.calls.alarms.tell("the series of a rule", func() {
		for _, cause := range causes {
			for _, err := range []error{nil, errAlarm, context.DeadlineExceeded} {
				t.work.alarms.Add(context.Background(), 0, ofAlarm(name, cause, err))
			}
		}
	})
}

// errAlarm is any error of an alarmer.
var errAlarm = errors.New("the alarmer failed")

// ofAlarm are the attributes of a call of an alarmer.
func ofAlarm(rule string, cause alarm.Cause, err error) metric.AddOption {
	attributes := []attribute.KeyValue{keyRule.String(rule), keyCause.String(string(cause))}
	if err != nil {
		attributes = append(attributes, semconv.ErrorTypeKey.String(errorType(err)))
	}
	return metric.WithAttributes(attributes...)
}

// counted is an alarmer whose calls are counted.
type counted struct {
	t    *Telemetry
	rule string
	to   alarm.Alarmer
}

// Alarm implements alarm.Alarmer.
func (c counted) Alarm(ctx context.Context, m alarm.Message) error {
	err := c.to.Alarm(ctx, m)
	of := ofAlarm(c.rule, m.Cause, err)
	c.t.calls.alarms.tell("counting an alarm", func() { c.t.work.alarms.Add(ctx, 1, of) })
	return err
}
