package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
)

func TestDemoJobs(t *testing.T) {
	jobs, err := demoJobs()
	if err != nil {
		t.Fatal(err)
	}
	if len(jobs) != 111+4 {
		t.Errorf("%d jobs", len(jobs))
	}
	want := xxljob.Job{App: "standalone", Key: "stuck_export_jobs", Name: "stuck_export_jobs", Handler: "demoJobHandler",
		Param: "stuck_export_jobs", Schedule: xxljob.Crontab("30 * * * *")}
	if !reflect.DeepEqual(jobs[3], want) {
		t.Errorf("got %+v, want %+v", jobs[3], want)
	}
}

func TestSampleFile(t *testing.T) {
	jobs, err := readJobs("jobs.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	types := map[xxljob.ScheduleType]bool{}
	for _, j := range jobs {
		types[j.Schedule.Type] = true
	}
	if len(jobs) != 7 || len(types) != 5 {
		t.Errorf("%d jobs of %d types", len(jobs), len(types))
	}
}

func TestEveryFieldOfAJob(t *testing.T) {
	got, err := parseJobs("all.json", []byte(`[{
		"app": "a", "key": "k", "name": "n", "author": "me", "alarmEmail": "me@example.com", "tags": ["night", "bill"],
		"schedule": {"type": "CRON", "conf": "0 0 3 * * ?", "zone": "Asia/Shanghai", "dst": "QUARTZ"},
		"misfire": "FIRE_ONCE_NOW", "catchUp": "EVERY_MISSED", "catchUpMost": 12, "catchUpAge": "48h", "onNoExecutor": "REFUSE",
		"route": "ROUND", "handler": "h", "param": "p", "block": "CONCURRENT", "maxPerExecutor": 4, "timeout": "1m30s",
		"notBefore": "2027-01-01T00:00:00Z", "notAfter": "2028-01-01T00:00:00Z", "maxRuns": 9,
		"retries": 3, "children": [1, 2], "childKeys": ["a/c"], "childParam": "RESULT",
		"after": [3], "afterKeys": ["a/p"], "afterWindow": "6h", "afterZone": "Asia/Shanghai", "afterTimeout": "2h", "lateAfter": "10m", "keepRuns": "48h",
		"retryBackoff": {"first": "10s", "max": "5m", "jitter": 20}, "retryAside": true, "secret": true,
		"onLost": "RERUN", "maxReruns": 2, "maxSnoozes": 5,
		"glueType": "GLUE_SHELL", "glueSource": "echo", "glueRemark": "first", "stopped": true }]`), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := xxljob.Job{
		App: "a", Key: "k", Name: "n", Author: "me", AlarmEmail: "me@example.com", Tags: []string{"night", "bill"},
		Schedule: xxljob.Cron("0 0 3 * * ?").In("Asia/Shanghai").WithDST(xxljob.DSTQuartz),
		Misfire:  xxljob.MisfireFireOnceNow, CatchUp: xxljob.CatchUpEveryMissed, CatchUpMost: 12, CatchUpAge: 48 * time.Hour, OnNoExecutor: xxljob.OnNoExecutorRefuse,
		Route: "ROUND", Handler: "h", Param: "p", Block: "CONCURRENT", MaxPerExecutor: 4, Timeout: 90 * time.Second,
		NotBefore: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC), MaxRuns: 9,
		Retries: 3, Children: []int64{1, 2}, ChildKeys: []string{"a/c"}, ChildParam: xxljob.ChildParamResult,
		After: []int64{3}, AfterKeys: []string{"a/p"}, AfterWindow: 6 * time.Hour, AfterZone: "Asia/Shanghai", AfterTimeout: 2 * time.Hour, LateAfter: 10 * time.Minute, KeepRuns: 48 * time.Hour,
		RetryBackoff: xxljob.Backoff{First: 10 * time.Second, Max: 5 * time.Minute, Jitter: 20}, RetryAside: true, Secret: true,
		OnLost: xxljob.OnLostRerun, MaxReruns: 2, MaxSnoozes: 5,
		GlueType: "GLUE_SHELL", GlueSource: "echo", GlueRemark: "first", Stopped: true,
	}
	if !reflect.DeepEqual(got, []xxljob.Job{want}) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	// Whatever field a definition has, the file can hold: the test fails when one
	// is added and forgotten here.
	library := map[string]bool{"ID": true, "GlueUpdated": true, "StopReason": true, "Version": true, "Ensured": true,
		"Shard": true, "Runs": true, "Next": true, "Last": true, "WaitRun": true, "Added": true, "Updated": true}
	v := reflect.ValueOf(got[0])
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() != library[name] {
			t.Errorf("field %s of xxljob.Job: not set by the file, or set by the library only", name)
		}
	}
}

func TestFormats(t *testing.T) {
	const json, tsv = `[{"name": "a", "handler": "h"}]`, "a\t* * * * *\n"
	for _, c := range []struct{ file, content string }{
		{"x.json", json}, {"x.JSON", json}, {"x", "\n " + json}, {"x.conf", json}, {"x.tsv", tsv}, {"x", tsv}, {"crontab", "# c\r\n\r\na\t\t @daily \r\n"},
		{"seconds", "a\t0 */15 9-17 * * 1-5\n"},
	} {
		if jobs, err := parseJobs(c.file, []byte(c.content), nil); err != nil || len(jobs) != 1 || jobs[0].Key != "a" {
			t.Errorf("%s %q: got %v, %v", c.file, c.content, jobs, err)
		}
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct{ name, file, content, want string }{
		{"tsv", "x.tsv", "# comment\nok\t* * * * *\nno tab here\n\nbad\t61 * * * *\nok\t@daily\n\t* * * * *\n", `
x.tsv:3: want a name, a tab and a crontab expression
x.tsv:5: job "bad": Schedule "CRONTAB 61 * * * *": schedule CRONTAB: cron expression "61 * * * *": field 1 (minutes) has "61", expected a minute from 0 to 59
x.tsv:6: job "ok": Key "ok" is that of the job in line 2
x.tsv:7: want a name, a tab and a crontab expression`},
		{"empty tsv", "x.tsv", "# nothing\n", "\nx.tsv:1: there are no jobs in the file"},
		{"empty list", "x.json", "[]", "\nx.json:1: there are no jobs in the file"},
		{"empty json", "x.json", "", "\nx.json:1:1: unexpected end of JSON input"},
		{"blank json", "x.json", " \n\n", "\nx.json:3:1: unexpected end of JSON input"},
		{"syntax", "x.json", "[\n  {\"name\": \"ä\" \"handler\": \"h\"}\n]", "\nx.json:2:16: invalid character '\"' after object key:value pair"},
		{"cut short", "x.json", "[\n  {\"name\": \"a\"", "\nx.json:2:15: unexpected end of JSON input"},
		{"more behind", "x.json", "[]\n[]", "\nx.json:2:1: invalid character '[' after top-level value"},
		{"no list", "x.json", "\n {\"name\": \"a\"}", "\nx.json:2:3: unknown field \"name\" of a file; there are exportedAt, format, formatVersion, jobs, missing"},
		{"no objects", "x.json", "[\n 7 ,\n \"a\",\n null]", `
x.json:2:2: want a job as an object, not 7
x.json:3:2: want a job as an object, not "a"
x.json:4:2: want a job as an object, not null`},
		{"fields", "x.json", `[
  {"name": "a", "cron": "* * * * *"},
  {"name": 7,
   "timeout": "30", "retries": 1.5,
   "children": [1, "2"], "stopped": "yes",
   "schedule": {"typ": "CRON", "conf": 5},
   "handler": null},
  {"name": "b", "name": "c", "schedule": "5s", "timeout": 5},
  {"name": "d", "notAfter": "soon"}
]`, `
x.json:2:17: unknown field "cron" of a job; there are after, afterKeys, afterTimeout, afterWindow, afterZone, alarmEmail, app, author, block, catchUp, catchUpAge, catchUpMost, childKeys, childParam, children, glueRemark, glueSource, glueType, handler, keepRuns, key, lateAfter, leftOut, maxPerExecutor, maxReruns, maxRuns, maxSnoozes, misfire, name, notAfter, notBefore, onLost, onNoExecutor, param, retries, retryAside, retryBackoff, route, schedule, secret, stopped, tags, timeout
x.json:3:12: field "name": want text, not 7
x.json:4:15: field "timeout": want a duration such as "30s", not "30"
x.json:4:32: field "retries": want a whole number, not 1.5
x.json:5:16: field "children": want a list of whole numbers, not [1, "2"]
x.json:5:37: field "stopped": want true or false, not "yes"
x.json:6:17: unknown field "typ" of schedule; did you mean "type"?
x.json:6:40: field "conf": want text, not 5
x.json:7:15: field "handler": want text, not null
x.json:8:17: field "name" is given twice
x.json:8:42: want schedule as an object, not "5s"
x.json:8:59: field "timeout": want a duration such as "30s", not 5
x.json:9:29: field "notAfter": want a time such as "2027-01-31T18:30:00+01:00", not "soon"`},
		{"jobs", "x.json", `[
  {"name": "a", "schedule": {"type": "CRON", "conf": "* * *"}},

  {"name": "b", "handler": "h", "route": "NOWHERE", "block": "LATER", "timeout": "1500ms"},
  {"name": "past", "handler": "h", "schedule": {"type": "ONCE", "conf": "1999-01-01T00:00:00Z"}},
  {"name": "c", "key": "k", "handler": "h"}, {"name": "d", "key": "k", "handler": "h"},
  {"name": "e", "key": "k", "app": "other", "handler": "h"},
  {"name": "over", "handler": "h", "schedule": {"type": "CRON", "conf": "0 * * * * ?"}, "notAfter": "1999-01-01T00:00:00Z"}
]`, `
x.json:2:3: job "a": Handler "": must not be empty
x.json:2:54: job "a": Schedule "CRON * * *": schedule CRON: cron expression "* * *": has 3 fields, expected 6 or 7 fields: seconds minutes hours day-of-month month day-of-week [year]
x.json:4:42: job "b": Route "NOWHERE": unknown routing strategy: want one of FIRST, LAST, ROUND, RANDOM, CONSISTENT_HASH, LEAST_FREQUENTLY_USED, LEAST_RECENTLY_USED, FAILOVER, BUSYOVER, SHARDING_BROADCAST, NEAREST
x.json:4:62: job "b": Block "LATER": unknown block strategy: want one of SERIAL_EXECUTION, DISCARD_LATER, COVER_EARLY, CONCURRENT
x.json:4:82: job "b": Timeout "1.5s": want whole seconds, from 0 (none) to 2^31-1
x.json:5: job "past": Schedule "ONCE 1999-01-01T00:00:00Z": the instant is past
x.json:6:46: job "d": Key "k" is that of the job in line 6
x.json:8: job "over": Schedule "CRON 0 * * * * ?": it has no instant from now to NotAfter`},
	} {
		t.Run(c.name, func(t *testing.T) {
			jobs, err := parseJobs(filepath.Join("some", "where", c.file), []byte(c.content), nil)
			if err == nil {
				t.Fatalf("no error, %d jobs", len(jobs))
			}
			if want := strings.TrimPrefix(c.want, "\n"); err.Error() != want {
				t.Errorf("got:\n%s\nwant:\n%s", err, want)
			}
		})
	}
}

func TestNoFile(t *testing.T) {
	if _, err := readJobs(filepath.Join(t.TempDir(), "none.json"), nil); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}

// Whatever a file holds, it is read or refused, with a place for each fault.
func FuzzParseJobs(f *testing.F) {
	sample, err := os.ReadFile("jobs.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(sample))
	f.Add("a\t* * * * *\n#\nb")
	f.Add(`[{"name": "a", "\u0061": [], "schedule": {}, "timeout": null}, 7]`)
	f.Fuzz(func(t *testing.T, content string) {
		if jobs, err := parseJobs("x", []byte(content), nil); (err == nil) != (len(jobs) > 0) {
			t.Errorf("%d jobs, error %v", len(jobs), err)
		} else if err != nil && !strings.HasPrefix(err.Error(), "x:") {
			t.Errorf("error without a place: %v", err)
		}
	})
}
