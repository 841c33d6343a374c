//go:build unix

package siege

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// The attacks.
const (
	// attackRepeats sends pages that repeat results: of one run, of lost runs, of runs
	// that nobody knows.
	attackRepeats = "repeats"
	// attackFlood sends the largest pages and hangs up.
	attackFlood = "flood"
	// attackRegistrations registers ever new addresses, and hangs up on half of them.
	attackRegistrations = "registrations"
	// attackDribble keeps requests open whose bodies come a byte at a time.
	attackDribble = "dribble"
	// Those below are of the console: forms that come slowly, pages with much in them, searches,
	// wrong passwords, wrong tokens.
	attackForms    = "console-forms"
	attackPages    = "console-pages"
	attackSearches = "console-searches"
	attackLogins   = "console-logins"
	attackTokens   = "tokens"
)

// Attacks returns the names of all attacks.
func Attacks() []string {
	return []string{attackRepeats, attackFlood, attackRegistrations, attackDribble, attackForms, attackPages, attackSearches, attackLogins, attackTokens}
}

// Rates are the sizes of the attacks. Rates are of all connections of an attack together,
// a second.
type Rates struct {
	Repeats       int     `json:"repeats"` // connections
	RepeatsRate   float64 `json:"repeatsRate"`
	Flood         int     `json:"flood"` // connections
	FloodRate     float64 `json:"floodRate"`
	Registrations float64 `json:"registrations"`
	Dribbles      int     `json:"dribbles"` // connections
	// DribbleEvery is the time between two bytes.
	DribbleEvery time.Duration `json:"dribbleEvery"`
	// ConsoleForms are connections with slow forms; the others are rates.
	ConsoleForms    int     `json:"consoleForms"`
	ConsolePages    float64 `json:"consolePages"`
	ConsoleSearches float64 `json:"consoleSearches"`
	ConsoleLogins   float64 `json:"consoleLogins"`
	ConsoleTokens   float64 `json:"consoleTokens"`
}

// Config says what to do. Zero fields have defaults.
type Config struct {
	// For is how long the siege lasts. Zero means 20 minutes.
	For time.Duration
	// Seed decides all choices. Zero means one from the clock; it is printed.
	Seed uint64
	// Attacks are names of attacks; nil means all. Empty means none, which shows what
	// the honest app sees on this machine by itself.
	Attacks []string
	Rates   Rates
	// Executors are the addresses of the honest app, each with a heartbeat every Beat,
	// and Runs how many runs of it are due each second. Zero means 50, 1 s and 50.
	Executors, Runs int
	Beat            time.Duration
	// StoreStall hangs the store for 3 s once a minute.
	StoreStall bool
	// HeapBound is by how much the live heap must not exceed what it was before the siege, in bytes.
	// Zero means 64 MiB.
	HeapBound int64
	// Profiles is a directory that has profiles of the scheduler's heap afterwards: one for each time
	// that more of it was live than ever before. Empty means none.
	Profiles string
	// Row is how much time each printed line sums up. Zero means a minute.
	Row time.Duration
	// Log receives what the processes log. Nil means nowhere.
	Log io.Writer
	// Out receives the report. Required.
	Out io.Writer
}

func (c Config) withDefaults() (Config, error) {
	c.For = cmp.Or(c.For, 20*time.Minute)
	c.Seed = cmp.Or(c.Seed, uint64(time.Now().UnixNano())%1_000_000)
	c.Executors, c.Runs = cmp.Or(c.Executors, 50), cmp.Or(c.Runs, 50)
	c.Beat, c.Row = cmp.Or(c.Beat, time.Second), cmp.Or(c.Row, time.Minute)
	c.HeapBound = cmp.Or(c.HeapBound, 64<<20)
	if c.Log == nil {
		c.Log = io.Discard
	}
	if c.Attacks == nil {
		c.Attacks = Attacks()
	}
	for _, a := range c.Attacks {
		if !slices.Contains(Attacks(), a) {
			return c, fmt.Errorf("siege: there is no attack %q, but %s", a, strings.Join(Attacks(), ", "))
		}
	}
	if c.For < 8*time.Second || c.Executors < 1 || c.Runs < 1 || c.Beat < 10*time.Millisecond || c.Row < time.Second {
		return c, errors.New("siege: it lasts at least 8s, with at least one executor and one run a second, a beat of 10ms and a row of 1s")
	}
	r := &c.Rates
	r.Repeats, r.RepeatsRate = cmp.Or(r.Repeats, 3), cmp.Or(r.RepeatsRate, 6)
	r.Flood, r.FloodRate = cmp.Or(r.Flood, 8), cmp.Or(r.FloodRate, 3.2)
	r.Registrations = cmp.Or(r.Registrations, 50)
	r.Dribbles, r.DribbleEvery = cmp.Or(r.Dribbles, 400), cmp.Or(r.DribbleEvery, 3*time.Second)
	r.ConsoleForms, r.ConsolePages, r.ConsoleSearches = cmp.Or(r.ConsoleForms, 150), cmp.Or(r.ConsolePages, 4), cmp.Or(r.ConsoleSearches, 2)
	r.ConsoleLogins, r.ConsoleTokens = cmp.Or(r.ConsoleLogins, 4), cmp.Or(r.ConsoleTokens, 100)
	if r.ConsoleForms < 0 || r.ConsolePages < 0 || r.ConsoleSearches < 0 || r.ConsoleLogins < 0 || r.ConsoleTokens < 0 {
		return c, errors.New("siege: rates and connections must not be negative")
	}
	if r.Repeats < 0 || r.RepeatsRate < 0 || r.Flood < 0 || r.FloodRate < 0 || r.Registrations < 0 || r.Dribbles < 0 || r.DribbleEvery < 100*time.Millisecond {
		return c, errors.New("siege: rates and connections must not be negative, and bytes dribble at most every 100ms")
	}
	return c, nil
}

// The apps, and what they are called with.
const (
	honestApp  = "honest"
	hostileApp = "hostile"
)

// tokens are the apps' own. Whoever has one may speak for that app only.
type tokens struct {
	Honest  string `json:"honest"`
	Hostile string `json:"hostile"`
}
