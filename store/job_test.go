package xxljob_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store/memory"
)

// calledIn is what errors call a job: by its name, or what is left of a long one, else by
// its key.
func calledIn(j xxljob.Job) string {
	name := j.Name
	if strings.TrimSpace(name) == "" {
		name = j.Key
	}
	if len(name) > 40 {
		name = name[:40] + "..."
	}
	return fmt.Sprintf("job %q", name)
}

// TestJobFaultsAtOnce: a job with every field wrong is refused with one error
// that names all the fields and their values.
func TestJobFaultsAtOnce(t *testing.T) {
	long := strings.Repeat("x", 300)
	job := xxljob.Job{
		App: long, Key: long, Name: " ", Author: long, AlarmEmail: long, Handler: "",
		Schedule: xxljob.Cron("* * * * *"), Misfire: "PANIC", CatchUp: "TWICE",
		Route: "NORTH", Block: "WALL", Timeout: 1500 * time.Millisecond, Retries: -1, Children: []int64{5, 0},
		Param: strings.Repeat("p", 64<<10+1), GlueSource: "a\x00b", GlueRemark: long,
	}
	err := job.Validate()
	requireFaults(t, err, `job "`+long[:40]+`..."`, map[string]string{
		"App": "xxx", "Key": "xxx", "Name": `" "`, "Author": "xxx", "AlarmEmail": "xxx", "Handler": `""`,
		"Schedule": "* * * * *", "Misfire": "PANIC", "CatchUp": "TWICE",
		"Route": "NORTH", "Block": "WALL", "Timeout": "1.5s", "Retries": "-1", "Children": `"0"`,
		"Param": "ppp", "GlueSource": "NUL", "GlueRemark": "xxx",
	})
	if !errors.Is(err, xxljob.ErrUnknownRoute) || !errors.Is(err, xxljob.ErrUnknownBlock) {
		t.Errorf("the sentinels are not in %v", err)
	}
	if n := len(err.Error()); n > 4000 {
		t.Errorf("an error of %d bytes: long values are not cut", n)
	}
}

// TestJobFaultsOneByOne changes one field of a good job at a time: the values at
// the bounds of what the doc comments allow, and those just beyond.
func TestJobFaultsOneByOne(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	for _, tt := range []struct {
		field string
		set   func(j *xxljob.Job, beyond bool)
	}{
		{"App", func(j *xxljob.Job, b bool) { j.App = text(64 + stage.One(b)) }},
		{"Key", func(j *xxljob.Job, b bool) { j.Key = text(255 + stage.One(b)) }},
		{"Name", func(j *xxljob.Job, b bool) { j.Name = text(255 + stage.One(b)) }},
		{"Author", func(j *xxljob.Job, b bool) { j.Author = text(64 + stage.One(b)) }},
		{"AlarmEmail", func(j *xxljob.Job, b bool) { j.AlarmEmail = text(255 + stage.One(b)) }},
		{"Handler", func(j *xxljob.Job, b bool) { j.Handler = text(255 + stage.One(b)) }},
		{"Param", func(j *xxljob.Job, b bool) { j.Param = text(64<<10 + stage.One(b)) }},
		{"GlueSource", func(j *xxljob.Job, b bool) { j.GlueSource = text(16<<20 + stage.One(b)) }},
		{"GlueRemark", func(j *xxljob.Job, b bool) { j.GlueRemark = text(128 + stage.One(b)) }},
		{"Timeout", func(j *xxljob.Job, b bool) { j.Timeout = (1<<31 - 1 + time.Duration(stage.One(b))) * time.Second }},
		{"Timeout", func(j *xxljob.Job, b bool) { j.Timeout = -time.Duration(stage.One(b)) * time.Second }},
		{"Retries", func(j *xxljob.Job, b bool) { j.Retries = 30_000 + stage.One(b) }},
		{"MaxReruns", func(j *xxljob.Job, b bool) { j.MaxReruns = 1000 + stage.One(b) }},
		{"MaxSnoozes", func(j *xxljob.Job, b bool) { j.MaxSnoozes = 30_000 + stage.One(b) }},
		{"CatchUpMost", func(j *xxljob.Job, b bool) {
			j.CatchUp, j.CatchUpMost = xxljob.CatchUpEveryMissed, 1000+stage.One(b)
		}},
		{"CatchUpMost", func(j *xxljob.Job, b bool) { j.CatchUp, j.CatchUpMost = xxljob.CatchUpEveryMissed, -stage.One(b) }},
		{"CatchUpMost", func(j *xxljob.Job, b bool) { j.CatchUp, j.CatchUpMost = xxljob.CatchUpEvery, stage.One(b) }},
		{"CatchUpAge", func(j *xxljob.Job, b bool) {
			j.CatchUp, j.CatchUpAge = xxljob.CatchUpEveryMissed, time.Minute-time.Duration(stage.One(b))*time.Millisecond
		}},
		{"CatchUpAge", func(j *xxljob.Job, b bool) { j.CatchUpAge = time.Duration(stage.One(b)) * time.Hour }},
		{"OnLost", func(j *xxljob.Job, b bool) {
			j.OnLost = map[bool]xxljob.OnLost{false: xxljob.OnLostRerun, true: "rerun"}[b]
		}},
		{"RetryBackoff.First", func(j *xxljob.Job, b bool) {
			j.RetryBackoff.First = 10_000*time.Hour + time.Duration(stage.One(b))*time.Millisecond
		}},
		{"RetryBackoff.Max", func(j *xxljob.Job, b bool) {
			j.RetryBackoff = xxljob.Backoff{First: time.Minute, Max: time.Minute - time.Duration(stage.One(b))*time.Millisecond}
		}},
		{"RetryBackoff.Jitter", func(j *xxljob.Job, b bool) {
			j.RetryBackoff = xxljob.Backoff{First: time.Minute, Jitter: 100 + stage.One(b)}
		}},
		{"Children", func(j *xxljob.Job, b bool) { j.Children = []int64{1, 1<<31 - 1 + int64(stage.One(b))} }},
		{"Schedule", func(j *xxljob.Job, b bool) {
			j.Schedule = xxljob.FixedRate(time.Second - time.Duration(stage.One(b))*time.Millisecond)
		}},
		{"Name", func(j *xxljob.Job, b bool) { j.Name = map[bool]string{false: "报表", true: "\xff"}[b] }},
		{"GlueType", func(j *xxljob.Job, b bool) { j.GlueType = map[bool]string{false: "GLUE_SHELL", true: "GLUE_COBOL"}[b] }},
		{"Misfire", func(j *xxljob.Job, b bool) {
			j.Misfire = map[bool]xxljob.Misfire{false: xxljob.MisfireFireOnceNow, true: "fire_once_now"}[b]
		}},
		{"CatchUp", func(j *xxljob.Job, b bool) {
			j.CatchUp = map[bool]xxljob.CatchUp{false: xxljob.CatchUpOnce, true: "once"}[b]
		}},
	} {
		good, bad := stage.GoodJob(), stage.GoodJob()
		tt.set(&good, false)
		tt.set(&bad, true)
		if err := good.Validate(); err != nil {
			t.Errorf("%s at its bound: %.300v", tt.field, err)
		}
		requireFaults(t, bad.Validate(), calledIn(bad), map[string]string{tt.field: ""})
	}
}

// TestJobEnumerations: every strategy of the packages route and block and every
// glue type of XXL-JOB is accepted, in exactly the stored spelling.
func TestJobEnumerations(t *testing.T) {
	for _, name := range route.Names() {
		j := stage.GoodJob()
		if j.Route = name; j.Validate() != nil {
			t.Errorf("route %s: %v", name, j.Validate())
		}
		if j.Route = strings.ToLower(name); !errors.Is(j.Validate(), xxljob.ErrUnknownRoute) {
			t.Errorf("route %s: %v", j.Route, j.Validate())
		}
	}
	for _, name := range block.Names() {
		j := stage.GoodJob()
		if j.Block = name; j.Validate() != nil {
			t.Errorf("block %s: %v", name, j.Validate())
		}
		if j.Block = " " + name; !errors.Is(j.Validate(), xxljob.ErrUnknownBlock) {
			t.Errorf("block %q: %v", j.Block, j.Validate())
		}
	}
	for _, name := range []string{"BEAN", "GLUE_GROOVY", "GLUE_SHELL", "GLUE_PYTHON", "GLUE_PYTHON2", "GLUE_NODEJS", "GLUE_POWERSHELL", "GLUE_PHP"} {
		j := stage.GoodJob()
		j.GlueType = name
		if err := j.Validate(); err != nil {
			t.Errorf("glue type %s: %v", name, err)
		}
	}
}

// TestScriptJobNeedsNoHandler: a handler's name is required for BEAN only.
func TestScriptJobNeedsNoHandler(t *testing.T) {
	j := stage.GoodJob()
	j.Handler, j.GlueType, j.GlueSource = "", "GLUE_SHELL", "echo"
	if err := j.Validate(); err != nil {
		t.Error(err)
	}
	j.GlueType = ""
	requireFaults(t, j.Validate(), calledIn(j), map[string]string{"Handler": ""})
}

// TestManualJobIsValid: the zero Schedule is Manual, which is no fault.
func TestManualJobIsValid(t *testing.T) {
	if err := (xxljob.Job{App: "app", Name: "job", Handler: "handler"}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestGroupFaultsAtOnce is the same for a group.
func TestGroupFaultsAtOnce(t *testing.T) {
	err := xxljob.Group{Title: strings.Repeat("t", 65), Addresses: []string{"ftp://a/", "http://u:p@b/"}}.Validate()
	for _, words := range []string{`App ""`, "Title", "Addresses", "ftp://a/", "http://u:p@b/"} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v does not say %q", err, words)
		}
	}
	for _, addr := range []string{"", "a", "10.0.0.1:9999", "http://", "http://a/?q=1", "http://a/#f", "local://node", "http://a b/"} {
		g := xxljob.Group{App: "app", Manual: true, Addresses: []string{addr}}
		if err := g.Validate(); err == nil || !strings.Contains(err.Error(), addr) {
			t.Errorf("address %q: %v", addr, err)
		}
	}
	for addr, words := range map[string]string{
		"10.0.0.1:9999": "want http:// or https://", "xxl-job:9999": "want http:// or https://", " http://10.0.0.1:9999": "a comma or a blank",
		"http://10.0.0.1:9999,http://10.0.0.2:9999": "one by one", "http://10.0.0.1:9999 http://10.0.0.2:9999": "one by one",
	} {
		err := xxljob.Group{App: "app", Manual: true, Addresses: []string{addr}}.Validate()
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("address %q: %v, want %q", addr, err, words)
		}
	}
	for _, addr := range []string{"http://10.0.0.1:9999/", "https://executor.example/base", "http://[::1]:9999"} {
		g := xxljob.Group{App: "app", Manual: true, Addresses: []string{addr}}
		if err := g.Validate(); err != nil {
			t.Errorf("address %q: %v", addr, err)
		}
	}
	if err := (xxljob.Group{App: "app", Manual: true}).Validate(); err == nil {
		t.Error("a manual group without addresses is accepted")
	}
}

// TestCallsCopy: a Job is a plain value. What the caller does to it after a call
// changes nothing in the store, and what the store keeps does not show in it.
func TestCallsCopy(t *testing.T) {
	s, err := xxljob.New(withEveryJob{memory.New()}, xxljob.Config{App: "app", Logger: slog.New(slog.DiscardHandler)})
	stage.Must(t, err)
	given := stage.GoodJob()
	given.Children = []int64{1, 2}
	added, err := s.AddJob(t.Context(), given)
	stage.Must(t, err)
	given.Children[0], added.Children[1] = 8, 9
	again, err := s.UpdateJob(t.Context(), xxljob.Job{ID: added.ID, Name: "renamed", Handler: "handler", Schedule: given.Schedule, Children: []int64{3}})
	stage.Must(t, err)
	if again.Children[0] != 3 || given.Name != "job" || added.Name != "job" || given.Children[1] != 2 || added.Children[0] != 1 {
		t.Errorf("given %+v\nadded %+v\nupdated %+v", given, added, again)
	}
	stage.Must(t, s.Stop(t.Context()))
}

// TestDefaultsOfAJob: what AddJob fills in for empty fields.
func TestDefaultsOfAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		berlin, err := time.LoadLocation("Europe/Berlin")
		stage.Must(t, err)
		s, err := xxljob.New(memory.New(), xxljob.Config{App: "app", Location: berlin, Logger: slog.New(slog.DiscardHandler)})
		stage.Must(t, err)
		job, err := s.AddJob(t.Context(), xxljob.Job{Name: "nightly", Handler: "report", Schedule: xxljob.Cron("0 0 3 * * ?")})
		stage.Must(t, err)
		if job.App != "app" || job.Key != "nightly" || job.Misfire != "DO_NOTHING" || job.CatchUp != "" || job.Route != "NEAREST" ||
			job.Block != "SERIAL_EXECUTION" || job.GlueType != "BEAN" || job.Schedule.Zone != "Europe/Berlin" || job.Stopped {
			t.Errorf("%+v", job)
		}
		if job.ID <= 0 || job.Version != 1 || !job.Next.Equal(time.Date(2000, 1, 1, 2, 0, 0, 0, time.UTC)) || !job.Added.Equal(time.Now()) {
			t.Errorf("ID %d, version %d, next %v, added %v", job.ID, job.Version, job.Next, job.Added)
		}
		manual, err := s.AddJob(t.Context(), xxljob.Job{Name: "manual", Handler: "report"})
		stage.Must(t, err)
		if manual.Stopped || manual.StopReason != "" || manual.Schedule.Type != xxljob.ScheduleNone || !manual.Next.IsZero() {
			t.Errorf("%+v", manual)
		}
		// A zone of its own stays, and so does a schedule without wall-clock times.
		for _, schedule := range []xxljob.Schedule{xxljob.Cron("0 0 3 * * ?").In("UTC"), xxljob.FixedRate(time.Minute)} {
			job, err := s.AddJob(t.Context(), xxljob.Job{Name: schedule.String(), Handler: "report", Schedule: schedule})
			if err != nil || job.Schedule != schedule {
				t.Errorf("%v is stored as %v, %v", schedule, job.Schedule, err)
			}
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// TestValidateWithoutApp: an empty Job.App means Config.App, which is no fault of
// the definition.
func TestValidateWithoutApp(t *testing.T) {
	if err := (xxljob.Job{Name: "nightly", Handler: "h"}).Validate(); err != nil {
		t.Error(err)
	}
}
