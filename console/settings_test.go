package console_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/console"
)

// whom is an alarmer that has a secret.
type whom struct{ Password string }

func (whom) Alarm(context.Context, alarm.Message) error { return nil }

// TestSettings says how all is set, in the viewer's language and without a secret; rules and doors to admins
// alone, for they name apps.
func TestSettings(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t, func(c *console.Config) {
			c.Scheduler = must1(xxljob.New(c.Store, xxljob.Config{App: "orders", Node: "node-7", Location: must1(time.LoadLocation("Asia/Tokyo")), RunRetention: 45 * 24 * time.Hour, Logger: slog.New(slog.DiscardHandler),
				HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"billing": {"the-token-of-billing"}}, JobsAPI: []string{"billing"}}, Alarms: []alarm.Rule{{Name: "oncall", To: whom{"swordfish"}, Apps: []string{"billing"}}}}))
		})
		root := x.admin()
		ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
		root.get("settings").is(200).has("About", "node-7", "Asia/Tokyo", "45 d", "oncall · console_test · billing", "Users", "Tokens", "this console", "Log of a run, at most 1 MiB", "Logs of a job, at most 64 MiB").lacks("1,048,576", "67,108,864", "swordfish", "the-token-of-billing")
		ann.get("settings").is(200).has("About", "node-7", "45 d").lacks("billing", "oncall", `href="./tokens"`, `href="./users"`)
		root.post("look", map[string][]string{"language": {"zh-CN"}, "next": {"settings"}}).is(200).has("45 天", "运行记录", "1 MiB")
	})
}

// TestSettingsWithoutAScheduler say what the console knows.
func TestSettingsWithoutAScheduler(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t, func(c *console.Config) { c.Scheduler, c.ReadOnly = nil, true })
		x.admin().get("settings").is(200).has("Store", "memory", "Read-only").lacks("Shards")
	})
}

// TestSizesOfSettings are said by the largest unit that says exactly what was set.
func TestSizesOfSettings(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t, func(c *console.Config) {
			c.Scheduler = must1(xxljob.New(c.Store, xxljob.Config{App: "orders", Logger: slog.New(slog.DiscardHandler), Logs: xxljob.LogConfig{RunBytes: 1_000_000, JobBytes: 3 << 29}}))
		})
		x.admin().get("settings").is(200).has("Log of a run, at most 1,000,000 bytes", "Logs of a job, at most 1,536 MiB")
	})
}
