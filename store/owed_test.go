package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
)

// TestOwes is every state of a run with every kind of definition.
func TestOwes(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	run := store.Run{
		ID: 20, TriggerID: 18, JobID: 7, Shard: 3, Depth: 4, Attempt: 2, Scheduled: at.Add(time.Minute), First: at,
		Last: at.Add(time.Hour), Count: 2, Param: "param", HandleMsg: "result",
	}
	one := store.Owed{RunID: 20, TriggerID: 18, ParentID: 7, Shard: 3, Business: at, Depth: 5}
	child := func(id int64, app, key string, param *string) store.Owed {
		c := one
		c.JobID, c.App, c.Key, c.Param = id, app, key, param
		return c
	}
	join := func(id int64) store.Owed {
		j := one
		j.JobID, j.Join = id, true
		return j
	}
	param, result := "param", "result"
	for _, tt := range []struct {
		name  string
		job   *store.Job
		joins []int64
		want  []store.Owed
	}{
		{"a job that nothing follows", &store.Job{ID: 7}, nil, nil},
		{"a job that is removed", nil, []int64{9}, nil},
		{"children by id", &store.Job{Children: []int64{9, 8}}, nil, []store.Owed{child(9, "", "", nil), child(8, "", "", nil)}},
		{"children by key", &store.Job{ChildKeys: []string{"b/k", "a/k/l"}}, nil, []store.Owed{child(0, "b", "k", nil), child(0, "a", "k/l", nil)}},
		{"with their own parameter", &store.Job{Children: []int64{9}, ChildParam: store.ChildParamOwn}, nil, []store.Owed{child(9, "", "", nil)}},
		{"with the parent's", &store.Job{Children: []int64{9}, ChildKeys: []string{"a/k"}, ChildParam: store.ChildParamParent}, nil, []store.Owed{child(9, "", "", &param), child(0, "a", "k", &param)}},
		{"with the result", &store.Job{Children: []int64{9}, ChildParam: store.ChildParamResult}, nil, []store.Owed{child(9, "", "", &result)}},
		{"joins are given no parameter", &store.Job{ChildParam: store.ChildParamResult}, []int64{5, 6}, []store.Owed{join(5), join(6)}},
		{"a stopped job owes as any other", &store.Job{Stopped: true, Children: []int64{9}}, []int64{5}, []store.Owed{child(9, "", "", nil), join(5)}},
	} {
		for _, state := range everyState {
			r := run
			r.State = state
			want := tt.want
			if state != store.StateSucceeded {
				want = nil
			}
			if got := owedText(r.Owes(tt.job, tt.joins)); got != owedText(want) {
				t.Errorf("%s, %s:\n got %s\nwant %s", tt.name, state, got, owedText(want))
			}
		}
	}
}

// owedText prints what is owed, with parameters and not where they lie.
func owedText(owed []store.Owed) string {
	var b strings.Builder
	for _, o := range owed {
		param := "its own"
		if o.Param != nil {
			param = fmt.Sprintf("%q", *o.Param)
		}
		o.Param = nil
		fmt.Fprintf(&b, "%+v with %s\n", o, param)
	}
	return b.String()
}

// TestResultsAreCutAtARune: a parameter is at most 64 KiB, and text.
func TestResultsAreCutAtARune(t *testing.T) {
	const most = 64 << 10
	for _, tt := range []struct {
		result string
		want   int
	}{
		{"", 0},
		{strings.Repeat("x", most), most},
		{strings.Repeat("x", most+1), most},
		{strings.Repeat("错", 24<<10), most / 3 * 3},
		{"x" + strings.Repeat("错", 24<<10), 1 + (most-1)/3*3},
		{strings.Repeat("x", most-3) + "😀", most - 3},
		{strings.Repeat("x", most-4) + "😀😀", most},
	} {
		run := store.Run{State: store.StateSucceeded, HandleMsg: tt.result}
		owed := run.Owes(&store.Job{Children: []int64{9}, ChildParam: store.ChildParamResult}, nil)
		got := *owed[0].Param
		if len(got) != tt.want || !utf8.ValidString(got) || !strings.HasPrefix(tt.result, got) {
			t.Errorf("of a result of %d bytes a child is given %d, valid: %v, want %d", len(tt.result), len(got), utf8.ValidString(got), tt.want)
		}
		if err := (store.Trigger{Param: &got}).Validate(); err != nil {
			t.Errorf("what is left of a result of %d bytes is no parameter: %v", len(tt.result), err)
		}
	}
}

func TestBusinessTime(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		run  store.Run
		want time.Time
	}{
		{"one instant", store.Run{Scheduled: at}, at},
		{"several instants", store.Run{Scheduled: at.Add(time.Hour), First: at, Last: at.Add(time.Hour), Count: 2}, at},
		{"a retry", store.Run{Scheduled: at.Add(time.Hour), First: at, Last: at, Attempt: 1}, at},
		{"a child", store.Run{Scheduled: at.Add(time.Hour), Business: at}, at},
		{"a child's retry", store.Run{Scheduled: at.Add(2 * time.Hour), First: at.Add(time.Hour), Business: at}, at},
	} {
		if got := tt.run.BusinessTime(); !got.Equal(tt.want) {
			t.Errorf("%s is for %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestChainFaults: the bounds of what a definition says of others, and what is just beyond.
func TestChainFaults(t *testing.T) {
	ids := func(n int) (list []int64) {
		for id := range n {
			list = append(list, int64(id+1))
		}
		return list
	}
	keys := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("app/%d", i))
		}
		return list
	}
	ref := func(app, key int) []string {
		return []string{strings.Repeat("a", app) + "/" + strings.Repeat("k", key)}
	}
	for _, tt := range []struct {
		name  string
		field string // none: it is good
		set   func(j *store.Job)
	}{
		{"100 children", "", func(j *store.Job) { j.Children, j.ChildKeys = ids(50), keys(50) }},
		{"101 children", "Children", func(j *store.Job) { j.Children, j.ChildKeys = ids(50), keys(51) }},
		{"101 children by key", "Children", func(j *store.Job) { j.ChildKeys = keys(101) }},
		{"100 before it", "", func(j *store.Job) { j.After, j.AfterKeys = ids(100), nil }},
		{"101 before it", "After", func(j *store.Job) { j.After, j.AfterKeys = ids(100), keys(1) }},
		{"an id of zero", "Children", func(j *store.Job) { j.Children = []int64{0} }},
		{"an id beyond 2^31", "After", func(j *store.Job) { j.After = []int64{1 << 31} }},
		{"the last id", "", func(j *store.Job) { j.After, j.Children = []int64{1<<31 - 1}, []int64{1<<31 - 1} }},
		{"a key without an app", "ChildKeys", func(j *store.Job) { j.ChildKeys = []string{"/k"} }},
		{"an app without a key", "AfterKeys", func(j *store.Job) { j.AfterKeys = []string{"app/"} }},
		{"no slash", "AfterKeys", func(j *store.Job) { j.AfterKeys = []string{"k"} }},
		{"an empty key", "ChildKeys", func(j *store.Job) { j.ChildKeys = []string{""} }},
		{"a blank key", "ChildKeys", func(j *store.Job) { j.ChildKeys = []string{"app/ "} }},
		{"a key that is no text", "ChildKeys", func(j *store.Job) { j.ChildKeys = []string{"app/\xff"} }},
		{"a key with a NUL", "AfterKeys", func(j *store.Job) { j.AfterKeys = []string{"app/\x00"} }},
		{"a key with slashes", "", func(j *store.Job) { j.ChildKeys = []string{"app/a/b/"} }},
		{"the longest key", "", func(j *store.Job) { j.ChildKeys, j.AfterKeys = ref(64, 255), ref(64, 255) }},
		{"an app of 65 bytes", "ChildKeys", func(j *store.Job) { j.ChildKeys = ref(65, 1) }},
		{"a key of 256 bytes", "AfterKeys", func(j *store.Job) { j.AfterKeys = ref(1, 256) }},
		{"ChildParam", "", func(j *store.Job) { j.ChildParam = store.ChildParamResult }},
		{"another ChildParam", "ChildParam", func(j *store.Job) { j.ChildParam = "result" }},
		{"LateAfter of a second", "", func(j *store.Job) { j.LateAfter = time.Second }},
		{"LateAfter of a month", "", func(j *store.Job) { j.LateAfter = 31 * aDay }},
		{"LateAfter of less", "LateAfter", func(j *store.Job) { j.LateAfter = time.Second - time.Millisecond }},
		{"LateAfter of more", "LateAfter", func(j *store.Job) { j.LateAfter = 31*aDay + time.Millisecond }},
		{"LateAfter before", "LateAfter", func(j *store.Job) { j.LateAfter = -time.Minute }},
		{"LateAfter in parts of a millisecond", "LateAfter", func(j *store.Job) { j.LateAfter = time.Minute + time.Microsecond }},
		{"AfterWindow of no join", "AfterWindow", func(j *store.Job) { j.AfterWindow = time.Hour }},
		{"AfterZone of no join", "AfterZone", func(j *store.Job) { j.AfterZone = "UTC" }},
		{"AfterTimeout of no join", "AfterTimeout", func(j *store.Job) { j.AfterTimeout = time.Hour }},
		{"AfterTimeout", "", behind(func(j *store.Job) { j.AfterTimeout = time.Second })},
		{"AfterTimeout of less", "AfterTimeout", behind(func(j *store.Job) { j.AfterTimeout = time.Second - time.Millisecond })},
		{"AfterTimeout of a month", "", behind(func(j *store.Job) { j.AfterTimeout = 31 * aDay })},
		{"AfterTimeout of more", "AfterTimeout", behind(func(j *store.Job) { j.AfterTimeout = 31*aDay + time.Millisecond })},
		{"AfterZone", "", behind(func(j *store.Job) { j.AfterZone = "Europe/Berlin" })},
		{"AfterZone of a node", "AfterZone", behind(func(j *store.Job) { j.AfterZone = "Local" })},
		{"AfterZone that is none", "AfterZone", behind(func(j *store.Job) { j.AfterZone = "Europe/Atlantis" })},
	} {
		job := stage.GoodJob()
		tt.set(&job)
		if err := job.Validate(); tt.field != "" {
			requireFaults(t, err, calledIn(job), map[string]string{tt.field: ""})
		} else if err != nil {
			t.Errorf("%s: %.300v", tt.name, err)
		}
	}
}

// behind makes a job that runs behind another.
func behind(set func(j *store.Job)) func(j *store.Job) {
	return func(j *store.Job) { j.AfterKeys = []string{"app/first"}; set(j) }
}

// TestWindowFaults: divisors of a day in whole milliseconds, and whole days.
func TestWindowFaults(t *testing.T) {
	for window, good := range map[time.Duration]bool{
		0: true, time.Second: true, 1500 * time.Millisecond: true, 90 * time.Second: true, 15 * time.Minute: true, time.Hour: true,
		2 * time.Hour: true, 6 * time.Hour: true, 12 * time.Hour: true, aDay: true, 7 * aDay: true, 31 * aDay: true,
		time.Millisecond: false, 999 * time.Millisecond: false, -time.Hour: false, 7 * time.Minute: false, 5 * time.Hour: false,
		25 * time.Hour: false, 36 * time.Hour: false, 32 * aDay: false, aDay + time.Millisecond: false,
		aDay >> 14: false, // divides a day, and is 5.2734375 s
	} {
		job := stage.GoodJob()
		behind(func(j *store.Job) { j.AfterWindow = window })(&job)
		if err := job.Validate(); good && err != nil {
			t.Errorf("a window of %v: %v", window, err)
		} else if !good {
			requireFaults(t, err, calledIn(job), map[string]string{"AfterWindow": window.String()})
		}
	}
}

// TestOwnKeysAreRefused: nobody can take the key of a run that is owed.
func TestOwnKeysAreRefused(t *testing.T) {
	for key, good := range map[string]bool{
		store.ChildKey(7): false, store.WindowKey(time.Now()): false, store.OwnKeys: false, "xxljob/mine": false,
		"xxljob": true, "xxljo/": true, "Xxljob/child/7": true, " xxljob/child/7": true, "mine/xxljob/": true,
	} {
		err := store.Trigger{Key: key}.Validate()
		if good && err != nil {
			t.Errorf("key %q: %v", key, err)
		} else if !good {
			requireFaults(t, err, "trigger", map[string]string{"Key": store.OwnKeys})
		}
	}
	if store.ChildKey(7) == store.ChildKey(8) || store.WindowKey(time.UnixMilli(1)) == store.WindowKey(time.UnixMilli(2)) {
		t.Error("two triggers, or two windows, have one key")
	}
}
