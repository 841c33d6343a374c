package interop_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// TestJavaJobs has our admin called by the client with which programs manage their jobs
// from 3.5 on, and what they add and trigger run by a peer of that version.
func TestJavaJobs(t *testing.T) {
	t.Parallel()
	for _, k := range javaVersions(t) {
		if !k.manages {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			m := &manager{newStage(t, k, memory.New(), 2), newDriver(t, k.name)}
			m.driver = m.of("http://" + m.addr + "/api")
			for _, c := range management {
				t.Run(c.name, func(t *testing.T) {
					c.run(t, &manager{m.stage, m.with(t)})
					m.counted(t)
				})
			}
		})
	}
}

// manager is a program that manages jobs at a scheduler, and the peers that run them.
type manager struct {
	*stage
	*driver
}

var management = []struct {
	name string
	run  func(t *testing.T, m *manager)
}{
	{"callers", managingCallers},
	{"add", addsAndUpdates},
	{"start and stop", startsAndStops},
	{"trigger", triggersByWire},
	{"scripts", keepsScripts},
	{"carriage returns", stripsReturns},
	{"remove", removes},
	{"absent jobs", absentJobs},
}

// fields are a request, by the names in its Java class. What is not there is null there.
type fields map[string]any

// definition is a request to add a job without a schedule, with changes.
func definition(t *testing.T, change fields) fields {
	def := fields{
		"jobGroup": 7, "name": t.Name(), "author": "somebody", "scheduleType": "NONE",
		"misfireStrategy": "DO_NOTHING", "executorRouteStrategy": "FIRST", "executorHandler": "quote",
		"executorBlockStrategy": "SERIAL_EXECUTION", "glueType": wire.GlueBean,
	}
	maps.Copy(def, change)
	return def
}

// adds adds a job, and returns it as it is stored.
func (m *manager) adds(t *testing.T, def fields) xxljob.Job {
	t.Helper()
	var text string
	m.ok("addJob", def).payload(t, &text)
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("addJob: the id is %q", text)
	}
	return m.stored(t, id)
}

// updates sends a definition for a job, which has no group in it, and returns the job
// as it is stored then.
func (m *manager) updates(t *testing.T, id int64, def fields) xxljob.Job {
	t.Helper()
	def = maps.Clone(def)
	delete(def, "jobGroup")
	def["id"] = id
	m.ok("updateJob", def)
	return m.stored(t, id)
}

func (m *manager) stored(t *testing.T, id int64) xxljob.Job {
	t.Helper()
	job, err := m.store.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// one is the request about one job.
func one(id int64) fields { return fields{"id": id} }

// sole waits for the one run of a job.
func (m *manager) sole(t *testing.T, job xxljob.Job) xxljob.Run {
	t.Helper()
	runs := m.runsOf(t, job)
	if len(runs) != 1 {
		t.Fatalf("%d runs of job %d, want one: %+v", len(runs), job.ID, runs)
	}
	m.starts[runs[0].ID] = 1
	return m.ended(t, runs[0].ID)
}

func managingCallers(t *testing.T, m *manager) {
	for token, text := range m.turnsAway() {
		wrong := *m.driver
		wrong.token = token
		wrong.refused("addJob", definition(t, nil), text)
		wrong.refused("triggerJob", one(1), text)
	}
	wrong := *m.driver
	wrong.app = "another-app"
	wrong.refused("addJob", definition(t, nil), wire.MsgIdentityInvalid)
	if jobs, err := m.store.Jobs(t.Context(), xxljob.JobFilter{}); err != nil || len(jobs) != 0 {
		t.Errorf("jobs are %+v, %v", jobs, err)
	}
}

func addsAndUpdates(t *testing.T, m *manager) {
	def := definition(t, fields{
		"name": "报表 <daily>", "alarmEmail": "a@example.org,b@example.org", "scheduleType": "CRON",
		"scheduleConf": "0 0 3 * * ?", "misfireStrategy": "FIRE_ONCE_NOW", "executorRouteStrategy": "ROUND",
		"executorParam": awkward, "executorBlockStrategy": "COVER_EARLY", "executorTimeout": 30, "executorFailRetryCount": 2,
	})
	job := m.adds(t, def)
	isDefined(t, job, def)
	if job.App != theApp || !job.Stopped {
		t.Errorf("added: %+v, want a stopped job of %s", job, theApp)
	}
	// What a request cannot name is left as it is.
	child := m.adds(t, definition(t, nil))
	job.Schedule.Zone, job.Children = "Asia/Shanghai", []int64{child.ID}
	if _, err := m.UpdateJob(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	maps.Copy(def, fields{"name": "renamed", "scheduleConf": "0 30 4 * * ?", "executorParam": "", "executorTimeout": 0, "executorBlockStrategy": "DISCARD_LATER"})
	updated := m.updates(t, job.ID, def)
	isDefined(t, updated, def)
	if updated.Schedule.Zone != "Asia/Shanghai" || !slices.Equal(updated.Children, job.Children) || updated.App != theApp || !updated.Stopped {
		t.Errorf("updated: %+v", updated)
	}
	bad := maps.Clone(def)
	bad["scheduleConf"] = "not a cron"
	if a := m.call("addJob", bad); a.Code != wire.CodeFail || a.Msg == "" {
		t.Errorf("a bad schedule: %+v", a)
	}
}

// isDefined compares a job with the request that has made it.
func isDefined(t *testing.T, job xxljob.Job, def fields) {
	t.Helper()
	got := fields{
		"name": job.Name, "author": job.Author, "scheduleType": string(job.Schedule.Type), "scheduleConf": job.Schedule.Conf,
		"alarmEmail": job.AlarmEmail, "misfireStrategy": string(job.Misfire), "executorRouteStrategy": job.Route,
		"executorHandler": job.Handler, "executorParam": job.Param, "executorBlockStrategy": job.Block,
		"executorTimeout": int(job.Timeout / time.Second), "executorFailRetryCount": job.Retries, "glueType": job.GlueType,
	}
	for name, v := range got {
		if want := def[name]; want != v {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
}

// startsAndStops has a job run every second by its schedule, for a while.
func startsAndStops(t *testing.T, m *manager) {
	job := m.adds(t, definition(t, fields{"executorHandler": "count", "scheduleType": "CRON", "scheduleConf": "* * * * * ?"}))
	m.ok("startJob", one(job.ID))
	m.ok("startJob", one(job.ID)) // changes nothing
	eventually(t, time.Minute, "two runs of the job end", func() bool {
		runs := m.runsOf(t, job)
		return len(runs) >= 2 && runs[1].State.Ended()
	})
	m.ok("stopJob", one(job.ID))
	m.ok("stopJob", one(job.ID))
	if now := m.stored(t, job.ID); !now.Stopped {
		t.Errorf("stopped: %+v", now)
	}
	for _, run := range m.runsOf(t, job) {
		switch run = m.ended(t, run.ID); run.State {
		case xxljob.StateSucceeded:
			m.starts[run.ID] = 1
		default: // planned before the stop, for afterwards
			m.starts[run.ID] = 0
		}
	}
	m.refusedBy("startJob", m.adds(t, definition(t, nil)).ID) // there is nothing to start it by
}

// refusedBy wants code 500 for a job, in whatever words.
func (m *manager) refusedBy(verb string, id int64) {
	m.t.Helper()
	if a := m.call(verb, one(id)); a.Code != wire.CodeFail || a.Msg == "" {
		m.t.Errorf("%s %d: %+v, want a refusal", verb, id, a)
	}
}

func triggersByWire(t *testing.T, m *manager) {
	def := definition(t, fields{"executorParam": "its own"})
	for _, c := range []struct {
		name string
		req  fields
		want string
		at   int
	}{
		{"a parameter", fields{"executorParam": awkward}, awkward, 0},
		{"null for one", fields{}, "", 0},
		{"an empty one", fields{"executorParam": ""}, "", 0},
		{"an address", fields{"executorParam": "x", "addressList": m.peers[1].registers()}, "x", 1},
	} {
		job := m.adds(t, def)
		c.req["id"] = job.ID
		m.ok("triggerJob", c.req)
		run := m.sole(t, job)
		if run.State != xxljob.StateSucceeded || run.HandleMsg != `"`+c.want+`"` || run.Type != xxljob.TriggerAPI {
			t.Errorf("%s: the run is %+v, want the result %q", c.name, run, c.want)
		}
		if at := m.at(t, run); at != m.peers[c.at] {
			t.Errorf("%s: the run was at %s", c.name, at.registers())
		}
	}
}

// keepsScripts: an update says nothing of a job's script, whatever is in it.
func keepsScripts(t *testing.T, m *manager) {
	script := fields{"glueType": "GLUE_SHELL", "glueSource": "echo one\n", "glueRemark": "the first"}
	was := m.adds(t, definition(t, script))
	for name, change := range map[string]fields{
		"none of it":     {"glueType": nil},
		"the type alone": {"glueType": "GLUE_SHELL"},
		"another one":    {"glueType": "GLUE_PYTHON", "glueSource": "print(2)", "glueRemark": "the second"},
		"a handler":      {"glueType": wire.GlueBean, "glueSource": "", "glueRemark": ""},
	} {
		def := definition(t, change)
		def["name"] = "with " + name
		job := m.updates(t, was.ID, def)
		if job.Name != def["name"] {
			t.Errorf("%s: the name is %q", name, job.Name)
		}
		if job.GlueType != was.GlueType || job.GlueSource != was.GlueSource || job.GlueRemark != was.GlueRemark {
			t.Errorf("%s: the script is %s %q (%s), want %s %q (%s)", name,
				job.GlueType, job.GlueSource, job.GlueRemark, was.GlueType, was.GlueSource, was.GlueRemark)
		}
	}
	m.runsScript(t, was)
}

// runsScript triggers a job at the peer, which runs the script in a shell.
func (m *manager) runsScript(t *testing.T, job xxljob.Job) {
	t.Helper()
	m.ok("triggerJob", one(job.ID))
	run := m.sole(t, job)
	m.starts[run.ID] = 0 // no handler of the peer's
	if run.State != xxljob.StateSucceeded {
		t.Errorf("the script's run is %v: %q\n%s", run.State, run.HandleMsg, run.TriggerMsg)
	}
}

// stripsReturns adds scripts with the ends of lines that browsers send. A shell would
// take them for a part of the words before them.
func stripsReturns(t *testing.T, m *manager) {
	const source = "if true; then\r\n  echo two\r\nfi\r\n"
	for glue, want := range map[string]string{
		"GLUE_SHELL":  "if true; then\n  echo two\nfi\n",
		"GLUE_PYTHON": source,
	} {
		job := m.adds(t, definition(t, fields{"glueType": glue, "glueSource": source, "glueRemark": "two"}))
		if job.GlueType != glue || job.GlueSource != want || job.GlueRemark != "two" {
			t.Errorf("%s: the script is %q (%s)", job.GlueType, job.GlueSource, job.GlueRemark)
		}
		if glue == "GLUE_SHELL" {
			m.runsScript(t, job)
		}
	}
}

// removes removes a job twice, as a client does that has not heard the first answer.
func removes(t *testing.T, m *manager) {
	job := m.adds(t, definition(t, nil))
	m.ok("removeJob", one(job.ID))
	if left, err := m.store.Job(t.Context(), job.ID); err == nil {
		t.Errorf("removed: %+v", left)
	}
	m.ok("removeJob", one(job.ID))
	m.ok("removeJob", one(1<<30))
}

// absentJobs asks for what can be done to no job, and to another app's no more.
func absentJobs(t *testing.T, m *manager) {
	other, err := m.AddJob(t.Context(), xxljob.Job{App: "another-app", Name: "theirs", Handler: "count", Route: route.First, Schedule: xxljob.Cron("0 0 3 * * ?")})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []int64{1 << 30, other.ID} {
		text := fmt.Sprintf("job %d not found.", id)
		for _, verb := range []string{"startJob", "stopJob", "triggerJob"} {
			m.refused(verb, one(id), text)
		}
		def := definition(t, nil)
		delete(def, "jobGroup")
		def["id"] = id
		m.refused("updateJob", def, text)
	}
	// Whose job it is does not show in the answer: it is that about an absent job.
	absent, theirs := m.call("removeJob", one(1<<30)), m.call("removeJob", one(other.ID))
	if absent.Code != theirs.Code {
		t.Errorf("removal of no job: %+v, of another app's: %+v", absent, theirs)
	}
	after := m.stored(t, other.ID)
	if a, b := encoded(t, other), encoded(t, after); a != b {
		t.Errorf("another app's job was\n%s\nand is\n%s", a, b)
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
