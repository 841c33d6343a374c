package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
)

// appName is the app of the handlers, and of jobs that name none.
const appName = "standalone"

// gitlab are the schedules a GitLab server runs by default.
//
//go:embed gitlab_crontab.tsv
var gitlab []byte

// demoJobs are the jobs of a start without a file.
func demoJobs() ([]xxljob.Job, error) {
	jobs, err := parseJobs("gitlab_crontab.tsv", gitlab, nil)
	return append(jobs,
		xxljob.Job{App: appName, Key: "demo-second", Name: "Demo: every second", Handler: "demoJobHandler", Param: "world", Schedule: xxljob.Cron("* * * * * ?")},
		xxljob.Job{App: appName, Key: "demo-broadcast", Name: "Demo: a broadcast", Handler: "shardingJobHandler", Route: xxljob.RouteShardingBroadcast, Schedule: xxljob.Cron("* * * * * ?")},
		xxljob.Job{App: appName, Key: "demo-rate", Name: "Demo: fixed rate", Handler: "demoJobHandler", Param: "rate", Schedule: xxljob.FixedRate(time.Second)},
		xxljob.Job{App: appName, Key: "demo-delay", Name: "Demo: a second after the last", Handler: "demoJobHandler", Param: "delay", Schedule: xxljob.FixedDelay(time.Second)},
	), err
}

// held are the jobs that the scheduler has, as they were read from the file.
type held map[jobID]xxljob.Job

// jobID is what tells the jobs of a file apart.
type jobID struct{ app, key string }

func idOf(j xxljob.Job) jobID { return jobID{j.App, j.Key} }

// mayBeOver reports whether the schedule of a job may have had its last instant:
// it is there already with this schedule, and is not to be started anew.
func (h held) mayBeOver(j xxljob.Job) bool {
	has, ok := h[idOf(j)]
	return ok && has.Schedule == j.Schedule && (j.Stopped || !has.Stopped)
}

// readJobs reads a file of jobs. All its faults come as one error.
func readJobs(file string, has held) ([]xxljob.Job, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parseJobs(file, data, has)
}

// checkJobs finds what is wrong with a file of jobs whatever the scheduler has by now.
func checkJobs(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return parseFile(file, data).err()
}

// parseJobs tells the two formats apart by the name of the file or else by how
// it begins.
func parseJobs(file string, data []byte, has held) ([]xxljob.Job, error) {
	p := parseFile(file, data)
	p.checkInstants(has)
	if err := p.err(); err != nil {
		return nil, err
	}
	jobs := make([]xxljob.Job, len(p.jobs))
	for i, j := range p.jobs {
		jobs[i] = j.Job
	}
	return jobs, nil
}

// parseFile does all of it but for what the clock says.
func parseFile(file string, data []byte) *parser {
	p := &parser{file: filepath.Base(file)}
	begin := bytes.TrimSpace(data)
	switch {
	case strings.EqualFold(filepath.Ext(file), ".json"),
		!strings.EqualFold(filepath.Ext(file), ".tsv") && (bytes.HasPrefix(begin, []byte("[")) || bytes.HasPrefix(begin, []byte("{"))):
		p.parseJSON(data)
	default:
		p.parseTSV(string(data))
		p.check()
	}
	if len(p.faults) == 0 && len(p.jobs) == 0 {
		// A file that was cut short by accident must not stop everything.
		p.fault(1, 0, "there are no jobs in the file")
	}
	return p
}

// parser gathers jobs and faults of one file.
type parser struct {
	file   string
	jobs   []placed
	faults []fault
}

// placed is a job and the line where it begins.
type placed struct {
	xxljob.Job
	line int
}

// fault is something wrong at a place; without a column it is about the whole
// line.
type fault struct {
	line, column int
	text         string
}

func (p *parser) fault(line, column int, format string, args ...any) {
	p.faults = append(p.faults, fault{line, column, fmt.Sprintf(format, args...)})
}

func (p *parser) add(line int, j xxljob.Job) {
	j.App = cmp.Or(j.App, appName)
	j.Key = cmp.Or(j.Key, j.Name)
	p.jobs = append(p.jobs, placed{j, line})
}

// parseTSV reads lines of name, tab and expression: a crontab's of five fields, or one of six with seconds
// in front, as robfig/cron and gocron have it. The jobs run demoJobHandler with their name.
func (p *parser) parseTSV(text string) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, expr, ok := strings.Cut(line, "\t")
		if !ok {
			p.fault(n, 0, "want a name, a tab and a crontab expression")
			continue
		}
		name = strings.TrimSpace(name)
		when := xxljob.Crontab(expr)
		if len(strings.Fields(expr)) == 6 {
			when = xxljob.CronSeconds(expr)
		}
		p.add(n, xxljob.Job{Key: name, Name: name, Handler: "demoJobHandler", Param: name, Schedule: when})
	}
}

// check finds the faults that EnsureJobs would find, while the lines are known.
func (p *parser) check() {
	seen := map[jobID]int{} // to line
	for _, j := range p.jobs {
		for _, e := range parts(j.Validate()) { // each names the job
			p.fault(j.line, 0, "%s", strings.TrimPrefix(e.Error(), "xxljob: "))
		}
		id := idOf(j.Job)
		if line := seen[id]; line != 0 {
			p.fault(j.line, 0, "job %q: Key %q is that of the job in line %d", j.Name, j.Key, line)
			continue
		}
		seen[id] = j.line
	}
}

// checkInstants finds schedules that have had their last instant and are new all the
// same.
func (p *parser) checkInstants(has held) {
	now := time.Now()
	for _, j := range p.jobs {
		next, err := j.Schedule.Next(now)
		bounded := !j.NotAfter.IsZero() && next.After(j.NotAfter)
		if err != nil || !next.IsZero() && !bounded || j.Schedule.IsManual() || has.mayBeOver(j.Job) {
			continue
		}
		why := "it has no instant in the future"
		switch {
		case bounded:
			why = "it has no instant from now to NotAfter"
		case j.Schedule.Type == xxljob.ScheduleOnce:
			why = "the instant is past"
		}
		p.fault(j.line, 0, "job %q: Schedule %q: %s", j.Name, j.Schedule, why)
	}
}

// parts are the errors that errors.Join has joined.
func parts(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// err is all faults in order of their lines, each as "file:line:column: text".
func (p *parser) err() error {
	if len(p.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(p.faults, func(a, b fault) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	var lines []string
	for _, f := range p.faults {
		place := fmt.Sprintf("%s:%d:", p.file, f.line)
		if f.column > 0 {
			place += fmt.Sprintf("%d:", f.column)
		}
		lines = append(lines, place+" "+f.text)
	}
	return errors.New(strings.Join(lines, "\n"))
}
