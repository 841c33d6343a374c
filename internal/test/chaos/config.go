//go:build unix

package chaos

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Config says what to do. The zero value is a whole run of all faults.
type Config struct {
	// Seed makes the choices of victims, moments and operations. Zero means one
	// from the clock; it is printed in any case.
	Seed uint64
	// Faults are names of the catalogue. Empty means all of them.
	Faults []string
	// Mixed is how long faults are mixed at random after each was alone. Zero
	// means 90 s.
	Mixed time.Duration
	// Short is about two minutes of kills, pauses and restarts, which no clock is held against.
	Short bool
	// Brief is the form of make test: Short with less of each.
	Brief bool
	// Nodes is how many node processes a cluster has. Zero means 3.
	Nodes int
	// Lanes is how many clusters, each with a database of its own, are hit at the
	// same time. Zero means one more than there are cores, 4 at most: who has more to do
	// than the machine can is late without any fault.
	Lanes int
	// Memory runs a single node over a store in memory: for the development of
	// this package.
	Memory bool
	// Keep keeps the directory of evidence also when nothing is wrong.
	Keep bool
	// Out receives the report. Required.
	Out io.Writer

	program string // the node program, where it is built already
}

func (c Config) withDefaults() Config {
	if c.Seed == 0 {
		c.Seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	if c.Nodes == 0 {
		c.Nodes = 3
	}
	if c.Lanes == 0 {
		c.Lanes = min(runtime.NumCPU()+1, 4)
	}
	if c.Mixed == 0 {
		c.Mixed = 90 * time.Second
	}
	return c
}

// choose returns the faults that are asked for.
func (c Config) choose() ([]fault, error) {
	switch {
	case c.Memory:
		return memoryFaults(), nil
	case c.Brief:
		return briefFaults(), nil
	case c.Short && len(c.Faults) == 0:
		return shortFaults(), nil
	case len(c.Faults) == 0:
		return catalogue(c), nil
	}
	all := append(catalogue(c), shortFaults()...)
	var chosen []fault
	for _, name := range c.Faults {
		i := slices.IndexFunc(all, func(f fault) bool { return f.name == name })
		if i < 0 {
			var names []string
			for _, f := range all {
				names = append(names, f.name)
			}
			return nil, fmt.Errorf("chaos: there is no fault %q, but %s", name, strings.Join(names, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// Names returns the names of all faults.
func Names() []string {
	var names []string
	for _, f := range append(catalogue(Config{}.withDefaults()), shortFaults()...) {
		names = append(names, f.name)
	}
	return names
}
