package memory

import (
	"reflect"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// notKept are the fields of a run that a row has none of its own for: they are the job's, or
// those of one answer.
var notKept = map[string]bool{"ID": true, "JobID": true, "App": true, "JobName": true, "JobKey": true, "Secret": true, "Shard": true, "StoppedJob": true}

// TestRunsKeepEachField: a run comes out of its row as it went in, with each field alone and with
// all, and shares no list with it.
func TestRunsKeepEachField(t *testing.T) {
	var all store.Run
	of := reflect.ValueOf(&all).Elem()
	for i := range of.NumField() {
		if f := of.Field(i); f.Kind() == reflect.Uint8 {
			f.SetUint(3)
		} else {
			fill(t, f, int64(i+1))
		}
	}
	each := []store.Run{{}, all}
	for i := range of.NumField() {
		var one store.Run
		reflect.ValueOf(&one).Elem().Field(i).Set(of.Field(i))
		each = append(each, one)
	}
	j := &job{work: &work{}, id: 7, app: "app", shard: &shard{id: 3}}
	for _, want := range each {
		r := new(runs).fresh()
		r.job = j
		r.keep(&want)
		got := r.snapshot()
		for i := range of.NumField() {
			name := of.Type().Field(i).Name
			a, b := reflect.ValueOf(got).Field(i).Interface(), reflect.ValueOf(want).Field(i).Interface()
			if !notKept[name] && !reflect.DeepEqual(a, b) {
				t.Errorf("%s: got %v, want %v", name, a, b)
			}
		}
		if got.JobID != 7 || got.App != "app" || got.Shard != 3 {
			t.Errorf("a run of job %d of %q in shard %d", got.JobID, got.App, got.Shard)
		}
		if len(got.Addresses) > 0 {
			got.Addresses[0] = "x"
			if again := r.snapshot(); !reflect.DeepEqual(again.Addresses, want.Addresses) {
				t.Error("a change of a copy has changed the run")
			}
		}
	}
}

// TestRunsShareTheirTerms: runs of a job that are started alike have the same terms, and one that
// is started otherwise changes nothing for those before it.
func TestRunsShareTheirTerms(t *testing.T) {
	j := &job{work: &work{}, app: "app", shard: &shard{}}
	started := func(param string) *run {
		r := new(runs).fresh()
		r.job = j
		r.agree(terms{app: "app", owner: "node", param: param})
		return r
	}
	a, b, c, d := started("x"), started("x"), started("y"), started("x")
	if a.terms != b.terms {
		t.Error("two runs that were started alike have terms of their own")
	}
	if a.terms.param != "x" || c.terms.param != "y" || d.terms.param != "x" {
		t.Errorf("parameters %q, %q, %q", a.terms.param, c.terms.param, d.terms.param)
	}
}

// TestExtras: a run is given extras when it has some, and not before.
func TestExtras(t *testing.T) {
	r := new(runs).fresh()
	r.setReason("")
	r.setProgress(0, "")
	if r.extras != nil {
		t.Error("a run without extras was given some")
	}
	r.setReason("stop")
	r.setProgress(50, "half")
	if x := r.extra(); x.reason != "stop" || x.progress != 50 || x.progressText != "half" {
		t.Errorf("extras %+v", x)
	}
	r.setProgress(0, "")
	if x := r.extra(); x.progress != 0 || x.progressText != "" {
		t.Errorf("extras %+v", x)
	}
}

// full is a job of which each field that a definition has is set, to what no other field has.
func full(t *testing.T) (j store.Job) {
	t.Helper()
	of := reflect.ValueOf(&j).Elem()
	for i := range of.NumField() {
		fill(t, of.Field(i), int64(i+1))
	}
	return j
}

func fill(t *testing.T, v reflect.Value, n int64) {
	t.Helper()
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(fromMilli(n)))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), 100*n+int64(i))
		}
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0), 100*n)
		fill(t, v.Index(1), 100*n+1)
	case v.Kind() == reflect.String:
		v.SetString("text " + time.Duration(n).String())
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(n)
	default:
		t.Fatalf("a field of kind %v", v.Kind())
	}
}

// TestDefinitionsKeepEachField: a job comes out of its definition as it went in, with each field
// alone and with all, and shares no list with it.
func TestDefinitionsKeepEachField(t *testing.T) {
	all := full(t)
	jobs := []store.Job{{}, all}
	for i := range reflect.TypeFor[store.Job]().NumField() {
		var one store.Job
		reflect.ValueOf(&one).Elem().Field(i).Set(reflect.ValueOf(all).Field(i))
		jobs = append(jobs, one.Clone())
	}
	for _, was := range jobs {
		j := new(job)
		j.define(&was)
		j.last, j.shardID = toMilli(was.Last), int32(was.Shard)
		got := j.snapshot()
		if !reflect.DeepEqual(got, was) {
			t.Errorf("got %+v, want %+v", got, was)
		}
		if len(got.Tags) > 0 && len(got.Children) > 0 {
			got.Tags[0], got.Children[0], got.ChildKeys[0], got.After[0], got.AfterKeys[0] = "x", -1, "x", -1, "x"
			if again := j.snapshot(); !reflect.DeepEqual(again, was) {
				t.Errorf("a change of a copy has changed the job: %+v", again)
			}
		}
	}
}
