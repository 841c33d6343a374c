package postgres

import "slices"

// words are the texts of a batch of which there are few, each once. A statement
// gets the list, and for each row the place of its text in it, which costs both
// sides less than the text itself: the database copies the arguments of a row
// several times before it stores them.
type words struct {
	list   []string
	places map[string]int16 // once there are more than a few
}

// place is where the text is in the list, counted from 1 as SQL does; 0, where no
// array has anything and SQL finds null, for an empty text.
func (w *words) place(text string) int16 {
	if text == "" {
		return 0
	}
	if at, ok := w.find(text); ok {
		return at
	}
	w.list = append(w.list, text)
	at := int16(len(w.list))
	switch {
	case w.places != nil:
		w.places[text] = at
	case len(w.list) > fewWords:
		w.places = make(map[string]int16, 2*fewWords)
		for i, word := range w.list {
			w.places[word] = int16(i + 1)
		}
	}
	return at
}

// fewWords is how many are looked through sooner than one is looked up.
const fewWords = 8

func (w *words) find(text string) (at int16, ok bool) {
	if w.places != nil {
		at, ok = w.places[text]
		return at, ok
	}
	i := slices.Index(w.list, text)
	return int16(i + 1), i >= 0
}

// upTo are the numbers from 1 to n. A statement gets the places of its rows as an
// argument like the others, for of generate_subscripts the planner expects a
// thousand rows, however few there are.
func upTo(n int) []int32 {
	places := make([]int32, n)
	for i := range places {
		places[i] = int32(i) + 1
	}
	return places
}

// sparseList is a list of n values of which most are zero. It is made when the first other one
// is set.
type sparseList[T comparable] struct {
	n    int
	list []T
}

func (l *sparseList[T]) set(place int, v T) {
	var zero T
	if v == zero {
		return
	}
	if l.list == nil {
		l.list = make([]T, l.n)
	}
	l.list[place] = v
}

// value is what sparse makes of such a list.
func (l *sparseList[T]) value() []T {
	if l.list == nil {
		return []T{}
	}
	return l.list
}

// sparse is the list, or an empty one where there is nothing in it but zeros: SQL finds
// null at any place of that, and what is not sent need not be read.
func sparse[T comparable](list []T) []T {
	var zero T
	for _, v := range list {
		if v != zero {
			return list
		}
	}
	return list[:0]
}
