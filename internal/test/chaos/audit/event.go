package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// The kinds of events.
const (
	EventStart = "start"
	EventEnd   = "end"
)

// The ways in which a handler ends.
const (
	EndOK        = "ok"
	EndCancelled = "cancelled" // its context ended
	EndFailed    = "failed"
	EndLater     = "later"     // failed, and said when to try again
	EndPermanent = "permanent" // failed, and said that it is of no use to try again
	EndPanicked  = "panicked"
	EndSnoozed   = "snoozed"
	EndLate      = "late" // went on after its timeout
	EndExit      = "exit" // ended its process
)

// Event is what a handler writes down when it is called and when it returns: one
// line of JSON in the file of its process, in one write, so that it survives the
// death of the process the moment after.
type Event struct {
	Kind string `json:"kind"`
	// At is the moment, by the machine's clock and not by the process's, which a
	// fault may have stepped.
	At   int64  `json:"at"`
	Node string `json:"node"`
	PID  int    `json:"pid"`
	Run  int64  `json:"run"`
	Job  int64  `json:"job"`
	// Due is the instant that the run stands for.
	Due     int64  `json:"due"`
	Index   int    `json:"index"`
	Total   int    `json:"total"`
	Attempt int    `json:"attempt,omitempty"`
	Param   string `json:"param,omitempty"`
	// How is how the handler ended, and After in how many milliseconds it wants to be
	// called again.
	How   string `json:"how,omitempty"`
	After int64  `json:"after,omitempty"`
}

// Process is a node process: names are used again, process ids are not.
type Process struct {
	Node string
	PID  int
}

// Process returns who wrote the event.
func (e Event) Process() Process { return Process{e.Node, e.PID} }

// ReadEvents reads every event file of a directory.
func ReadEvents(dir string) ([]Event, error) {
	names, err := filepath.Glob(filepath.Join(dir, "events-*.jsonl"))
	if err != nil {
		return nil, err
	}
	var all []Event
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		events, err := parseEvents(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, events...)
	}
	return all, nil
}

// parseEvents reads lines. A last line without its end is the write that a kill
// cut off; any other that cannot be read is an error.
func parseEvents(data []byte) ([]Event, error) {
	var events []Event
	for n := 1; len(data) > 0; n++ {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			break
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		events, data = append(events, e), rest
	}
	return events, nil
}
