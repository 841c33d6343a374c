package memory

import (
	"reflect"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

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
