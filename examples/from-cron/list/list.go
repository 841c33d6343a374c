// Package list makes jobs of a list of expressions, as programs with robfig/cron, gocron or a crontab
// keep them.
package list

import (
	"errors"
	"fmt"
	"strings"

	"github.com/xxljob/xxljob"
)

// Jobs reads lines of name, tab and expression: five fields or a tag as in a crontab, or six with seconds
// in front. Empty lines and those that begin with # are passed over. Each job has the handler, and its
// name as parameter. The error says what is wrong with which line; hints are lines that mean something
// else to who comes from Spring.
func Jobs(text, handler string) (jobs []xxljob.Job, hints []string, err error) {
	var faults []error
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, expr, ok := strings.Cut(line, "\t")
		if !ok {
			faults = append(faults, fmt.Errorf("line %d: want a name, a tab and an expression", n))
			continue
		}
		when := xxljob.Crontab(expr)
		if len(strings.Fields(expr)) == 6 {
			when = xxljob.CronSeconds(expr)
		}
		job := xxljob.Job{Key: name, Name: name, Handler: handler, Param: name, Schedule: when}
		if err := job.Validate(); err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", n, err))
			continue
		}
		if when.EitherDay() {
			hints = append(hints, fmt.Sprintf("line %d: %s: due %s; in Spring both fields of days must match", n, name, when.Describe()))
		}
		jobs = append(jobs, job)
	}
	return jobs, hints, errors.Join(faults...)
}
