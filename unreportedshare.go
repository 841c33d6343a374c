package xxljob

// Which of very many accepted runs a node looks after: fair shares of the addresses.

import "slices"

// fairShare keeps the oldest runs of each address, at most so many in all: an address that has
// very many leaves room for those of the others. Runs are added in order of their ids.
type fairShare struct {
	most int
	of   map[siteKey][]Run
	n    int // in of
	cap  int // of each address; zero for none yet
	left int // were left out
}

func (f *fairShare) add(r Run) {
	if f.of == nil {
		f.of = map[siteKey][]Run{}
	}
	k := siteKey{r.App, r.Address}
	if f.cap > 0 && len(f.of[k]) >= f.cap {
		f.left++
		return
	}
	f.of[k] = append(f.of[k], r)
	if f.n++; f.n > f.most {
		f.shrink()
	}
}

// shrink finds the greatest share with which all have room, and some to spare, and takes the
// youngest from those that have more.
func (f *fairShare) shrink() {
	sizes := make([]int, 0, len(f.of))
	for _, list := range f.of {
		sizes = append(sizes, len(list))
	}
	slices.Sort(sizes)
	room := f.most - f.most/10
	f.cap = max(room/len(sizes), 1)
	for i, n := range sizes { // those that have less leave their room to the others
		if n > f.cap {
			break
		}
		if room -= n; i+1 < len(sizes) {
			f.cap = max(room/(len(sizes)-i-1), 1)
		}
	}
	for k, list := range f.of {
		if over := len(list) - f.cap; over > 0 {
			f.of[k] = slices.Clip(list[:f.cap])
			f.n -= over
			f.left += over
		}
	}
}

// runs are those that were kept.
func (f *fairShare) runs() map[int64]Run {
	runs := make(map[int64]Run, f.n)
	for _, list := range f.of {
		for _, r := range list {
			runs[r.ID] = r
		}
	}
	return runs
}
