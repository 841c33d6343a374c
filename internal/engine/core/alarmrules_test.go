package core_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/engine/core"
)

// noAlarmer takes every message.
type noAlarmer struct{}

func (noAlarmer) Alarm(context.Context, alarm.Message) error { return nil }

// TestConfigAlarms: each limit of each field of a rule.
func TestConfigAlarms(t *testing.T) {
	good := alarm.Rule{Name: "mail", To: noAlarmer{}}
	for _, tt := range []struct {
		name  string
		rule  func(r *alarm.Rule)
		field string // empty: it is fine
	}{
		{"the least", func(*alarm.Rule) {}, ""},
		{"a name of 64 bytes", func(r *alarm.Rule) { r.Name = strings.Repeat("x", 64) }, ""},
		{"every printable sign", func(r *alarm.Rule) { r.Name = "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~" }, ""},
		{"no name", func(r *alarm.Rule) { r.Name = "" }, "Alarms[1].Name"},
		{"a name of 65 bytes", func(r *alarm.Rule) { r.Name = strings.Repeat("x", 65) }, "Alarms[1].Name"},
		{"a space", func(r *alarm.Rule) { r.Name = "a b" }, "Alarms[1].Name"},
		{"a line feed", func(r *alarm.Rule) { r.Name = "a\n" }, "Alarms[1].Name"},
		{"DEL", func(r *alarm.Rule) { r.Name = "a\x7f" }, "Alarms[1].Name"},
		{"not ASCII", func(r *alarm.Rule) { r.Name = "错" }, "Alarms[1].Name"},
		{"a name that is taken", func(r *alarm.Rule) { r.Name = "first" }, "Alarms[1].Name"},
		{"a name in other letters", func(r *alarm.Rule) { r.Name = "First" }, ""},
		{"nobody to tell", func(r *alarm.Rule) { r.To = nil }, "Alarms[1].To"},
		{"apps", func(r *alarm.Rule) { r.Apps = []string{"a", strings.Repeat("x", 64)} }, ""},
		{"an empty app", func(r *alarm.Rule) { r.Apps = []string{"a", ""} }, "Alarms[1].Apps"},
		{"an app of 65 bytes", func(r *alarm.Rule) { r.Apps = []string{strings.Repeat("x", 65)} }, "Alarms[1].Apps"},
		{"jobs", func(r *alarm.Rule) { r.Jobs = []string{"app/key", "app/a/b"} }, ""},
		{"a job without an app", func(r *alarm.Rule) { r.Jobs = []string{"key"} }, "Alarms[1].Jobs"},
		{"a job without a key", func(r *alarm.Rule) { r.Jobs = []string{"app/"} }, "Alarms[1].Jobs"},
		{"a job with no app before the slash", func(r *alarm.Rule) { r.Jobs = []string{"/key"} }, "Alarms[1].Jobs"},
		{"every cause", func(r *alarm.Rule) {
			r.Causes = []alarm.Cause{alarm.Failed, alarm.Lost, alarm.Attempt, alarm.Skipped, alarm.Stopped, alarm.Late, alarm.Recovered, alarm.Trouble}
		}, ""},
		{"an end that comes with its beginning", func(r *alarm.Rule) { r.Causes = []alarm.Cause{alarm.TroubleOver} }, "Alarms[1].Causes"},
		{"a cause that there is not", func(r *alarm.Rule) { r.Causes = []alarm.Cause{"boom"} }, "Alarms[1].Causes"},
		{"an empty cause", func(r *alarm.Rule) { r.Causes = []alarm.Cause{""} }, "Alarms[1].Causes"},
		{"a window of 1 s", func(r *alarm.Rule) { r.Window = time.Second }, ""},
		{"a window of 24 h", func(r *alarm.Rule) { r.Window = 24 * time.Hour }, ""},
		{"no window", func(r *alarm.Rule) { r.Window = -1 }, ""},
		{"a window of less than 1 s", func(r *alarm.Rule) { r.Window = time.Second - 1 }, "Alarms[1].Window"},
		{"a window of more than 24 h", func(r *alarm.Rule) { r.Window = 24*time.Hour + 1 }, "Alarms[1].Window"},
		{"a window of -2", func(r *alarm.Rule) { r.Window = -2 }, "Alarms[1].Window"},
		{"a timeout of 1 ms", func(r *alarm.Rule) { r.Timeout = time.Millisecond }, ""},
		{"a timeout of 10 min", func(r *alarm.Rule) { r.Timeout = 10 * time.Minute }, ""},
		{"a timeout of less than 1 ms", func(r *alarm.Rule) { r.Timeout = time.Millisecond - 1 }, "Alarms[1].Timeout"},
		{"a timeout of more than 10 min", func(r *alarm.Rule) { r.Timeout = 10*time.Minute + 1 }, "Alarms[1].Timeout"},
		{"a negative timeout", func(r *alarm.Rule) { r.Timeout = -1 }, "Alarms[1].Timeout"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rule := good
			tt.rule(&rule)
			first := good
			first.Name = "first"
			err := core.Config{App: "app", Alarms: []alarm.Rule{first, rule}}.WithDefaults().Validate()
			if tt.field == "" {
				if err != nil {
					t.Errorf("it is refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.field) {
				t.Errorf("error %v, want one about %s", err, tt.field)
			}
		})
	}
}

// TestConfigAlarmRules: 32 of them at most, and all that is wrong is said at once.
func TestConfigAlarmRules(t *testing.T) {
	var rules []alarm.Rule
	for i := range 33 {
		rules = append(rules, alarm.Rule{Name: strings.Repeat("x", i+1), To: noAlarmer{}})
	}
	if err := (core.Config{App: "app", Alarms: rules[:32]}).WithDefaults().Validate(); err != nil {
		t.Errorf("32 rules: %v", err)
	}
	if err := (core.Config{App: "app", Alarms: rules}).WithDefaults().Validate(); err == nil || !strings.Contains(err.Error(), "33 rules") {
		t.Errorf("33 rules: %v", err)
	}
	err := core.Config{App: "app", Alarms: []alarm.Rule{{Window: 1, Timeout: -1}, {}}}.WithDefaults().Validate()
	for _, field := range []string{"Alarms[0].Name", "Alarms[0].To", "Alarms[0].Window", "Alarms[0].Timeout", "Alarms[1].Name", "Alarms[1].To"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("error %v says nothing of %s", err, field)
		}
	}
}
