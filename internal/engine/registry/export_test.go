package registry

import "time"

// Gone are addresses that are gone.
type Gone struct{ tombstones tombstones }

// MaxGone is how many of them are remembered.
const MaxGone = maxGone

// Note remembers one for a minute.
func (g *Gone) Note(app, address string, now time.Time) {
	g.tombstones.note(app, address, now, time.Minute)
}

// Has reports whether one is remembered.
func (g *Gone) Has(app, address string) bool {
	_, has := g.tombstones.apps[app][address]
	return has
}

// Len is how many are remembered.
func (g *Gone) Len() (n int) {
	for _, list := range g.tombstones.apps {
		n += len(list)
	}
	return n
}

// Replaced is for how long a process was replaced, in the last of these seconds. In each
// the process of one letter was heard of.
func Replaced(dead time.Duration, boot, boots string) time.Duration {
	began, now := time.Unix(0, 0), time.Unix(0, 0)
	at := &presence{since: began, wanted: map[string]bool{boot: true}}
	for i, b := range boots {
		if now = began.Add(time.Duration(i) * time.Second); b != '-' {
			at.register(string(b), now, now)
		}
	}
	return at.replaced(boot, now, dead, at.several(now, dead))
}
