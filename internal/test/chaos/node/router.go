//go:build unix

package main

import (
	"context"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/chaos/audit"
)

// chooser is a router of a service. It chooses the last of the addresses for a job with an even id
// and the first for others, and writes down what it chose.
type chooser struct{ events *events }

func (c chooser) Route(_ context.Context, jobID int64, addrs []string) ([]string, error) {
	chosen := addrs[:1]
	if jobID%2 == 0 {
		chosen = addrs[len(addrs)-1:]
	}
	appendLine(c.events.chosen, audit.Choice{At: machineClock(), Process: c.events.who, Job: jobID, Address: chosen[0]})
	return chosen, nil
}

// routers are those of a node that has one of this name, or none.
func (e *events) routers(name string) map[string]xxljob.Router {
	if name == "" {
		return nil
	}
	return map[string]xxljob.Router{name: chooser{e}}
}
