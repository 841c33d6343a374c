package schedule

// Compiled schedules and the zones they go by, and the memo of both.

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/cron"
)

// compiledCron is an expression with its zone, ready to use.
type compiledCron struct {
	quartz  *cron.Expr
	crontab *cron.Crontab // with seconds in front or without
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
	if c.loc, err = LoadZone(s.Zone); err != nil {
		return nil, s.faultyZone(err)
	}
	switch s.Type {
	case TypeCrontab:
		c.crontab, err = cron.ParseCrontab(s.Conf)
	case TypeCronSeconds:
		c.crontab, err = cron.ParseSeconds(s.Conf)
	default:
		c.quartz, err = cron.Parse(s.Conf)
	}
	if err != nil {
		return nil, faultyExpression(fmt.Errorf("xxljob: schedule %s: %w", s.Type, err))
	}
	return c, nil
}

// LoadZone reads the zone of a name, as schedules and windows do: one of the IANA names, which
// mean the same on every node, or UTC for the empty one.
func LoadZone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, fmt.Errorf("xxljob: zone %q differs from node to node: want an IANA name", name)
	}
	return remembered(crons.zones, name, readZone)
}

// readZone reads a file of the system's, or one that was compiled in.
func readZone(name string) (*time.Location, error) {
	loc, err := time.LoadLocation(name)
	if err != nil {
		meant, round := zoneMeant(name), ""
		if strings.HasPrefix(meant, "Etc/") {
			round = " (in Etc the sign is the other way round)"
		}
		return nil, fmt.Errorf("xxljob: zone %q: want an IANA name such as %s%s: %w", name, meant, round, err)
	}
	return loc, nil
}

// zoneMeant names zones that a name which is none may have meant. In Etc the sign is the other
// way round: Etc/GMT-8 is eight hours ahead.
func zoneMeant(name string) string {
	name = strings.TrimSpace(name)
	offset := regexp.MustCompile(`^(?i:GMT|UTC)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?$`) // GMT+8, UTC+08:00, +0530
	if m := offset.FindStringSubmatch(name); m != nil {
		hours, _ := strconv.Atoi(m[2])
		minutes, _ := strconv.Atoi(m[3]) // "" is none
		ahead := m[1] == "+"
		switch {
		case hours+minutes == 0:
			return "UTC"
		case ahead && hours == 8 && minutes == 0:
			return "Etc/GMT-8, Asia/Shanghai"
		case minutes == 0 && ahead && hours <= 14:
			return fmt.Sprintf("Etc/GMT-%d", hours)
		case minutes == 0 && !ahead && hours <= 12:
			return fmt.Sprintf("Etc/GMT+%d", hours)
		case ahead && hours == 5 && minutes == 30:
			return "Asia/Kolkata"
		}
	}
	if _, err := time.LoadLocation(name); err == nil && name != "" && name != "Local" { // it had blanks around it
		return name
	}
	return "Asia/Shanghai"
}

// compiled returns the compiled form of a schedule with an expression.
func compiled(s Schedule) (*compiledCron, error) { return remembered(crons.m, s, compile) }

type cronCache struct {
	mu    sync.RWMutex
	m     map[Schedule]*compiledCron // guarded by mu
	zones map[string]*time.Location  // guarded by mu
}

// remembered looks into a map of the memo, and produces what it lacks. Errors are not remembered.
func remembered[K comparable, V any](m map[K]*V, key K, produce func(K) (*V, error)) (*V, error) {
	crons.mu.RLock()
	v := m[key]
	crons.mu.RUnlock()
	if v != nil {
		return v, nil
	}
	v, err := produce(key)
	if err != nil {
		return nil, err
	}
	crons.mu.Lock()
	defer crons.mu.Unlock()
	if len(m) >= cronCacheSize {
		clear(m)
	}
	m[key] = v
	return v, nil
}

// crons remembers compiled expressions and the zones that were read for them and for windows.
// It is a memo of pure functions, and the only package-level state of the module: Schedule has
// to stay a comparable value, so it has no place of its own for what it was compiled to, and
// neither has Job, which is copied freely.
var crons = cronCache{m: map[Schedule]*compiledCron{}, zones: map[string]*time.Location{}}

// cronCacheSize bounds each map of the memo. Past it the map starts afresh: more distinct
// schedules than that are rare, and compiling one takes microseconds; of zones there are some
// hundreds.
const cronCacheSize = 16384
