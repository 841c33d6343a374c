package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// What is wrong with a Config.

// OwnExecutor makes the executor that Handle registers with: Middleware is around what its
// own Config has. Entries that are nil are validate's to name, by the list that they are in.
func (c Config) OwnExecutor() (*executor.Executor, error) {
	cfg := c.Executor
	cfg.Middleware = slices.DeleteFunc(slices.Concat(c.Middleware, cfg.Middleware), func(m func(executor.Handler) executor.Handler) bool { return m == nil })
	if cfg.Location == nil {
		cfg.Location = c.Location
	}
	own, err := executor.New(cfg)
	if err != nil {
		return nil, errs.In("config: Executor", err)
	}
	return own, nil
}

func checkMiddleware(f *store.Faults, name string, list []func(executor.Handler) executor.Handler) {
	for i, m := range list {
		if m == nil {
			f.Add(fmt.Sprintf("%s[%d]", name, i), nil, errors.New("is nil"))
		}
	}
}

// Validate collects the faults of a config whose defaults are filled in.
func (c Config) Validate() error {
	f := store.Faults{Of: "config"}
	f.Text("App", c.App, 1, 64)
	known := len(f.Errs)
	f.Text("Node", c.Node, 1, 200)
	if at := strings.IndexFunc(c.Node, notSolid); at >= 0 && len(f.Errs) == known {
		f.Add("Node", c.Node, fmt.Errorf("want printable characters without blanks, not %q", []rune(c.Node[at:])[0]))
	}
	if name := c.Location.String(); name == "" {
		f.Add("Location", name, errors.New("want an IANA zone, from time.LoadLocation"))
	} else if _, err := schedule.LoadZone(name); err != nil {
		f.Add("Location", name, err)
	}
	f.OneOf("CatchUp", string(c.CatchUp), string(store.CatchUpEvery), string(store.CatchUpOnce))
	c.validateRanges(&f)
	c.Ready.validate(&f, c.Cluster.LeaseTTL-c.Cluster.LeaseTTL/5)
	c.validateTokens(&f)
	c.validateJobsAPI(&f)
	c.validateAlarms(&f)
	if c.Executor.Addr != "" || len(c.Executor.Admins) > 0 {
		f.Add("Executor", c.Executor.Addr, errors.New("one with Addr or Admins is made by executor.New, given to Attach, and started by its owner"))
	}
	checkMiddleware(&f, "Middleware", c.Middleware)
	checkMiddleware(&f, "Executor.Middleware", c.Executor.Middleware)
	if len(c.RegistryApps) > 0 && (c.Registry == nil || slices.Contains(c.RegistryApps, "")) {
		f.Add("RegistryApps", c.RegistryApps, errors.New("want names of apps, and a Registry"))
	}
	if len(c.Routers) > mostRouters {
		f.Add("Routers", len(c.Routers), fmt.Errorf("want at most %d", mostRouters))
	}
	for name, r := range c.Routers {
		if name == "" || r == nil {
			f.Add("Routers", name, errors.New("want a name and a Router"))
		}
	}
	return f.Err()
}

// mostRouters bounds Config.Routers: each node tells the others the names of its own.
const mostRouters = 100

// validateRanges collects the durations and numbers that are out of their range.
func (c *Config) validateRanges(f *store.Faults) {
	for _, d := range []struct {
		name     string
		d        time.Duration
		min, max time.Duration
	}{
		{"PreRead", c.PreRead, 100 * time.Millisecond, MaxPreRead},
		{"MisfireThreshold", c.MisfireThreshold, time.Millisecond, schedule.MaxPeriod},
		{"Limits.SlowAfter", c.Limits.SlowAfter, time.Millisecond, schedule.MaxPeriod},
		{"Cluster.Beat", c.Cluster.Beat, 100 * time.Millisecond, schedule.MaxPeriod},
		{"Cluster.Dead", c.Cluster.Dead, c.Cluster.Beat, schedule.MaxPeriod},
		{"Cluster.LostAfter", c.Cluster.LostAfter, c.Cluster.LeaseTTL, schedule.MaxPeriod},
		{"Cluster.PruneAfter", c.Cluster.PruneAfter, time.Second, schedule.MaxPeriod},
		{"RunRetention", c.RunRetention, time.Hour, schedule.MaxPeriod},
		{"ChangeRetention", c.ChangeRetention, 24 * time.Hour, schedule.MaxPeriod},
		{"Cluster.LeaseTTL", c.Cluster.LeaseTTL, 100 * time.Millisecond, time.Hour},
		{"Cluster.LeaseMaxHold", c.Cluster.LeaseMaxHold, 0, schedule.MaxPeriod},
		{"StopGrace", c.StopGrace, 0, schedule.MaxPeriod},
		{"Limits.Overdue", c.Limits.Overdue, c.Cluster.Dead, schedule.MaxPeriod},
		{"HTTP.CallTimeout", c.HTTP.CallTimeout, 10 * time.Millisecond, time.Hour},
		{"Limits.RouteTimeout", c.Limits.RouteTimeout, 10 * time.Millisecond, loop.CallTimeout},
	} {
		if d.d < d.min || d.d > d.max {
			f.Add(d.name, d.d, fmt.Errorf("want %v to %v", d.min, d.max))
		}
	}
	for _, n := range []struct {
		name        string
		n, min, max int
	}{
		{"Limits.ScanLimit", c.Limits.ScanLimit, 1, 1 << 20}, {"Limits.MaxPlanned", c.Limits.MaxPlanned, 1, 1 << 20}, {"Limits.MaxHeld", c.Limits.MaxHeld, 2 * ScanRuns, 1 << 30},
		{"Limits.FastLane", c.Limits.FastLane, 1, 1 << 20}, {"Limits.SlowLane", c.Limits.SlowLane, 1, 1 << 20},
		{"Limits.SlowCount", c.Limits.SlowCount, 1, 1 << 20}, {"Cluster.Shards", c.Cluster.Shards, 1, 1024},
		{"HTTP.MaxRegistrations", c.HTTP.MaxRegistrations, 1, 100_000}, {"Logs.RunBytes", c.Logs.RunBytes, 1 << 10, 1 << 30},
		{"Logs.QueueBytes", c.Logs.QueueBytes, 2 << 20, 1 << 30}, {"Logs.BytesPerSecond", c.Logs.BytesPerSecond, 256 << 10, 1 << 30},
	} {
		if n.n < n.min || n.n > n.max {
			f.Add(n.name, n.n, fmt.Errorf("want %d to %d", n.min, n.max))
		}
	}
	if n := c.Logs.JobBytes; n < 64<<10 || n > 1<<40 {
		f.Add("Logs.JobBytes", n, fmt.Errorf("want %d to %d", 64<<10, int64(1)<<40))
	}
	if c.Logs.InStore && c.Logs.Sink != nil {
		f.Add("Logs.Sink", nil, errors.New("is set beside InStore: lines go to one of them"))
	}
}

// CheckUnnamed returns what is wrong with an App that is the default, for the store: the name of the
// program's file changes with builds and debuggers, and jobs that are stored under it are lost then.
func (c *Config) CheckUnnamed(s store.Store) error {
	if !store.Outlives(s) {
		return nil
	}
	f := store.Faults{Of: "config"}
	f.Add("App", "", fmt.Errorf("the store, a %T, outlives the process, so the app needs a name that stays. Until now it was the program's file name: App: %q finds what is stored under that", s, c.App))
	return f.Err()
}

// CheckLogs returns what is wrong with Logs for the store.
func (c *Config) CheckLogs(s store.Store) error {
	if _, ok := s.(store.LogStore); c.Logs.InStore && !ok {
		f := store.Faults{Of: "config"}
		f.Add("Logs.InStore", true, fmt.Errorf("the store, a %T, keeps no logs: it is no LogStore", s))
		return f.Err()
	}
	return nil
}

// DefaultCauses are what an empty Rule.Causes stands for.
func DefaultCauses() []alarm.Cause {
	return []alarm.Cause{alarm.Failed, alarm.Lost, alarm.Skipped, alarm.Stopped, alarm.Late, alarm.Trouble}
}

// allCauses are those that a rule may name.
func allCauses() []alarm.Cause { return append(DefaultCauses(), alarm.Attempt, alarm.Recovered) }

// validateAlarms collects the faults of the rules.
func (c *Config) validateAlarms(f *store.Faults) {
	if n := len(c.Alarms); n > mostRules {
		f.Add("Alarms", n, fmt.Errorf("%d rules, at most %d", n, mostRules))
	}
	for i := range c.Alarms {
		r, field := &c.Alarms[i], fmt.Sprintf("Alarms[%d]", i)
		switch {
		case r.Name == "" || len(r.Name) > 64 || strings.ContainsFunc(r.Name, func(r rune) bool { return r <= ' ' || r > '~' }):
			f.Add(field+".Name", errs.Shorten(r.Name, 80), errors.New("want 1 to 64 printable characters of ASCII without spaces"))
		case slices.ContainsFunc(c.Alarms[:i], func(o alarm.Rule) bool { return o.Name == r.Name }):
			f.Add(field+".Name", r.Name, errors.New("another rule has this name"))
		}
		if r.To == nil {
			f.Add(field+".To", nil, errors.New("is nil"))
		}
		for _, app := range r.Apps {
			f.Text(field+".Apps", app, 1, 64)
		}
		for _, ref := range r.Jobs {
			if _, _, ok := store.SplitRef(ref); !ok {
				f.Add(field+".Jobs", errs.Shorten(ref, 80), errors.New(`want "app/key"`))
			}
		}
		for _, cause := range r.Causes {
			if !slices.Contains(allCauses(), cause) {
				f.Add(field+".Causes", cause, fmt.Errorf("want some of %q", allCauses()))
			}
		}
		if r.Window != 0 && r.Window != NoWindow && (r.Window < time.Second || r.Window > 24*time.Hour) {
			f.Add(field+".Window", r.Window, errors.New("want 1s to 24h, 0 for five minutes, or -1 for none"))
		}
		if r.Timeout != 0 && (r.Timeout < time.Millisecond || r.Timeout > 10*time.Minute) {
			f.Add(field+".Timeout", r.Timeout, errors.New("want 1ms to 10m, or 0 for 30s"))
		}
	}
}

// The bounds of rules.
const (
	mostRules     = 32 // what has been told of an alarm is a bit each
	DefaultWindow = 5 * time.Minute
	AlarmTimeout  = 30 * time.Second
	NoWindow      = -1
)

// Authorize decides by the tokens of the config.
func (c *Config) Authorize() (wire.Authorize, error) {
	switch {
	case len(c.HTTP.Tokens) > 0:
		keys, err := wire.NewKeyring(c.tokens())
		if err != nil {
			return nil, err
		}
		return c.authorizer(keys), nil
	case c.HTTP.Insecure:
		return wire.Insecure, nil
	}
	return nil, errors.New("xxljob: Handler: Config.HTTP.Tokens is empty: give a token, or set Config.HTTP.Insecure")
}

// authorizer accepts the tokens of a keyring. One that all apps share is none of an app
// that has its own.
func (c *Config) authorizer(keys *wire.Keyring) wire.Authorize {
	return func(ctx context.Context, app, token string) (scope string, ok bool) {
		scope, ok = keys.Authorize(ctx, app, token)
		if ok && scope == "" && app != "" && len(c.HTTP.Tokens[app]) > 0 {
			return "", false
		}
		return scope, ok
	}
}

// tokens are the tokens in the form that wire has for them.
func (c *Config) tokens() wire.Tokens {
	t := wire.Tokens{Shared: c.HTTP.Tokens[""], Apps: map[string][]string{}, AllowDefault: c.HTTP.AllowDefaultToken}
	for app, tokens := range c.HTTP.Tokens {
		if app != "" {
			t.Apps[app] = tokens
		}
	}
	return t
}

// shortestToken is below what length, in bytes, a token can be guessed.
const shortestToken = 16

// ShortTokens are the apps of Config.HTTP.Tokens that have one which is short, unless that is
// allowed. The token of XXL-JOB's samples is allowed by itself.
func (c *Config) ShortTokens() (apps []string) {
	if c.HTTP.AllowShortTokens {
		return nil
	}
	for app, tokens := range c.HTTP.Tokens {
		if slices.ContainsFunc(tokens, func(t string) bool { return len(t) < shortestToken && t != wire.DefaultToken }) {
			apps = append(apps, app)
		}
	}
	slices.Sort(apps)
	return apps
}

// validateTokens never puts a token into an error.
func (c *Config) validateTokens(f *store.Faults) {
	if len(c.HTTP.Tokens) == 0 {
		return
	}
	if _, err := wire.NewKeyring(c.tokens()); err != nil {
		f.Errs = append(f.Errs, errs.In("config: HTTP.Tokens", err))
	}
}

// validateJobsAPI looks at the apps whose callers manage jobs.
func (c *Config) validateJobsAPI(f *store.Faults) {
	apps := func(field string, list []string) {
		for i, app := range list {
			f.Text(field, app, 1, 64)
			if slices.Contains(list[:i], app) {
				f.Add(field, app, errors.New("listed twice"))
			}
		}
	}
	apps("HTTP.JobsAPI", c.HTTP.JobsAPI)
	apps("HTTP.JobsAPIScripts", c.HTTP.JobsAPIScripts)
	for _, app := range c.HTTP.JobsAPI {
		if len(c.HTTP.Tokens) > 0 && len(c.HTTP.Tokens[app]) == 0 && len(c.HTTP.Tokens[""]) == 0 {
			f.Add("HTTP.JobsAPI", app, errors.New("no token of HTTP.Tokens speaks for it"))
		}
	}
	for _, app := range c.HTTP.JobsAPIScripts {
		if !slices.Contains(c.HTTP.JobsAPI, app) {
			f.Add("HTTP.JobsAPIScripts", app, errors.New("want one of HTTP.JobsAPI"))
		}
	}
}

// TokensOf are the tokens that executors of an app may have, the preferred one first.
func (c *Config) TokensOf(app string) []string {
	switch {
	case len(c.HTTP.Tokens[app]) > 0:
		return c.HTTP.Tokens[app]
	case len(c.HTTP.Tokens[""]) > 0:
		return c.HTTP.Tokens[""]
	}
	return []string{""} // Insecure
}
