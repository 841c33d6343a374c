package xxljob

// What is wrong with a Config.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// ownExecutor makes the executor that Handle registers with: Middleware is around what its
// own Config has. Entries that are nil are validate's to name, by the list that they are in.
func (c Config) ownExecutor() (*executor.Executor, error) {
	cfg := c.Executor
	cfg.Middleware = slices.DeleteFunc(slices.Concat(c.Middleware, cfg.Middleware), func(m func(Handler) Handler) bool { return m == nil })
	own, err := executor.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("xxljob: config: Executor: %w", err)
	}
	return own, nil
}

func checkMiddleware(f *faults, name string, list []func(Handler) Handler) {
	for i, m := range list {
		if m == nil {
			f.add(fmt.Sprintf("%s[%d]", name, i), nil, errors.New("is nil"))
		}
	}
}

// validate collects the faults of a config whose defaults are filled in.
func (c Config) validate() error {
	f := faults{what: "config"}
	f.text("App", c.App, 1, 64)
	known := len(f.errs)
	f.text("Node", c.Node, 1, 200)
	if at := strings.IndexFunc(c.Node, notSolid); at >= 0 && len(f.errs) == known {
		f.add("Node", c.Node, fmt.Errorf("want printable characters without blanks, not %q", []rune(c.Node[at:])[0]))
	}
	if name := c.Location.String(); name == "" {
		f.add("Location", name, errors.New("want an IANA zone, from time.LoadLocation"))
	} else if _, err := LoadZone(name); err != nil {
		f.add("Location", name, err)
	}
	f.oneOf("CatchUp", string(c.CatchUp), string(CatchUpEvery), string(CatchUpOnce))
	c.validateRanges(&f)
	c.Ready.validate(&f, c.Cluster.LeaseTTL-c.Cluster.LeaseTTL/5)
	c.validateTokens(&f)
	c.validateJobsAPI(&f)
	c.validateAlarms(&f)
	if c.Executor.Addr != "" || len(c.Executor.Admins) > 0 {
		f.add("Executor", c.Executor.Addr, errors.New("one with Addr or Admins is made by executor.New, given to Attach, and started by its owner"))
	}
	checkMiddleware(&f, "Middleware", c.Middleware)
	checkMiddleware(&f, "Executor.Middleware", c.Executor.Middleware)
	for name, r := range c.Routers {
		if name == "" || r == nil {
			f.add("Routers", name, errors.New("want a name and a Router"))
		}
	}
	return f.err()
}

// validateRanges collects the durations and numbers that are out of their range.
func (c *Config) validateRanges(f *faults) {
	for _, d := range []struct {
		name     string
		d        time.Duration
		min, max time.Duration
	}{
		{"PreRead", c.PreRead, 100 * time.Millisecond, maxPreRead},
		{"MisfireThreshold", c.MisfireThreshold, time.Millisecond, MaxPeriod},
		{"Limits.SlowAfter", c.Limits.SlowAfter, time.Millisecond, MaxPeriod},
		{"Cluster.Beat", c.Cluster.Beat, 100 * time.Millisecond, MaxPeriod},
		{"Cluster.Dead", c.Cluster.Dead, c.Cluster.Beat, MaxPeriod},
		{"Cluster.LostAfter", c.Cluster.LostAfter, c.Cluster.LeaseTTL, MaxPeriod},
		{"Cluster.PruneAfter", c.Cluster.PruneAfter, time.Second, MaxPeriod},
		{"RunRetention", c.RunRetention, time.Hour, MaxPeriod},
		{"ChangeRetention", c.ChangeRetention, 24 * time.Hour, MaxPeriod},
		{"Cluster.LeaseTTL", c.Cluster.LeaseTTL, 100 * time.Millisecond, time.Hour},
		{"Cluster.LeaseMaxHold", c.Cluster.LeaseMaxHold, 0, MaxPeriod},
		{"StopGrace", c.StopGrace, 0, MaxPeriod},
		{"Limits.Overdue", c.Limits.Overdue, c.Cluster.Dead, MaxPeriod},
		{"HTTP.CallTimeout", c.HTTP.CallTimeout, 10 * time.Millisecond, time.Hour},
		{"Limits.RouteTimeout", c.Limits.RouteTimeout, 10 * time.Millisecond, callTimeout},
	} {
		if d.d < d.min || d.d > d.max {
			f.add(d.name, d.d, fmt.Errorf("want %v to %v", d.min, d.max))
		}
	}
	for _, n := range []struct {
		name        string
		n, min, max int
	}{
		{"Limits.ScanLimit", c.Limits.ScanLimit, 1, 1 << 20}, {"Limits.MaxPlanned", c.Limits.MaxPlanned, 1, 1 << 20}, {"Limits.MaxHeld", c.Limits.MaxHeld, 2 * scanRuns, 1 << 30},
		{"Limits.FastLane", c.Limits.FastLane, 1, 1 << 20}, {"Limits.SlowLane", c.Limits.SlowLane, 1, 1 << 20},
		{"Limits.SlowCount", c.Limits.SlowCount, 1, 1 << 20}, {"Cluster.Shards", c.Cluster.Shards, 1, 1024},
		{"HTTP.MaxRegistrations", c.HTTP.MaxRegistrations, 1, 100_000}, {"Logs.RunBytes", c.Logs.RunBytes, 1 << 10, 1 << 30},
		{"Logs.QueueBytes", c.Logs.QueueBytes, 2 << 20, 1 << 30}, {"Logs.BytesPerSecond", c.Logs.BytesPerSecond, 256 << 10, 1 << 30},
	} {
		if n.n < n.min || n.n > n.max {
			f.add(n.name, n.n, fmt.Errorf("want %d to %d", n.min, n.max))
		}
	}
	if n := c.Logs.JobBytes; n < 64<<10 || n > 1<<40 {
		f.add("Logs.JobBytes", n, fmt.Errorf("want %d to %d", 64<<10, int64(1)<<40))
	}
	if c.Logs.InStore && c.Logs.Sink != nil {
		f.add("Logs.Sink", nil, errors.New("is set beside InStore: lines go to one of them"))
	}
}

// checkLogs returns what is wrong with Logs for the store.
func (c *Config) checkLogs(s Store) error {
	if _, ok := s.(LogStore); c.Logs.InStore && !ok {
		f := faults{what: "config"}
		f.add("Logs.InStore", true, fmt.Errorf("the store, a %T, keeps no logs: it is no LogStore", s))
		return f.err()
	}
	return nil
}

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
		if r.Window != 0 && r.Window != noWindow && (r.Window < time.Second || r.Window > 24*time.Hour) {
			f.add(field+".Window", r.Window, errors.New("want 1s to 24h, 0 for five minutes, or -1 for none"))
		}
		if r.Timeout != 0 && (r.Timeout < time.Millisecond || r.Timeout > 10*time.Minute) {
			f.add(field+".Timeout", r.Timeout, errors.New("want 1ms to 10m, or 0 for 30s"))
		}
	}
}

// The bounds of rules.
const (
	mostRules     = 32 // what has been told of an alarm is a bit each
	defaultWindow = 5 * time.Minute
	alarmTimeout  = 30 * time.Second
	noWindow      = -1
)

// authorize decides by the tokens of the config.
func (c *Config) authorize() (wire.Authorize, error) {
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

// validateTokens never puts a token into an error.
func (c *Config) validateTokens(f *faults) {
	if len(c.HTTP.Tokens) == 0 {
		return
	}
	if _, err := wire.NewKeyring(c.tokens()); err != nil {
		f.errs = append(f.errs, fmt.Errorf("xxljob: config: HTTP.Tokens: %w", err))
	}
}

// validateJobsAPI looks at the apps whose callers manage jobs.
func (c *Config) validateJobsAPI(f *faults) {
	apps := func(field string, list []string) {
		for i, app := range list {
			f.text(field, app, 1, 64)
			if slices.Contains(list[:i], app) {
				f.add(field, app, errors.New("listed twice"))
			}
		}
	}
	apps("HTTP.JobsAPI", c.HTTP.JobsAPI)
	apps("HTTP.JobsAPIScripts", c.HTTP.JobsAPIScripts)
	for _, app := range c.HTTP.JobsAPI {
		if len(c.HTTP.Tokens) > 0 && len(c.HTTP.Tokens[app]) == 0 && len(c.HTTP.Tokens[""]) == 0 {
			f.add("HTTP.JobsAPI", app, errors.New("no token of HTTP.Tokens speaks for it"))
		}
	}
	for _, app := range c.HTTP.JobsAPIScripts {
		if !slices.Contains(c.HTTP.JobsAPI, app) {
			f.add("HTTP.JobsAPIScripts", app, errors.New("want one of HTTP.JobsAPI"))
		}
	}
}

// tokensOf are the tokens that executors of an app may have, the preferred one first.
func (c *Config) tokensOf(app string) []string {
	switch {
	case len(c.HTTP.Tokens[app]) > 0:
		return c.HTTP.Tokens[app]
	case len(c.HTTP.Tokens[""]) > 0:
		return c.HTTP.Tokens[""]
	}
	return []string{""} // Insecure
}
