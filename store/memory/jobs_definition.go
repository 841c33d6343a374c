package memory

// Definitions of jobs, in the form in which they cost little.

import (
	"time"
	"unique"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// definition is what a user has said of a job. It is never changed, only replaced, so that the
// record of changes has the former ones. A job that waits costs little else, so a definition
// holds what jobs have in common once for all of them, and what few have apart.
type definition struct {
	id                        int64
	key, name, param, ensured string
	added                     int64 // milliseconds
	handler, conf             unique.Handle[string]
	common                    unique.Handle[common]
	rare                      *rare // nil for none
	stopped                   bool  // when it was said
}

// common is what many definitions have in common.
type common struct {
	app, author, email string
	scheduleType       schedule.Type
	zone, route        string
	dst                schedule.DST
	misfire            store.Misfire
	catchUp            store.CatchUp
	catchUpMost        int
	catchUpAge         time.Duration
	onNoExecutor       store.OnNoExecutor
	maxRuns            int
	block              string
	maxPerExecutor     int
	timeout            time.Duration
	retries            int
	backoff            store.Backoff
	retryAside         bool
	onLost             store.OnLost
	maxReruns          int
	maxSnoozes         int
	childParam         store.ChildParam
	secret             bool
	afterWindow        time.Duration
	afterZone          string
	afterTimeout       time.Duration
	lateAfter          time.Duration
	keepRuns           time.Duration
	glueType           string
}

// rare is what few definitions have.
type rare struct {
	notBefore, notAfter    time.Time
	tags                   []string
	children, after        []int64
	childKeys, afterKeys   []string
	glueSource, glueRemark string
	glueUpdated            time.Time
	stopReason             string // when it was said
}

// defined is the definition of a job.
func defined(j *store.Job) *definition {
	d := &definition{
		id: j.ID, key: j.Key, name: j.Name, param: j.Param, ensured: j.Ensured, added: toMilli(j.Added),
		handler: unique.Make(j.Handler), conf: unique.Make(j.Schedule.Conf),
		common: unique.Make(commonOf(j)), rare: rareOf(j), stopped: j.Stopped,
	}
	if d.key == d.name {
		d.key = d.name // mostly it is: then one text is kept for both
	}
	return d
}

func commonOf(j *store.Job) common {
	return common{
		app: j.App, author: j.Author, email: j.AlarmEmail,
		scheduleType: j.Schedule.Type, zone: j.Schedule.Zone, route: j.Route, dst: j.Schedule.DST, misfire: j.Misfire, catchUp: j.CatchUp, catchUpMost: j.CatchUpMost, catchUpAge: j.CatchUpAge, onNoExecutor: j.OnNoExecutor, maxRuns: j.MaxRuns,
		block: j.Block, maxPerExecutor: j.MaxPerExecutor, timeout: j.Timeout,
		retries: j.Retries, backoff: j.RetryBackoff, retryAside: j.RetryAside,
		onLost: j.OnLost, maxReruns: j.MaxReruns, maxSnoozes: j.MaxSnoozes, childParam: j.ChildParam, secret: j.Secret,
		afterWindow: j.AfterWindow, afterZone: j.AfterZone, afterTimeout: j.AfterTimeout,
		lateAfter: j.LateAfter, keepRuns: j.KeepRuns, glueType: j.GlueType,
	}
}

// rareOf is nil where the job has nothing of it.
func rareOf(j *store.Job) *rare {
	if j.NotBefore.IsZero() && j.NotAfter.IsZero() && j.GlueUpdated.IsZero() && j.GlueSource == "" && j.GlueRemark == "" && j.StopReason == "" &&
		len(j.Tags)+len(j.Children)+len(j.ChildKeys)+len(j.After)+len(j.AfterKeys) == 0 {
		return nil
	}
	own := j.Clone()
	return &rare{
		notBefore: own.NotBefore, notAfter: own.NotAfter, tags: own.Tags,
		children: own.Children, after: own.After, childKeys: own.ChildKeys, afterKeys: own.AfterKeys,
		glueSource: own.GlueSource, glueRemark: own.GlueRemark, glueUpdated: own.GlueUpdated, stopReason: own.StopReason,
	}
}

// put sets what the definition says in a job. The lists are its own.
func (d *definition) put(j *store.Job) {
	j.ID, j.Key, j.Name, j.Param, j.Ensured, j.Added = d.id, d.key, d.name, d.param, d.ensured, fromMilli(d.added)
	j.Handler, j.Stopped = d.handler.Value(), d.stopped
	c := d.common.Value()
	j.App, j.Author, j.AlarmEmail, j.Route = c.app, c.author, c.email, c.route
	j.Schedule = schedule.Schedule{Type: c.scheduleType, Conf: d.conf.Value(), Zone: c.zone, DST: c.dst}
	j.CatchUpMost, j.CatchUpAge = c.catchUpMost, c.catchUpAge
	j.Misfire, j.CatchUp, j.OnNoExecutor, j.MaxRuns = c.misfire, c.catchUp, c.onNoExecutor, c.maxRuns
	j.Block, j.MaxPerExecutor, j.Timeout = c.block, c.maxPerExecutor, c.timeout
	j.Retries, j.RetryBackoff, j.RetryAside = c.retries, c.backoff, c.retryAside
	j.OnLost, j.MaxReruns, j.MaxSnoozes, j.ChildParam, j.Secret = c.onLost, c.maxReruns, c.maxSnoozes, c.childParam, c.secret
	j.AfterWindow, j.AfterZone, j.AfterTimeout = c.afterWindow, c.afterZone, c.afterTimeout
	j.LateAfter, j.KeepRuns, j.GlueType = c.lateAfter, c.keepRuns, c.glueType
	if r := d.rare; r != nil {
		j.NotBefore, j.NotAfter, j.Tags = r.notBefore, r.notAfter, copied(r.tags)
		j.Children, j.After, j.ChildKeys, j.AfterKeys = copied(r.children), copied(r.after), copied(r.childKeys), copied(r.afterKeys)
		j.GlueSource, j.GlueRemark, j.GlueUpdated, j.StopReason = r.glueSource, r.glueRemark, r.glueUpdated, r.stopReason
	}
}

// handsOn and secret are about the job's parameter and results.
func (d *definition) handsOn() store.ChildParam { return d.common.Value().childParam }

func (d *definition) secret() bool { return d.common.Value().secret }

// job is a job with what the definition says, and nothing else.
func (d *definition) job() (j store.Job) {
	d.put(&j)
	return j
}

// app is the app of the job.
func (d *definition) app() string { return d.common.Value().app }

func (d *definition) notAfter() time.Time {
	if d.rare == nil {
		return time.Time{}
	}
	return d.rare.notAfter
}

func (d *definition) lateAfter() time.Duration { return d.common.Value().lateAfter }

func (d *definition) keepRuns() time.Duration { return d.common.Value().keepRuns }

func (d *definition) schedule() schedule.Schedule {
	c := d.common.Value()
	return schedule.Schedule{Type: c.scheduleType, Conf: d.conf.Value(), Zone: c.zone, DST: c.dst}
}

func (d *definition) tags() []string {
	if d.rare == nil {
		return nil
	}
	return d.rare.tags
}

// leads reports whether a success of the job triggers others that the definition names.
func (d *definition) leads() bool {
	return d.rare != nil && len(d.rare.children)+len(d.rare.childKeys) > 0
}

// refs are the jobs that it runs behind, as keys of Store.joins.
func (d *definition) refs() (refs []string) {
	if d.rare == nil {
		return nil
	}
	for _, id := range d.rare.after {
		refs = append(refs, store.IDRef(id))
	}
	return append(refs, d.rare.afterKeys...)
}
