package failpoint

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Action is what happens at a failpoint.
type Action string

// The actions. Kill and Stop are sent to the own process; a process that has
// stopped goes on when somebody sends it SIGCONT.
const (
	Kill  Action = "kill"  // SIGKILL
	Stop  Action = "stop"  // SIGSTOP
	Sleep Action = "sleep" // for a duration: "sleep:200ms"
	Panic Action = "panic"
	Block Action = "block" // until the rule is gone from the control file
)

// Rule says what happens at one failpoint, and at which of its hits.
type Rule struct {
	// Name is a failpoint, or "*" for every one.
	Name string
	// At is the hit that it happens at, counted from 1. The rule is then spent.
	At     int
	Action Action
	// For is how long a Sleep lasts.
	For time.Duration
}

// String returns the rule as Parse reads it.
func (r Rule) String() string {
	s := fmt.Sprintf("%s:%d:%s", r.Name, r.At, r.Action)
	if r.Action == Sleep {
		s += ":" + r.For.String()
	}
	return s
}

// Parse reads rules, "name:hit:action" or "name:hit:sleep:duration", separated by
// semicolons or line ends. All faults come as one error.
func Parse(text string) ([]Rule, error) {
	var rules []Rule
	var errs []error
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		r, err := parseRule(part)
		if err != nil {
			errs = append(errs, fmt.Errorf("failpoint: rule %q: %w", part, err))
			continue
		}
		rules = append(rules, r)
	}
	return rules, errors.Join(errs...)
}

func parseRule(text string) (Rule, error) {
	f := strings.Split(text, ":")
	if len(f) < 3 {
		return Rule{}, errors.New("want name:hit:action")
	}
	r := Rule{Name: f[0], Action: Action(f[2])}
	if r.Name != "*" && !slices.Contains(All(), r.Name) {
		return r, errors.New("no such failpoint")
	}
	var err error
	if r.At, err = strconv.Atoi(f[1]); err != nil || r.At < 1 {
		return r, errors.New("want a hit from 1")
	}
	switch {
	case r.Action == Sleep && len(f) == 4:
		r.For, err = time.ParseDuration(f[3])
		return r, err
	case len(f) == 3 && slices.Contains([]Action{Kill, Stop, Panic, Block}, r.Action):
		return r, nil
	}
	return r, errors.New("want kill, stop, panic, block or sleep:duration")
}
