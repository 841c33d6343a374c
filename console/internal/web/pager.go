package web

// The way through a list that is read from one place to the next: forward by the place where a
// page ends, and back by those of the pages before, which stand in the address too.

import "slices"

// Pager are the addresses of other pages of a list; "" for one that there is not.
type Pager struct{ First, Newer, Older string }

// trailSize is how many bytes of an address say where the pages between the first and this one begin,
// so that addresses stay short.
const trailSize = 1200

// Pager leads from this page, which begins at the place in the query by this name, to the others.
// next is where the one behind it begins, "" for none.
func (x *Exchange) Pager(name, next string) (p Pager) {
	query := x.R.URL.Query()
	here, before := query.Get(name), query[Trail]
	to := func(at string, trailTo []string) string {
		return x.Address(map[string][]string{name: {at}, Trail: trailTo, "said": nil, "seen": nil})
	}
	if next != "" {
		var behind []string
		if here != "" {
			behind = append(slices.Clone(before), here)
		}
		p.Older = to(next, bounded(behind))
	}
	if here == "" {
		return p
	}
	p.First = to("", nil)
	switch last := len(before) - 1; {
	case last < 0:
		p.Newer = p.First
	case before[last] != "": // where it is empty the way has been forgotten
		p.Newer = to(before[last], before[:last])
	}
	return p
}

// bounded is a trail that is short enough. Its first place is empty where others were before it.
func bounded(places []string) []string {
	size := 0
	for i, place := range slices.Backward(places) {
		if size += len(place) + len("&up="); size > trailSize {
			return append([]string{""}, places[i+1:]...)
		}
	}
	return places
}

// GoOn is where a search goes on that has stopped early, instead of to a next page.
func (p *Pager) GoOn(partial bool) (link string) {
	if partial {
		link, p.Older = p.Older, ""
	}
	return link
}
