package jobfile_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/jobfile"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// owned are the fields that a store sets: no definition has them.
const owned = " ID GlueUpdated StopReason Version Ensured Shard Next Last WaitRun Runs Added Updated "

// fullJob has something in each field of a definition, and is valid.
func fullJob() store.Job {
	return store.Job{
		App: "a", Key: "k", Name: "<n> ü\n\u202e", Author: "me", AlarmEmail: "me@example.com", Tags: []string{"night", "bill"},
		Schedule: schedule.Cron("0 0 3 * * ?").In("Asia/Shanghai").WithDST(schedule.DSTQuartz),
		Misfire:  store.MisfireFireOnceNow, CatchUp: store.CatchUpEveryMissed, CatchUpMost: 12, CatchUpAge: 48 * time.Hour, OnNoExecutor: store.OnNoExecutorRefuse,
		Route: "ROUND", Handler: "h", Param: "p\x01", Block: "CONCURRENT", MaxPerExecutor: 4, Timeout: 90 * time.Second,
		NotBefore: time.Date(2027, 1, 1, 0, 0, 0, 250e6, time.UTC), NotAfter: time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC), MaxRuns: 9,
		Retries: 3, Children: []int64{1, 2}, ChildKeys: []string{"a/c"}, ChildParam: store.ChildParamResult,
		After: []int64{3}, AfterKeys: []string{"a/p"}, AfterWindow: 6 * time.Hour, AfterZone: "Asia/Shanghai", AfterTimeout: 2 * time.Hour,
		LateAfter: 10 * time.Minute, KeepRuns: 48*time.Hour + time.Millisecond,
		RetryBackoff: store.Backoff{First: 1500 * time.Millisecond, Max: 5 * time.Minute, Jitter: 20}, RetryAside: true, Secret: true,
		OnLost: store.OnLostRerun, MaxReruns: 2, MaxSnoozes: 5,
		GlueType: "GLUE_SHELL", GlueSource: "echo", GlueRemark: "first", Stopped: true,
	}
}

// TestRoundTrip: what is written is read again, in either form of a file: each field of a definition.
func TestRoundTrip(t *testing.T) {
	full := fullJob()
	v := reflect.ValueOf(full)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() != strings.Contains(owned, " "+name+" ") {
			t.Errorf("%s: a definition has it, and this test does not, or the other way round", name)
		}
	}
	text, err := jobfile.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"[" + string(text) + "]", "\ufeff[" + string(text) + "]\n", `{"format": "xxljob-jobs", "formatVersion": 2, "missing": 1, "jobs": [` + string(text) + "]}"} {
		got, err := jobfile.Read(strings.NewReader(file))
		if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], full) {
			t.Errorf("%s: %+v, %v", file, got, err)
		}
	}
	for i := range v.NumField() { // what the store sets is not written
		if strings.Contains(owned, " "+v.Type().Field(i).Name+" ") {
			set(reflect.ValueOf(&full).Elem().Field(i))
		}
	}
	if again, err := jobfile.Marshal(full); err != nil || string(again) != string(text) {
		t.Errorf("with what the store sets it is %s, %v", again, err)
	}
	for d, want := range map[time.Duration]string{time.Second: "1s", 10 * time.Minute: "10m", time.Hour: "1h", 61 * time.Minute: "1h1m", time.Hour + time.Second: "1h0m1s"} {
		job := store.Job{Name: "n", Handler: "h", Timeout: d}
		text, _ := jobfile.Marshal(job)
		if want := `{"app":"","name":"n","schedule":{"type":""},"handler":"h","timeout":"` + want + `"}`; string(text) != want {
			t.Errorf("it is %s, want %s", text, want)
		}
		if got, err := jobfile.Read(strings.NewReader("[" + string(text) + "]")); err != nil || !reflect.DeepEqual(got, []store.Job{job}) {
			t.Errorf("%v: %+v, %v", d, got, err)
		}
	}
}

// set gives a field a value that is not zero.
func set(f reflect.Value) {
	switch {
	case f.Type() == reflect.TypeFor[time.Time]():
		f.Set(reflect.ValueOf(time.Now()))
	case f.Kind() == reflect.String:
		f.SetString("set")
	default:
		f.SetInt(7)
	}
}

// TestFaults: all that is wrong, each with its place.
func TestFaults(t *testing.T) {
	const v2 = `{"format": "xxljob-jobs", "formatVersion": 2`
	for _, c := range []struct{ name, file, want string }{
		{"empty", "", "1:1: unexpected end of JSON input"},
		{"syntax", "[\n {\"name\": \"ä\" 1}]", "2:15: invalid character '1' after object key:value pair"},
		{"behind a byte order mark", "\ufeff[\n 1,]", "2:4: invalid character ']' looking for beginning of value"},
		{"two documents", "[]\n[]", "2:1: invalid character '[' after top-level value"},
		{"text behind", "[] -- end", "1:4: invalid character '-' after top-level value"},
		{"another encoding", "[{\"name\":\n \"\xe4\"}]", "2:3: the file is no text in UTF-8"},
		{"half of a character", `[{"name": "\ud800", "handler": "\ud83d\ude00 \\ud800", "param": "\ud83dx"}]`, `1:11: field "name": it has half of a character (\ud800 to \udfff come in pairs)
1:65: field "param": it has half of a character (\ud800 to \udfff come in pairs)`},
		{"no list", " 7", "1:2: want a list of jobs, or an object with one, not 7"},
		{"another file", `{"jobs": []}`, `1:1: want a file with format "xxljob-jobs" and formatVersion 2, not "" and 0`},
		{"an old file", `{"format": "xxljob-jobs", "formatVersion": 1, "jobs": []}`, "1:1: formatVersion 1 has lengths of time in milliseconds, which are not read any more: export the jobs again"},
		{"without jobs", v2 + "}", `1:1: there is no field "jobs"`},
		{"jobs of another kind", v2 + `, "jobs": 7}`, `1:55: field "jobs": want a list of jobs, not 7`},
		{"a field of the file", `{"Jobs": []}`, `1:2: unknown field "Jobs" of a file; did you mean "jobs"?`},
		{"left out", "[\n{\"leftOut\": [\"param\", \"glueSource\"]}]", `2:13: the file has not all of the job: complete param, glueSource and take "leftOut" away`},
		{"fields", `[{"timeout": "90", "timout": "1s", "max_runs": 2,
 "schedule": {"typ": 1, "cron": ""}, "children": [1.5], "lateAfter": 600, "stopped": null, "stopped": true}, 7]`, `1:14: field "timeout": want a duration such as "30s", not "90"
1:20: unknown field "timout" of a job; did you mean "timeout"?
1:36: unknown field "max_runs" of a job; did you mean "maxRuns"?
2:15: unknown field "typ" of schedule; did you mean "type"?
2:25: unknown field "cron" of schedule; there are conf, dst, type, zone
2:50: field "children": want a list of whole numbers, not [1.5]
2:70: field "lateAfter": want a duration such as "30s", not 600
2:86: field "stopped": want true or false, not null
2:92: field "stopped" is given twice
2:110: want a job as an object, not 7`},
		{"values", `[{"name": "a", "timeout": "-1s", "misfire": "IGNORE", "tags": ["x", "x"],
  "schedule": {"type": "CRON", "conf": "0 0 18 * * 1-5"}, "retryBackoff": {"jitter": 101}},
 {"name": "b", "handler": "h", "block": "later", "onNoExecutor": "wait", "schedule": {"type": "DAILY"}},
 {"name": "c", "key": "b", "handler": "h"},
 {"name": "c", "app": "other", "handler": "h", "key": "b"}]`, `1:2: job "a": Handler "": must not be empty
1:27: job "a": Timeout "-1s": want whole seconds, from 0 (none) to 2^31-1
1:45: job "a": Misfire "IGNORE": want one of DO_NOTHING, FIRE_ONCE_NOW
1:63: job "a": Tags "x": it is there twice
2:40: job "a": Schedule "CRON 0 0 18 * * 1-5": schedule CRON: cron expression "0 0 18 * * 1-5": field 6 (day-of-week) has "1-5", expected "?" in exactly one of day-of-month and day-of-week: use xxljob.Cron("0 0 18 ? * MON-FRI"), for 1 is Sunday there, or xxljob.CronSeconds("0 0 18 * * 1-5"), where 1 is Monday
2:86: job "a": RetryBackoff.Jitter "101": want 0 to 100 percent
3:41: job "b": Block "later": unknown block strategy: want one of SERIAL_EXECUTION, DISCARD_LATER, COVER_EARLY, CONCURRENT
3:66: job "b": OnNoExecutor "wait": want one of WAIT, REFUSE; did you mean WAIT?
3:95: job "b": Schedule "DAILY": schedule type "DAILY" is unknown: want one of NONE, CRON, FIX_RATE, FIX_DELAY, CRONTAB, CRON_SECONDS, ONCE
4:2: job "c": Key "b" is that of the job in line 3`},
	} {
		_, err := jobfile.Read(strings.NewReader(c.file))
		var faults jobfile.Error
		if !errors.As(err, &faults) || err.Error() != "xxljob: file of jobs: "+c.want {
			t.Errorf("%s:\n%v, want\n%s", c.name, err, c.want)
		}
	}
}

// TestBounds: a name of 255 bytes is taken and one of 256 is not; a file that is too large, too deep or
// wrong throughout is refused in a text of bounded length.
func TestBounds(t *testing.T) {
	named := func(n int) string { return `[{"handler": "h", "name": "` + strings.Repeat("n", n) + `"}]` }
	if got, err := jobfile.Read(strings.NewReader(named(255))); err != nil || len(got[0].Name) != 255 {
		t.Errorf("a name of 255 bytes: %v", err)
	}
	for name, c := range map[string]struct{ file, want string }{
		"a long name":    {named(256), "256 bytes, at most 255"},
		"a large file":   {"[" + strings.Repeat(" ", jobfile.MaxSize) + "]", "1:1: the file has more than 32 MiB"},
		"a deep file":    {strings.Repeat("[", 1e6), "exceeded max depth"},
		"a deep field":   {`[{"x": ` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}]", `unknown field "x"`},
		"a long field":   {`[{"` + strings.Repeat("x", 1e6) + `": 1}]`, "xxx..."},
		"wrong jobs":     {"[7" + strings.Repeat(", 7", 1e5) + "]", "and 99901 more"},
		"a list of many": {"[" + strings.Repeat("{}, ", 1e4) + "1]", `Name "": must not be empty`},
	} {
		_, err := jobfile.Read(strings.NewReader(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 20_000 {
			t.Errorf("%s: %.300v, want %s", name, err, c.want)
		}
	}
}

// TestParse: entries have their places, by the rules that are given; what is right is there beside the
// error about the rest.
func TestParse(t *testing.T) {
	got, err := jobfile.Parse([]byte("[\n{\"name\": \"a\", \"handler\": \"h\", \"route\": \"OURS\"},\n\n  {\"name\": \"b\", \"handler\": \"h\"}]"), jobfile.Rules{Routes: []string{"OURS", "NEAREST"}})
	if err != nil || fmt.Sprint(got[0].Line, got[0].Column, got[1].Line, got[1].Column) != "2 1 4 3" || got[0].App != "" || got[0].Key != "" || got[1].Route != "" {
		t.Errorf("entries: %+v, %v", got, err)
	}
	got, err = jobfile.Parse([]byte(`[{"name": "a", "handler": "h", "app": "mine"}, {"name": "a", "handler": "h"}]`), jobfile.Rules{App: "mine"})
	if err == nil || len(got) != 1 || err.Error() != `xxljob: file of jobs: 1:48: job "a": Key "a" is that of the job in line 1` {
		t.Errorf("a key twice: %+v, %v", got, err)
	}
	if got, err := jobfile.Read(strings.NewReader("[]")); err != nil || len(got) != 0 {
		t.Errorf("no jobs: %+v, %v", got, err)
	}
}
