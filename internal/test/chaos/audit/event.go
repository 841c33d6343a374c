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

// Said is what a node says of itself, from a moment on: one line of JSON each time that it has
// changed. Unready is empty while it is ready.
type Said struct {
	At int64 `json:"at"`
	Process
	Unready  string   `json:"unready,omitempty"`
	Troubles []string `json:"troubles,omitempty"`
}

// Process is a node process: names are used again, process ids are not.
type Process struct {
	Node string
	PID  int
}

// Process returns who wrote the event.
func (e Event) Process() Process { return Process{e.Node, e.PID} }

// ReadEvents reads every event file of a directory.
func ReadEvents(dir string) ([]Event, error) { return readLines[Event](dir, "events-*.jsonl") }

// ReadSaid reads what the nodes have said of themselves.
func ReadSaid(dir string) ([]Said, error) { return readLines[Said](dir, "said-*.jsonl") }

// readLines reads every file of a directory that has such a name.
func readLines[T any](dir, pattern string) ([]T, error) {
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil, err
	}
	var all []T
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		some, err := parseLines[T](data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, some...)
	}
	return all, nil
}

// parseLines reads lines. A last line without its end is the write that a kill
// cut off; any other that cannot be read is an error.
func parseLines[T any](data []byte) ([]T, error) {
	var all []T
	for n := 1; len(data) > 0; n++ {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			break
		}
		var one T
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		all, data = append(all, one), rest
	}
	return all, nil
}
