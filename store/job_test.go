package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// calledIn is what errors call a job: by its name, or what is left of a long one, else by
// its key.
func calledIn(j store.Job) string {
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
	job := store.Job{
		App: long, Key: long, Name: " ", Author: long, AlarmEmail: long, Handler: "",
		Schedule: schedule.Cron("* * * * *"), Misfire: "PANIC", CatchUp: "TWICE",
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
	if !errors.Is(err, errs.ErrUnknownRoute) || !errors.Is(err, errs.ErrUnknownBlock) {
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
		set   func(j *store.Job, beyond bool)
	}{
		{"App", func(j *store.Job, b bool) { j.App = text(64 + stage.One(b)) }},
		{"Key", func(j *store.Job, b bool) { j.Key = text(255 + stage.One(b)) }},
		{"Name", func(j *store.Job, b bool) { j.Name = text(255 + stage.One(b)) }},
		{"Author", func(j *store.Job, b bool) { j.Author = text(64 + stage.One(b)) }},
		{"AlarmEmail", func(j *store.Job, b bool) { j.AlarmEmail = text(255 + stage.One(b)) }},
		{"Handler", func(j *store.Job, b bool) { j.Handler = text(255 + stage.One(b)) }},
		{"Param", func(j *store.Job, b bool) { j.Param = text(64<<10 + stage.One(b)) }},
		{"GlueSource", func(j *store.Job, b bool) { j.GlueSource = text(16<<20 + stage.One(b)) }},
		{"GlueRemark", func(j *store.Job, b bool) { j.GlueRemark = text(128 + stage.One(b)) }},
		{"Timeout", func(j *store.Job, b bool) { j.Timeout = (1<<31 - 1 + time.Duration(stage.One(b))) * time.Second }},
		{"Timeout", func(j *store.Job, b bool) { j.Timeout = -time.Duration(stage.One(b)) * time.Second }},
		{"Retries", func(j *store.Job, b bool) { j.Retries = 30_000 + stage.One(b) }},
		{"MaxReruns", func(j *store.Job, b bool) { j.MaxReruns = 1000 + stage.One(b) }},
		{"MaxSnoozes", func(j *store.Job, b bool) { j.MaxSnoozes = 30_000 + stage.One(b) }},
		{"CatchUpMost", func(j *store.Job, b bool) {
			j.CatchUp, j.CatchUpMost = store.CatchUpEveryMissed, 1000+stage.One(b)
		}},
		{"CatchUpMost", func(j *store.Job, b bool) { j.CatchUp, j.CatchUpMost = store.CatchUpEveryMissed, -stage.One(b) }},
		{"CatchUpMost", func(j *store.Job, b bool) { j.CatchUp, j.CatchUpMost = store.CatchUpEvery, stage.One(b) }},
		{"CatchUpAge", func(j *store.Job, b bool) {
			j.CatchUp, j.CatchUpAge = store.CatchUpEveryMissed, time.Minute-time.Duration(stage.One(b))*time.Millisecond
		}},
		{"CatchUpAge", func(j *store.Job, b bool) { j.CatchUpAge = time.Duration(stage.One(b)) * time.Hour }},
		{"OnLost", func(j *store.Job, b bool) {
			j.OnLost = map[bool]store.OnLost{false: store.OnLostRerun, true: "rerun"}[b]
		}},
		{"RetryBackoff.First", func(j *store.Job, b bool) {
			j.RetryBackoff.First = 10_000*time.Hour + time.Duration(stage.One(b))*time.Millisecond
		}},
		{"RetryBackoff.Max", func(j *store.Job, b bool) {
			j.RetryBackoff = store.Backoff{First: time.Minute, Max: time.Minute - time.Duration(stage.One(b))*time.Millisecond}
		}},
		{"RetryBackoff.Jitter", func(j *store.Job, b bool) {
			j.RetryBackoff = store.Backoff{First: time.Minute, Jitter: 100 + stage.One(b)}
		}},
		{"Children", func(j *store.Job, b bool) { j.Children = []int64{1, 1<<31 - 1 + int64(stage.One(b))} }},
		{"Schedule", func(j *store.Job, b bool) {
			j.Schedule = schedule.FixedRate(time.Second - time.Duration(stage.One(b))*time.Millisecond)
		}},
		{"Name", func(j *store.Job, b bool) { j.Name = map[bool]string{false: "报表", true: "\xff"}[b] }},
		{"GlueType", func(j *store.Job, b bool) { j.GlueType = map[bool]string{false: "GLUE_SHELL", true: "GLUE_COBOL"}[b] }},
		{"Misfire", func(j *store.Job, b bool) {
			j.Misfire = map[bool]store.Misfire{false: store.MisfireFireOnceNow, true: "fire_once_now"}[b]
		}},
		{"CatchUp", func(j *store.Job, b bool) {
			j.CatchUp = map[bool]store.CatchUp{false: store.CatchUpOnce, true: "once"}[b]
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
		if j.Route = strings.ToLower(name); !errors.Is(j.Validate(), errs.ErrUnknownRoute) {
			t.Errorf("route %s: %v", j.Route, j.Validate())
		}
	}
	for _, name := range block.Names() {
		j := stage.GoodJob()
		if j.Block = name; j.Validate() != nil {
			t.Errorf("block %s: %v", name, j.Validate())
		}
		if j.Block = " " + name; !errors.Is(j.Validate(), errs.ErrUnknownBlock) {
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
	if err := (store.Job{App: "app", Name: "job", Handler: "handler"}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestGroupFaultsAtOnce is the same for a group.
func TestGroupFaultsAtOnce(t *testing.T) {
	err := store.Group{Title: strings.Repeat("t", 65), Addresses: []string{"ftp://a/", "http://u:p@b/"}}.Validate()
	for _, words := range []string{`App ""`, "Title", "Addresses", "ftp://a/", "http://u:p@b/"} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v does not say %q", err, words)
		}
	}
	for _, addr := range []string{"", "a", "10.0.0.1:9999", "http://", "http://a/?q=1", "http://a/#f", "local://node", "http://a b/"} {
		g := store.Group{App: "app", Manual: true, Addresses: []string{addr}}
		if err := g.Validate(); err == nil || !strings.Contains(err.Error(), addr) {
			t.Errorf("address %q: %v", addr, err)
		}
	}
	for addr, words := range map[string]string{
		"10.0.0.1:9999": "want http:// or https://", "xxl-job:9999": "want http:// or https://", " http://10.0.0.1:9999": "a comma or a blank",
		"http://10.0.0.1:9999,http://10.0.0.2:9999": "one by one", "http://10.0.0.1:9999 http://10.0.0.2:9999": "one by one",
	} {
		err := store.Group{App: "app", Manual: true, Addresses: []string{addr}}.Validate()
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("address %q: %v, want %q", addr, err, words)
		}
	}
	for _, addr := range []string{"http://10.0.0.1:9999/", "https://executor.example/base", "http://[::1]:9999"} {
		g := store.Group{App: "app", Manual: true, Addresses: []string{addr}}
		if err := g.Validate(); err != nil {
			t.Errorf("address %q: %v", addr, err)
		}
	}
	if err := (store.Group{App: "app", Manual: true}).Validate(); err == nil {
		t.Error("a manual group without addresses is accepted")
	}
}

// TestValidateWithoutApp: an empty Job.App means Config.App, which is no fault of
// the definition.
func TestValidateWithoutApp(t *testing.T) {
	if err := (store.Job{Name: "nightly", Handler: "h"}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestBoundsFaults: what is wrong with bounds is said with the field and its value.
func TestBoundsFaults(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2027, 1, n, 0, 0, 0, 0, time.UTC) }
	beyond := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		set  func(*store.Job)
		want map[string]string // nothing: it is in order
	}{
		{"none", func(*store.Job) {}, nil},
		{"all", func(j *store.Job) { j.NotBefore, j.NotAfter, j.MaxRuns = day(1), day(2), 1<<31-1 }, nil},
		{"one instant", func(j *store.Job) { j.NotBefore, j.NotAfter = day(1), day(1) }, nil},
		{"within a millisecond", func(j *store.Job) { j.NotBefore, j.NotAfter = day(1).Add(2000), day(1).Add(1000) }, nil},
		{"the bounds of the bounds", func(j *store.Job) {
			j.NotBefore, j.NotAfter = time.UnixMilli(1), beyond.Add(-time.Millisecond)
		}, nil},
		{"the wrong way round", func(j *store.Job) { j.NotBefore, j.NotAfter = day(2), day(1) },
			map[string]string{"NotAfter": "before NotBefore, 2027-01-02T00:00:00Z"}},
		{"below zero", func(j *store.Job) { j.MaxRuns = -1 }, map[string]string{"MaxRuns": `"-1"`}},
		{"too many", func(j *store.Job) { j.MaxRuns = 1 << 31 }, map[string]string{"MaxRuns": "2147483648"}},
		{"too early", func(j *store.Job) { j.NotBefore = time.UnixMilli(0) }, map[string]string{"NotBefore": "1970-01-01T00:00:00Z"}},
		{"too late", func(j *store.Job) { j.NotBefore, j.NotAfter = beyond, beyond.AddDate(5, 0, 0) },
			map[string]string{"NotBefore": "10000-01-01", "NotAfter": "10005-01-01"}},
		{"nothing to bound", func(j *store.Job) {
			j.Schedule, j.NotBefore, j.NotAfter, j.MaxRuns = schedule.Manual(), day(1), day(2), 1
		}, map[string]string{"NotBefore": "no schedule", "NotAfter": "no schedule", "MaxRuns": "no schedule"}},
	} {
		j := stage.GoodJob()
		j.Schedule = schedule.Cron("0 0 3 * * ?")
		tt.set(&j)
		if err := j.Validate(); tt.want == nil {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		} else {
			requireFaults(t, err, calledIn(j), tt.want)
		}
	}
}
