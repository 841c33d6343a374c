package mail

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/xxljob/xxljob/alarm"
)

// Who edits jobs names addresses, and is not always somebody who may have this account write to
// the whole world: allowed says to whom it may, and day how often.

// anybody is the entry of Config.Allow that leaves nobody out.
const anybody = "*"

// maxAllow bounds Config.Allow.
const maxAllow = 1000

// allowed are the addresses that messages may name.
type allowed struct {
	anybody            bool
	addresses, domains map[string]bool // in lower case
}

// newAllowed reads Config.Allow; without one, these are the domains of all whom the host names.
func newAllowed(entries, own []string) (allowed, error) {
	a := allowed{addresses: map[string]bool{}, domains: map[string]bool{}}
	if len(entries) > maxAllow {
		return a, fmt.Errorf("mail: Config.Allow has %d entries, at most %d", len(entries), maxAllow)
	}
	if entries == nil {
		for _, address := range own {
			a.domains[domainOf(address)] = true
		}
	}
	for _, s := range entries {
		address, isAddress := addressOf(s)
		switch {
		case s == anybody:
			a.anybody = true
		case isAddress:
			a.addresses[strings.ToLower(address)] = true
		case !strings.Contains(s, "@") && plainAddress("a@"+s) && !strings.ContainsAny(s, "*%!"):
			a.domains[strings.ToLower(s)] = true
		default:
			return a, fmt.Errorf("mail: Config.Allow has %q, which is neither an address nor a domain of ASCII, nor %q", alarm.Line(s, 100), anybody)
		}
	}
	return a, nil
}

// has reports whether a message may name the address. A local part that some servers take for a
// way to another domain is in none.
func (a *allowed) has(address string) bool {
	address = strings.ToLower(address)
	local, _, _ := strings.Cut(address, "@")
	return a.anybody || a.addresses[address] || a.domains[domainOf(address)] && !strings.ContainsAny(local, "%!")
}

// domainOf is the domain of an address, in lower case.
func domainOf(address string) string {
	_, domain, _ := strings.Cut(strings.ToLower(address), "@")
	return domain
}

// The bounds of what is sent within a day to those whom jobs name.
const (
	usualPerDay = 500
	mostPerDay  = 1_000_000
	allPerDay   = 10 // times the bound of an app, for all apps together
)

// day counts what was sent to those whom jobs name, by app. It begins with the first of them, and
// ends 24 hours later.
type day struct {
	most int // for an app

	mu    sync.Mutex
	since time.Time       // guarded by mu
	all   int             // guarded by mu
	by    map[string]int  // guarded by mu: apps; those beyond maxRemembered are one, without a name
	over  map[string]bool // guarded by mu: of which apps somebody was left out
}

// take counts n addresses of an app, or as many as there is room for, which it returns, and whether
// it is the first time that there is none.
func (d *day) take(app string, n int, now time.Time) (taken int, first bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by == nil || now.Sub(d.since) >= 24*time.Hour || now.Before(d.since) {
		d.since, d.all, d.by, d.over = now, 0, map[string]int{}, map[string]bool{}
	}
	if _, known := d.by[app]; !known && len(d.by) >= maxRemembered {
		app = ""
	}
	taken = max(0, min(n, d.most-d.by[app], allPerDay*d.most-d.all))
	d.by[app] += taken
	d.all += taken
	first = taken < n && !d.over[app]
	d.over[app] = d.over[app] || first
	return taken, first
}
