package otelxxl

import (
	"context"
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
			rules[i].To = counted{t, rules[i].Name, rules[i].To}
		}
	}
	return rules
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
	attributes := []attribute.KeyValue{keyRule.String(c.rule), keyCause.String(string(m.Cause))}
	if err != nil {
		attributes = append(attributes, semconv.ErrorTypeKey.String(errorType(err)))
	}
	c.t.calls.alarms.tell("counting an alarm", func() { c.t.work.alarms.Add(ctx, 1, metric.WithAttributes(attributes...)) })
	return err
}
