package webhook_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/xxljob/xxljob/alarm"
)

// dedupKey is that of what PagerDuty is told.
func dedupKey(t *testing.T, m alarm.Message) (key string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		for _, p := range presets() {
			if p.name != "pagerduty" {
				continue
			}
			service := newMemory(t, p.answer)
			if err := service.hook(t, p).Alarm(context.Background(), m); err != nil {
				t.Fatal(err)
			}
			var event struct {
				DedupKey string `json:"dedup_key"`
			}
			decode(t, service.last(t).body, &event)
			key = event.DedupKey
		}
	})
	return key
}

// A recovery resolves the alert of its own job: whatever else the messages say, and whatever
// rule they come by.
func TestDedupKeyIsTheJobs(t *testing.T) {
	other := recovered()
	other.ID, other.JobName, other.Node, other.JobID = "4712/another-rule", "renamed", "node-2", 18
	for _, m := range []alarm.Message{one(), storm(), recovered(), other} {
		if key := dedupKey(t, m); key != "xxljob/billing/nightly" {
			t.Errorf("%q", key)
		}
	}
}

// No two jobs have one alert, however long and odd their names are.
func TestDedupKeysDiffer(t *testing.T) {
	long := strings.Repeat("k", 250)
	jobs := []alarm.Message{
		{App: "a", JobKey: "b"}, {App: "a", JobKey: "b/c"}, {App: "a/b", JobKey: "c"},
		{App: "a", JobKey: long + "1"}, {App: "a", JobKey: long + "2"}, {App: "b", JobKey: long + "1"},
		{App: "a", JobKey: "b\nc"}, {App: "a", JobKey: "b c"}, {App: "a", JobKey: "b\u200b"},
		{App: "a", JobKey: "#5"}, {App: "a", JobID: 5}, {App: "a", JobID: 6}, {App: long, JobID: 5}, {App: long, JobID: 6},
	}
	seen := map[string]int{}
	for i, m := range jobs {
		key := dedupKey(t, m)
		if other, twice := seen[key]; twice || len(key) > 255 || alarm.Line(key, 255) != key {
			t.Errorf("job %d has the key of job %d, or one that is too long: %q", i, other, key)
		}
		seen[key] = i
	}
}
