package postgres

import (
	"slices"
	"testing"
)

// TestWordsOfABatch: each text has one place, be there few or many, and none has 0.
func TestWordsOfABatch(t *testing.T) {
	t.Parallel()
	var w words
	for range 2 {
		for i := range 3 * fewWords {
			text := string(rune('a' + i))
			if got := w.place(text); int(got) != i+1 || w.list[got-1] != text {
				t.Errorf("%q is at %d, want %d", text, got, i+1)
			}
		}
	}
	if w.place("") != 0 || len(w.list) != 3*fewWords {
		t.Errorf("%d texts, want %d", len(w.list), 3*fewWords)
	}
}

// TestShardsOfABatch: each once, and none that cannot be.
func TestShardsOfABatch(t *testing.T) {
	t.Parallel()
	var x shardSet
	for _, id := range []int{7, 0, 7, -1, maxShards, maxShards + 1, 0, 3} {
		x.add(id, int64(id)+100)
	}
	ids, epochs := fenceArgs(x.list)
	if !slices.Equal(ids, []int16{0, 3, 7, maxShards}) || !slices.Equal(epochs, []int64{100, 103, 107, maxShards + 100}) {
		t.Errorf("shards %d with epochs %d", ids, epochs)
	}
}

// TestListsOfFewValues: such a list is empty until it has one.
func TestListsOfFewValues(t *testing.T) {
	t.Parallel()
	l := sparseList[int64]{n: 3}
	l.set(1, 0)
	if got := l.value(); got == nil || len(got) != 0 {
		t.Errorf("of zeros: %#v, want an empty one that is not nil", got)
	}
	l.set(2, 5)
	if got := l.value(); !slices.Equal(got, []int64{0, 0, 5}) {
		t.Errorf("with one: %v", got)
	}
}
