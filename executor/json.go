package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// JSON makes a handler out of a function with a typed parameter, decoded from
// Task.Param. An empty parameter is the zero T. One that is not valid JSON for T
// fails the run for good (see Permanent), with a text that names what was wrong, and h
// is not called. A nil h makes a nil Handler, which Handle refuses.
func JSON[T any](h func(ctx context.Context, t *Task, p T) error) Handler {
	if h == nil {
		return nil
	}
	return func(ctx context.Context, t *Task) error {
		var p T
		if strings.TrimSpace(t.Param) != "" {
			if err := json.Unmarshal([]byte(t.Param), &p); err != nil {
				return Permanent(fmt.Errorf("param %s is not JSON for %T: %w", excerpt(t.Param), p, err))
			}
		}
		return h(ctx, t, p)
	}
}

// excerpt quotes the beginning of a parameter.
func excerpt(s string) string {
	const most = 100
	if len(s) > most {
		return fmt.Sprintf("%.*q...", most, s)
	}
	return fmt.Sprintf("%q", s)
}
