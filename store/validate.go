package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/blockrule"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/schedule"
)

// What is wrong with a definition, and what its empty fields stand for.

// glueTypes are XXL-JOB's stored glue_type values.
var glueTypes = []string{GlueBean, "GLUE_GROOVY", "GLUE_SHELL", "GLUE_PYTHON", "GLUE_PYTHON2", "GLUE_NODEJS", "GLUE_POWERSHELL", "GLUE_PHP"}

// Validate reports every fault of the definition at once, each with the name
// of the field and its value, or nil. It knows the routing strategies of
// package route and refuses rates under one second; a Scheduler also accepts
// the names in Config.Routers, and with Config.Limits.AllowSubSecond such rates.
func (j Job) Validate() error {
	// Any app will do for the one that Config.App stands for.
	return j.withDefaults("app", nil).validate(route.Names(), false)
}

// Rules are what a Scheduler checks definitions by, besides what holds for all.
type Rules struct {
	// App stands for an empty Job.App, and Zone for the zone of a schedule that names none.
	App  string
	Zone *time.Location
	// Routes are the names that Job.Route may have.
	Routes []string
	// SubSecond allows rates under one second.
	SubSecond bool
	// RunRetention is how long runs are kept, in which the retries of a job have to end.
	RunRetention time.Duration
}

// Complete fills in what empty fields of a definition stand for, and reports every fault of it.
// Lists in it are its own then. It is what a Scheduler does with each that it is given, before
// the store has it.
func Complete(job Job, rules Rules) (Job, error) {
	job = job.Clone().withDefaults(rules.App, rules.Zone)
	return job, errors.Join(job.validate(rules.Routes, rules.SubSecond), job.retriesFit(rules.RunRetention))
}

// withDefaults fills what an empty field stands for.
func (j Job) withDefaults(app string, zone *time.Location) Job {
	errs.SetDefault(&j.App, app)
	errs.SetDefault(&j.Key, j.Name)
	errs.SetDefault(&j.Misfire, MisfireDoNothing)
	errs.SetDefault(&j.Route, route.Nearest)
	errs.SetDefault(&j.Block, block.SerialExecution)
	errs.SetDefault(&j.GlueType, GlueBean)
	if j.OnLost == OnLostFail {
		j.OnLost = "" // as it is stored, and as lists that were ensured before have it
	}
	j.Schedule = j.Schedule.WithZone(zone)
	j.chainDefaults(zone)
	j.NotBefore, j.NotAfter = j.NotBefore.UTC().Truncate(time.Millisecond), j.NotAfter.UTC().Truncate(time.Millisecond)
	return j
}

// validate collects the faults of a job whose defaults are filled in. The routes are the
// names that Route may have.
func (j Job) validate(routes []string, subSecond bool) error {
	f := Faults{Of: Called(j)}
	f.Key("App", j.App, 1, 64)
	f.Key("Key", j.Key, 0, 255)
	f.Text("Name", j.Name, 1, 255)
	f.Text("Author", j.Author, 0, 64)
	f.Text("AlarmEmail", j.AlarmEmail, 0, 255)
	f.checkTags(j.Tags)
	f.Text("Param", j.Param, 0, maxParam)
	f.Text("GlueSource", j.GlueSource, 0, 16<<20)
	f.Text("GlueRemark", j.GlueRemark, 0, 128)
	minHandler := 0
	if j.GlueType == GlueBean {
		minHandler = 1
	}
	f.Text("Handler", j.Handler, minHandler, 255)
	f.Add("Schedule", j.Schedule, j.Schedule.Validate(subSecond))
	f.OneOf("Misfire", string(j.Misfire), string(MisfireDoNothing), string(MisfireFireOnceNow))
	f.OneOf("CatchUp", string(j.CatchUp), "", string(CatchUpEvery), string(CatchUpOnce), string(CatchUpEveryMissed))
	j.checkCatchUp(&f)
	f.OneOf("OnNoExecutor", string(j.OnNoExecutor), "", string(OnNoExecutorWait), string(OnNoExecutorRefuse))
	j.checkBounds(&f)
	f.OneOf("GlueType", j.GlueType, glueTypes...)
	if !slices.Contains(routes, j.Route) {
		f.Add("Route", j.Route, fmt.Errorf("%w: %s", errs.ErrUnknownRoute, errs.OneOf(j.Route, routes)))
	}
	if !block.Valid(j.Block) {
		f.Add("Block", j.Block, fmt.Errorf("%w: %s", errs.ErrUnknownBlock, errs.OneOf(j.Block, block.Names())))
	}
	if j.MaxPerExecutor < 0 || j.MaxPerExecutor > 10_000 {
		f.Add("MaxPerExecutor", j.MaxPerExecutor, errors.New("want 1 to 10000, or 0 for the executor's places"))
	} else if j.MaxPerExecutor > 0 && !blockrule.Of(j.Block).SideBySide {
		f.Add("MaxPerExecutor", j.MaxPerExecutor, fmt.Errorf("is for Block %s, and Block is %q", block.Concurrent, j.Block))
	}
	if j.Timeout < 0 || j.Timeout%time.Second != 0 || j.Timeout > maxTimeout {
		f.Add("Timeout", j.Timeout, errors.New("want whole seconds, from 0 (none) to 2^31-1"))
	}
	f.checkRetries(j.Retries, j.RetryBackoff, j.OnLost, j.MaxReruns, j.MaxSnoozes)
	j.checkChain(&f)
	if j.KeepRuns != 0 && (j.KeepRuns < leastKeepRuns || j.KeepRuns > schedule.MaxPeriod || j.KeepRuns%time.Millisecond != 0) {
		f.Add("KeepRuns", j.KeepRuns, fmt.Errorf("want %v to %v in whole milliseconds, or 0 for Config.RunRetention", leastKeepRuns, schedule.MaxPeriod))
	}
	return f.Err()
}

// The bounds of Job.Tags.
const (
	mostTags = 16
	mostTag  = 64
)

func (f *Faults) checkTags(tags []string) {
	if n := len(tags); n > mostTags {
		f.Add("Tags", n, coded{"too-long", fmt.Errorf("%d of them, at most %d", n, mostTags)})
	}
	for i, tag := range tags {
		f.Plain("Tags", tag, 1, mostTag)
		if slices.Contains(tags[:i], tag) {
			f.Add("Tags", errs.Shorten(tag, 40), errors.New("it is there twice"))
		}
	}
}

// checkBounds adds what is wrong with NotBefore, NotAfter and MaxRuns.
func (j *Job) checkBounds(f *Faults) {
	var nothing error
	if j.Schedule.IsManual() {
		nothing = errors.New("the job has no schedule that it could bound")
	}
	for _, bound := range []struct {
		field string
		at    time.Time
	}{{"NotBefore", j.NotBefore}, {"NotAfter", j.NotAfter}} {
		switch {
		case bound.at.IsZero():
		case bound.at.UnixMilli() <= 0 || bound.at.Year() > 9999:
			f.Add(bound.field, errs.InWords(bound.at), errors.New("want a time after the beginning of 1970 and before the year 10000"))
		default:
			f.Add(bound.field, errs.InWords(bound.at), nothing)
		}
	}
	if !j.NotAfter.IsZero() && j.NotAfter.Before(j.NotBefore) {
		f.Add("NotAfter", errs.InWords(j.NotAfter), fmt.Errorf("it is before NotBefore, %s", errs.InWords(j.NotBefore)))
	}
	switch {
	case j.MaxRuns < 0 || j.MaxRuns > mostMaxRuns:
		f.Add("MaxRuns", j.MaxRuns, errors.New("want 0 (no bound) to 2^31-1"))
	case j.MaxRuns > 0:
		f.Add("MaxRuns", j.MaxRuns, nothing)
	}
}

// ValidateNew reports what is set of a definition that is to be added although the store sets
// it, such as the ID.
func (j Job) ValidateNew() error {
	f := Faults{Of: Called(j)}
	for _, field := range []struct {
		name  string
		value any
		set   bool
	}{
		{"ID", j.ID, j.ID != 0},
		{"Version", j.Version, j.Version != 0},
		{"Ensured", j.Ensured, j.Ensured != ""},
		{"StopReason", j.StopReason, j.StopReason != ""},
		{"Shard", j.Shard, j.Shard != 0},
		{"Next", j.Next, !j.Next.IsZero()},
		{"Last", j.Last, !j.Last.IsZero()},
		{"WaitRun", j.WaitRun, j.WaitRun != 0},
		{"Runs", j.Runs, j.Runs != 0},
		{"Added", j.Added, !j.Added.IsZero()},
		{"Updated", j.Updated, !j.Updated.IsZero()},
		{"GlueUpdated", j.GlueUpdated, !j.GlueUpdated.IsZero()},
	} {
		if field.set {
			f.Add(field.name, field.value, errors.New("is set by the store, leave it empty"))
		}
	}
	return f.Err()
}

// maxTimeout is what XXL-JOB's 32-bit seconds can hold.
const maxTimeout = (1<<31 - 1) * time.Second

// checkCatchUp checks the bounds of CatchUpEveryMissed.
func (j *Job) checkCatchUp(f *Faults) {
	other := fmt.Errorf("is for CatchUp %s, and CatchUp is %q", CatchUpEveryMissed, j.CatchUp)
	switch n := j.CatchUpMost; {
	case n < 0 || n > mostCatchUp:
		f.Add("CatchUpMost", n, fmt.Errorf("want 1 to %d, or 0 for 100", mostCatchUp))
	case n != 0 && j.CatchUp != CatchUpEveryMissed:
		f.Add("CatchUpMost", n, other)
	}
	switch d := j.CatchUpAge; {
	case d == 0:
	case d < time.Minute || d > schedule.MaxPeriod || d%time.Millisecond != 0:
		f.Add("CatchUpAge", d, fmt.Errorf("want %v to %v in whole milliseconds, or 0 for any age", time.Minute, schedule.MaxPeriod))
	case j.CatchUp != CatchUpEveryMissed:
		f.Add("CatchUpAge", d, other)
	}
}

// mostCatchUp is the greatest Job.CatchUpMost: as many as a Count says for certain.
const mostCatchUp = CountCap

// leastKeepRuns is the least Job.KeepRuns.
const leastKeepRuns = time.Minute

// mostMaxRuns is what a 32-bit column holds.
const mostMaxRuns = 1<<31 - 1

// Jobs that others lead to: children of a success, and joins behind several.

// The bounds of chains.
const (
	mostLinks  = 100 // of one job
	mostWindow = 31 * 24 * time.Hour
	oneDay     = 24 * time.Hour
)

// chainDefaults fills in what is empty, as far as it has to be the same at every node.
func (j *Job) chainDefaults(zone *time.Location) {
	if j.ChildParam == ChildParamOwn {
		j.ChildParam = "" // as it is stored
	}
	if j.isJoin() && j.AfterZone == "" && zone != nil && zone != time.UTC {
		j.AfterZone = zone.String()
	}
}

// isJoin reports whether the job runs behind others.
func (j *Job) isJoin() bool { return len(j.After)+len(j.AfterKeys) > 0 }

// checkChain adds what is wrong with children, joins and LateAfter.
func (j *Job) checkChain(f *Faults) {
	f.links("Children", j.Children, "ChildKeys", j.ChildKeys, j.App, j.Key, j.ID)
	f.links("After", j.After, "AfterKeys", j.AfterKeys, j.App, j.Key, j.ID)
	f.OneOf("ChildParam", string(j.ChildParam), "", string(ChildParamOwn), string(ChildParamParent), string(ChildParamResult))
	f.span("LateAfter", j.LateAfter)
	if !j.isJoin() {
		for _, field := range []struct {
			name string
			set  bool
		}{{"AfterWindow", j.AfterWindow != 0}, {"AfterZone", j.AfterZone != ""}, {"AfterTimeout", j.AfterTimeout != 0}} {
			if field.set {
				f.Add(field.name, "", errors.New("is for a job with After or AfterKeys"))
			}
		}
		return
	}
	f.span("AfterTimeout", j.AfterTimeout)
	if w := j.AfterWindow; w < 0 || w > mostWindow || w%time.Millisecond != 0 || w > 0 && w < time.Second || w > 0 && w < oneDay && oneDay%w != 0 || w > oneDay && w%oneDay != 0 {
		f.Add("AfterWindow", w, errors.New("want a divisor of 24h from 1s on in whole milliseconds, or whole days up to 31"))
	}
	if _, err := schedule.LoadZone(j.AfterZone); err != nil {
		f.Add("AfterZone", j.AfterZone, err)
	}
}

// span checks a duration of a second to a month, or none.
func (f *Faults) span(field string, d time.Duration) {
	if d != 0 && (d < time.Second || d > mostWindow || d%time.Millisecond != 0) {
		f.Add(field, d, errors.New("want 1s to 744h, in whole milliseconds, or 0"))
	}
}

// links checks the jobs that a job names, by id and by key.
func (f *Faults) links(idField string, ids []int64, keyField string, keys []string, app, key string, self int64) {
	if n := len(ids) + len(keys); n > mostLinks {
		f.Add(idField, n, fmt.Errorf("%d jobs with those of %s, at most %d", n, keyField, mostLinks))
	}
	for _, id := range ids {
		switch {
		case id <= 0 || id >= 1<<31:
			f.Add(idField, id, errors.New("want job ids from 1 to 2^31-1"))
		case id == self && self != 0:
			f.Add(idField, id, fmt.Errorf("%w: it is the job itself", errs.ErrCycle))
		}
	}
	for _, ref := range keys {
		refApp, refKey, ok := SplitRef(ref)
		switch {
		case !ok || len(refApp) > 64 || len(refKey) > 255 || strings.TrimSpace(refKey) == "":
			f.Add(keyField, errs.Shorten(ref, 80), errors.New(`want "app/key", of at most 64 and 255 bytes`))
		case refApp == app && refKey == key:
			f.Add(keyField, ref, fmt.Errorf("%w: it is the job itself", errs.ErrCycle))
		default:
			f.Text(keyField, ref, 1, 320)
		}
	}
}

// BusinessTime is the time that the work of a run is for: of a child that of the run whose
// success has planned it, of a join when its window begins, and of any other run the first
// instant that its trigger stands for; and a run that repeats another has the time of that. It is
// what Job.After goes by.
func (r Run) BusinessTime() time.Time {
	switch {
	case !r.Business.IsZero():
		return r.Business
	case !r.StandsFor.IsZero() && r.Count == 0: // First of a RETRY is when its trigger was due
		return r.StandsFor
	case !r.First.IsZero():
		return r.First
	}
	return r.Scheduled
}
