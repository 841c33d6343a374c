package route

import (
	"slices"
	"testing"
)

func TestSameComparesWhatTheStringsSay(t *testing.T) {
	abc := []string{"a", "b", "c"}
	for _, tt := range []struct {
		a, b []string
		want bool
	}{
		{nil, nil, true},
		{nil, []string{}, true},
		{nil, []string{""}, false},
		{abc, abc, true},
		{abc, slices.Clone(abc), true},
		{abc, []string{string([]byte("a")), "b", "c"}, true},
		{abc, abc[:2], false},
		{abc, []string{"a", "c", "b"}, false},
		{[]string{"ab", "c"}, []string{"a", "bc"}, false},
	} {
		if got := same(tt.a, tt.b); got != tt.want {
			t.Errorf("same(%q, %q) = %v", tt.a, tt.b, got)
		}
	}
}

func TestFollowTakesOverEqualStrings(t *testing.T) {
	own, anew := addresses(3), addresses(3)
	if !follow(own, anew) || headers(own) != headers(anew) {
		t.Error("the strings read anew were not taken over")
	}
	if follow(own, addresses(4)[1:]) || !slices.Equal(own, addresses(3)) {
		t.Error("a different list was followed")
	}
}

func TestJobsShareACopyOfTheirList(t *testing.T) {
	l, addrs := NewLFU(nil), addresses(3)
	mustRoute(t, l, 1, addrs)
	mustRoute(t, l, 2, addresses(3))
	a, _ := l.jobs.get(1)
	b, _ := l.jobs.get(2)
	if &a.state.addrs[0] != &b.state.addrs[0] {
		t.Error("two jobs with one list keep two copies")
	}
	if &a.state.addrs[0] == &addrs[0] {
		t.Error("the caller's slice is kept")
	}
}
