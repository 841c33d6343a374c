package xxljob

// Compiled schedules, and the memo of them.

import (
	"fmt"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/cron"
)

// compiledCron is a cron or crontab expression with its zone, ready to use.
type compiledCron struct {
	quartz  *cron.Expr
	crontab *cron.Crontab
	loc     *time.Location
	policy  cron.Policy
}

func (c *compiledCron) next(after time.Time) time.Time {
	if c.quartz != nil {
		return c.quartz.Next(after, c.loc, c.policy)
	}
	return c.crontab.Next(after, c.loc, c.policy)
}

func (c *compiledCron) describe(lang string) string {
	if c.quartz != nil {
		return c.quartz.DescribeIn(lang)
	}
	return c.crontab.DescribeIn(lang)
}

// compile does not look at the cache.
func compile(s Schedule) (*compiledCron, error) {
	c := &compiledCron{policy: cron.Civil}
	if s.DST == DSTQuartz {
		c.policy = cron.Quartz
	}
	var err error
	if c.loc, err = loadZone(s.Zone); err != nil {
		return nil, err
	}
	if s.Type == ScheduleCrontab {
		c.crontab, err = cron.ParseCrontab(s.Conf)
	} else {
		c.quartz, err = cron.Parse(s.Conf)
	}
	if err != nil {
		return nil, fmt.Errorf("xxljob: schedule %s: %w", s.Type, err)
	}
	return c, nil
}

// loadZone accepts the IANA names, which mean the same on every node.
func loadZone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, fmt.Errorf("xxljob: zone %q differs from node to node: want an IANA name", name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("xxljob: zone %q: want an IANA name such as Asia/Shanghai: %w", name, err)
	}
	return loc, nil
}

type cronCache struct {
	mu sync.RWMutex
	m  map[Schedule]*compiledCron // guarded by mu
}

// compiled returns the compiled form of a cron or crontab schedule.
func compiled(s Schedule) (*compiledCron, error) {
	crons.mu.RLock()
	c := crons.m[s]
	crons.mu.RUnlock()
	if c != nil {
		return c, nil
	}
	c, err := compile(s)
	if err != nil {
		return nil, err
	}
	crons.mu.Lock()
	defer crons.mu.Unlock()
	if len(crons.m) >= cronCacheSize {
		clear(crons.m)
	}
	crons.m[s] = c
	return c, nil
}

// crons remembers compiled expressions. It is a memo of a pure function, and
// the only package-level state of the module: Schedule has to stay a comparable
// value, so it has no place of its own for what it was compiled to.
var crons = cronCache{m: map[Schedule]*compiledCron{}}

// cronCacheSize bounds the memo. Past it the memo starts afresh: more distinct
// schedules than that are rare, and compiling one takes microseconds.
const cronCacheSize = 16384
