package store

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/xxljob/xxljob/internal/errs"
)

// What an entry of the record of changes says, made of what was before and is after.

// mostChanged bounds a field of an entry, in bytes: what is longer is cut.
const mostChanged = 4 << 10

// Definition returns what a user has said of the job, with its ID: what UpdateJob changes. All
// that the store keeps of it besides has its zero value, as is Stopped.
func (j Job) Definition() Job {
	j = j.Clone()
	j.Stopped, j.StopReason, j.Ensured, j.GlueUpdated = false, "", "", time.Time{}
	j.Version, j.Shard, j.Next, j.Last, j.WaitRun, j.Runs = 0, 0, time.Time{}, time.Time{}, 0, 0
	j.Added, j.Updated = time.Time{}, time.Time{}
	return j
}

// recorded is what the record says of a job: its definition, and whether it is stopped.
func (j *Job) recorded() Job {
	d := j.Definition()
	d.Stopped, d.StopReason, d.ID = j.Stopped, j.StopReason, 0
	return d
}

// OfJob, for authors of stores, fills in what the entry says of a change of a job, of which
// before is nil where it was added, and after where it was removed: all but ID, At and Verb.
func (c *Change) OfJob(ctx context.Context, before, after *Job) {
	c.from(ctx)
	j, was, is := after, Job{}, Job{}
	if after == nil {
		j = before
	} else {
		is = after.recorded()
	}
	if before != nil {
		was = before.recorded()
	}
	c.Object, c.ObjectID, c.App, c.JobID, c.Version = ObjectJob, strconv.FormatInt(j.ID, 10), j.App, j.ID, j.Version
	c.between(before != nil, was, after != nil, is)
}

// OfStop, for authors of stores, fills in the entry of a job that the scheduler has stopped by
// itself, for the reason.
func (c *Change) OfStop(jobID int64, app string, version int64, reason string) {
	c.Actor, c.Verb, c.Object, c.ObjectID = Scheduler, "stop", ObjectJob, strconv.FormatInt(jobID, 10)
	c.App, c.JobID, c.Version = app, jobID, version
	c.between(true, Job{}, true, Job{Stopped: true, StopReason: reason})
}

// OfGroup, for authors of stores, fills in what the entry says of a change of an app, of which
// before is nil where it was added, and after where it was removed: all but ID and At. It
// reports whether anything has changed.
func (c *Change) OfGroup(ctx context.Context, before, after *Group) bool {
	c.from(ctx)
	was, is := Group{}, Group{}
	c.Object, c.Verb = ObjectApp, "update"
	if before != nil {
		was, c.App = before.clone(), before.App
	}
	if after != nil {
		is, c.App = after.clone(), after.App
	}
	was.App, is.App, was.Updated, is.Updated = "", "", time.Time{}, time.Time{}
	switch {
	case before == nil:
		c.Verb = "add"
	case after == nil:
		c.Verb = "remove"
	}
	c.ObjectID = c.App
	c.between(before != nil, was, after != nil, is)
	return c.Verb != "update" || c.After != "{}" || c.Before != "{}"
}

// OfTrigger, for authors of stores, fills in the entry of a run that was planned for a trigger,
// and reports whether one is to be written: ctx has to name an actor.
func (c *Change) OfTrigger(ctx context.Context, run *Run, t *Trigger) bool {
	if Actor(ctx) == "" {
		return false
	}
	again := Again(ctx)
	if c.Verb = "trigger"; again != 0 {
		c.Verb = "again"
	}
	c.ofRun(ctx, run)
	type trigger struct {
		Again     int64 // the run that was asked for again
		Param     *string
		Addresses []string
		Shard     Sharding
		Retries   *int
		At        time.Time
		Key       string
		Type      TriggerType
	}
	c.between(false, trigger{}, true, trigger{again, t.Param, t.Addresses, t.Shard, t.Retries, t.At, t.Key, t.Type})
	return true
}

// OfKill, for authors of stores, fills in the entry of a run that somebody wants ended, and
// reports whether one is to be written: ctx has to name an actor, and something to have
// changed.
func (c *Change) OfKill(ctx context.Context, before, after *Run) bool {
	if Actor(ctx) == "" || before.ID == after.ID && before.State == after.State && before.KillReason == after.KillReason {
		return false
	}
	c.Verb = "kill"
	c.ofRun(ctx, after)
	type run struct{ State, KillReason, Reason string }
	was := run{before.State.String(), before.KillReason, before.Reason}
	c.between(true, was, true, run{after.State.String(), after.KillReason, after.Reason})
	return true
}

func (c *Change) ofRun(ctx context.Context, run *Run) {
	c.from(ctx)
	c.Object, c.ObjectID, c.App, c.JobID = ObjectRun, strconv.FormatInt(run.ID, 10), run.App, run.JobID
}

// OfDrop fills in the entry of ended runs that were deleted.
func (c *Change) OfDrop(q *RunDrop, runs int) {
	c.Verb, c.Object = "drop", ObjectRuns
	if len(q.Apps) == 1 {
		c.App = q.Apps[0]
	}
	if len(q.JobIDs) == 1 {
		c.JobID = q.JobIDs[0]
	}
	type drop struct {
		Runs       int
		Apps       []string
		JobIDs     []int64
		Before     time.Time
		KeepNewest int
		All        bool
	}
	c.between(false, drop{}, true, drop{runs, q.Apps, q.JobIDs, q.Before, q.KeepNewest, q.All})
}

func (c *Change) from(ctx context.Context) {
	o := OriginOf(ctx)
	c.Actor, c.Client, c.RequestID = o.Actor, o.Client, o.RequestID
}

// between sets Before and After, of two values of one type; of what was not there before, or is
// not there after, nothing is said.
func (c *Change) between(has bool, before any, will bool, after any) {
	was, is := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	a, b := reflect.ValueOf(before), reflect.ValueOf(after)
	for i := range a.NumField() {
		if !same(a.Field(i), b.Field(i)) {
			name := a.Type().Field(i).Name
			was[name], is[name] = textOf(a.Field(i)), textOf(b.Field(i))
		}
	}
	c.Before, c.After = "", ""
	if has {
		c.Before = objectOf(was)
	}
	if will {
		c.After = objectOf(is)
	}
}

// same reports whether two values of a field say the same. An empty list is none.
func same(a, b reflect.Value) bool {
	switch a.Kind() { // most fields are of these, and DeepEqual takes longer
	case reflect.String:
		return a.String() == b.String()
	case reflect.Bool:
		return a.Bool() == b.Bool()
	case reflect.Int, reflect.Int64:
		return a.Int() == b.Int()
	case reflect.Slice:
		if a.Len() == 0 || b.Len() == 0 {
			return a.Len() == b.Len()
		}
	}
	if at, is := a.Interface().(time.Time); is {
		return at.Equal(b.Interface().(time.Time))
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// textOf is the JSON of a field, cut where it is long. What has none, as a time in the year 10000, has its error.
func textOf(v reflect.Value) json.RawMessage {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() == reflect.String && v.Len() > mostChanged {
		return cutText(v.String()) // before JSON is made of it: scripts have up to 16 MiB
	}
	value, err := json.Marshal(v.Interface())
	if err != nil {
		value, _ = json.Marshal(errs.Shorten(err.Error(), 200))
	}
	if len(value) <= mostChanged {
		return value
	}
	text := ""
	if json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	return cutText(text)
}

// cutText is the JSON of the beginning of a text, and of how much more there is.
func cutText(text string) json.RawMessage {
	n := min(mostChanged, len(text))
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	value, _ := json.Marshal(fmt.Sprintf("%s... (%d bytes more)", text[:n], len(text)-n))
	return value
}

// objectOf joins fields.
func objectOf(fields map[string]json.RawMessage) string {
	text, _ := json.Marshal(fields)
	return string(text)
}

// What an entry of the record of changes says of users and tokens. It never says anything of a
// hash.

// recordedUser is what the record says of a user.
type recordedUser struct {
	Title       string
	Admin       bool
	Apps        map[string]string
	Scripts     bool
	Disabled    bool
	PasswordSet time.Time
}

func recordOfUser(u *User) recordedUser {
	if u == nil {
		return recordedUser{}
	}
	r := recordedUser{Title: u.Title, Admin: u.Admin, Scripts: u.Scripts, Disabled: u.Disabled, PasswordSet: u.PasswordSet}
	if len(u.Apps) > 0 {
		r.Apps = u.Apps
	}
	return r
}

// OfUser, for authors of stores, fills in what the entry says of a change of a user, of which
// before is nil where it was added, and after where it was removed: all but ID and At. It
// reports whether anything has changed that the record tells of.
func (c *Change) OfUser(ctx context.Context, before, after *User) bool {
	c.from(ctx)
	c.Object, c.Verb = ObjectUser, "update"
	switch {
	case before == nil:
		c.Verb, c.ObjectID = "add", after.Name
	case after == nil:
		c.Verb, c.ObjectID = "remove", before.Name
	default:
		c.ObjectID = after.Name
	}
	c.between(before != nil, recordOfUser(before), after != nil, recordOfUser(after))
	return c.Verb != "update" || c.After != "{}"
}

// OfToken, for authors of stores, is OfUser for a token, which is added or removed.
func (c *Change) OfToken(ctx context.Context, before, after *Token) {
	type recorded struct {
		User, Name string
		Admin      bool
		Apps       map[string]string
		Scripts    bool
		Expires    time.Time
	}
	of := func(t *Token) (r recorded) {
		if t != nil {
			r = recorded{User: t.User, Name: t.Name, Admin: t.Admin, Scripts: t.Scripts, Expires: t.Expires}
			if len(t.Apps) > 0 {
				r.Apps = t.Apps
			}
		}
		return r
	}
	c.from(ctx)
	c.Object, c.Verb = ObjectToken, "add"
	t := after
	if after == nil {
		c.Verb, t = "remove", before
	}
	c.ObjectID = strconv.FormatInt(t.ID, 10)
	c.between(before != nil, of(before), after != nil, of(after))
}
