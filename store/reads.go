package store

import (
	"math"
	"strings"
	"unicode/utf8"
)

// AnyID is greater than each ID.
const AnyID int64 = math.MaxInt64

// MostLastRuns is how many runs RunReader.LastRuns returns at most.
const MostLastRuns = 10_000

// MostSought is how many bytes a text may have that is looked for.
const MostSought = 256

// CanBeSought reports whether a text can be looked for: it is UTF-8 without NUL, of at most
// MostSought bytes.
func CanBeSought(text string) bool {
	return len(text) <= MostSought && utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}

// CanBeStored reports whether stores can hold each text: it is UTF-8 without NUL. Nothing has a
// key or name that is not.
func CanBeStored(texts ...string) bool {
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return false
		}
	}
	return true
}

// OpenRuns counts runs that have not ended, by app.
type OpenRuns struct {
	// Planned are those that wait to be started, Running those that are started or dispatched.
	Planned, Running map[string]int
	// MorePlanned and MoreRunning say that there are more than were counted.
	MorePlanned, MoreRunning bool
}

// Stop, for authors of stores, stops the counts at so many of a kind. Where there are more, one
// more has to be counted, so that it is known: that one is left out, of the app that has most.
func (o *OpenRuns) Stop(most int) {
	o.MorePlanned, o.MoreRunning = stop(o.Planned, most), stop(o.Running, most)
}

func stop(counts map[string]int, most int) (more bool) {
	left := sum(counts) - most
	if left <= 0 {
		return false
	}
	largest := ""
	for app, n := range counts {
		if n > counts[largest] || n == counts[largest] && app < largest {
			largest = app
		}
	}
	if counts[largest] -= left; counts[largest] <= 0 {
		delete(counts, largest)
	}
	return true
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// JobOrder is an order of jobs.
type JobOrder string

// The orders of xxljob.JobSearch. Names are compared as Go compares strings, and jobs with
// the same name, or the same Next, by ID.
const (
	ByID   JobOrder = ""
	ByName JobOrder = "name"
	ByNext JobOrder = "next"
)

// The fields of JobReader.JobValues.
const (
	FieldApp     = "app"
	FieldHandler = "handler"
	FieldAuthor  = "author"
	FieldTag     = "tag"
)

// JobCount counts the jobs of an app: those with a schedule that is not stopped, those that are
// stopped, and those that are neither, for they have no schedule.
type JobCount struct {
	App                      string
	Enabled, Stopped, Manual int
}
