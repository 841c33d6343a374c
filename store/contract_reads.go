package store

// What consoles and dashboards ask of a store, beside what the scheduler needs. A store need
// not answer: whoever asks looks whether it does.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// RunReader is what a Store is as well that answers questions about many runs at a cost that
// does not grow with how many there are. Both stores of this module are. Runs have the names
// of their jobs, as those of RunStore.Run, and with WithShortTexts no long texts.
type RunReader interface {
	// SearchRuns returns runs that the search chooses, newest (greatest ID) first. It looks
	// at no more than Examine runs, the newest of its range, and says how far it got: each
	// run that it chooses with an ID from SearchedTo up to Before is among those found.
	// Another search goes on from there, with SearchedTo as Before. Errors are those of
	// RunSearch.Validate.
	SearchRuns(ctx context.Context, q RunSearch) (RunsFound, error)
	// LastRuns returns the newest runs that have ended of each of the jobs, at most n a job:
	// the jobs in the order in which they are given, the runs of each newest first. Runs that
	// were cancelled while they were kept apart (RunStore.AddAhead) are not among them. It is
	// an error to ask for more than MostLastRuns runs in all.
	LastRuns(ctx context.Context, jobs []int64, n int) ([]Run, error)
	// Branches is Tree in part: what belongs to the trigger of a run, in order of ID, at most
	// limit, and how many more there are. It counts at most MostTree in all. ErrNotFound when
	// there is no such run.
	Branches(ctx context.Context, runID int64, limit int) (runs []Run, more int, err error)
	// Children returns the runs that have the run as their ParentID, with their retries, in
	// order of ID, with IDs greater than after, at most limit.
	Children(ctx context.Context, runID, after int64, limit int) ([]Run, error)
	// Waiting returns planned runs in order of Scheduled and ID, behind the Scheduled and the
	// ID of after (the zero value: from the first on), at most limit. Runs that are kept
	// apart (AddAhead) are not among them. Errors are those of after.ValidateAfter.
	Waiting(ctx context.Context, after Run, limit int) ([]Run, error)
	// OpenRuns counts runs that have not ended, by app. It counts at most so many planned ones,
	// and so many others, and says whether there are more.
	OpenRuns(ctx context.Context, most int) (OpenRuns, error)
}

// ClusterReader is what a Store is as well that can be asked for the cluster by somebody who
// is no part of it.
type ClusterReader interface {
	// View returns the nodes and the shards, as Beat does. Alone is false.
	View(ctx context.Context) (View, error)
}

// The bounds of searches.
const (
	examined     = 20_000
	mostExamined = 200_000
	found        = 100
	mostFound    = 1000
	mostChoices  = 1000 // of each list
	mostSought   = MostSought
	mostField    = 512 // bytes of a field
)

// RunSearch chooses runs. Zero fields choose all, and so do empty lists.
type RunSearch struct {
	// Apps, JobIDs, States and Types choose runs with one of these, at most 1,000 each.
	Apps   []string
	JobIDs []int64
	States []State
	Types  []TriggerType
	// Handler, Address and Reason choose by the whole field.
	Handler, Address, Reason string
	// Text is a part of Param, TriggerMsg or HandleMsg, regardless of case, in at most 256
	// bytes.
	Text string
	// NoSecrets leaves out the runs of jobs that are Secret, and of those that are removed, of
	// which that is not known: whether a Text is found in them tells what they hide, and so does
	// how far a search has got. It leaves out runs that have their parameter from another run
	// (ParamSet with a ParentID), whose job may be Secret by now.
	NoSecrets bool
	// Since and Until bound when runs were planned: Since <= Created < Until. They are, like
	// From and To, from 1970 on and before the year 10000. For runs that
	// were inserted far ahead it is the time at which they move that counts, give or take an
	// hour.
	Since, Until time.Time
	// Ahead chooses runs that are kept apart (RunStore.AddAhead), also those of them that
	// were cancelled. Without it none of these is found: they would be among the newest.
	Ahead bool
	// From and To bound Scheduled: From <= Scheduled < To.
	From, To time.Time
	// Slower chooses runs that have ended at least so long after they were started, to the
	// millisecond.
	Slower time.Duration
	// LateBy chooses runs that were started at least so long after they were due, to the
	// millisecond: by their Lateness, whatever has become of them. Of those that have not been
	// started it chooses what waits (StatePlanned) and is that late by now, by the store's
	// clock. What has ended without a start was not late.
	LateBy time.Duration
	// Before is the keyset: runs with a smaller ID only.
	Before int64
	// Examine is how many runs are looked at, at most 200,000; zero means 20,000.
	Examine int
	// Limit is how many are returned, at most 1,000; zero means 100.
	Limit int
}

// RunsFound is what a search has found.
type RunsFound struct {
	// Runs are those that were chosen, newest first.
	Runs []Run
	// SearchedTo is the ID down to which nothing was left out. It is 1 where the whole range
	// was searched, so that nothing is left to be found.
	SearchedTo int64
	// SearchedTime is when the oldest run was planned that was looked at, as its ID says: give
	// or take a moment. It is zero where there was none.
	SearchedTime time.Time
	// Examined is how many runs were looked at, at least.
	Examined int
}

// completeSearch fills in what zero stands for in a search that goes back from an ID.
func completeSearch(examine, limit *int, before *int64) {
	*examine, *limit = cmp.Or(*examine, examined), cmp.Or(*limit, found)
	if *before <= 0 {
		*before = AnyID
	}
}

// Validate returns what is wrong with the search: a FieldError each, joined.
func (q *RunSearch) Validate() error {
	f := Faults{Of: "search for runs"}
	for _, list := range []struct {
		field string
		n     int
	}{{"Apps", len(q.Apps)}, {"JobIDs", len(q.JobIDs)}, {"States", len(q.States)}, {"Types", len(q.Types)}} {
		if list.n > mostChoices {
			f.Add(list.field, list.n, fmt.Errorf("has %d entries, at most %d", list.n, mostChoices))
		}
	}
	f.Text("Text", q.Text, 0, mostSought)
	f.Text("Handler", q.Handler, 0, 255)
	f.Text("Address", q.Address, 0, mostField)
	f.Text("Reason", q.Reason, 0, 255)
	for _, app := range q.Apps {
		f.Text("Apps", app, 1, 64)
	}
	for _, st := range q.States {
		if st > StateSnoozed {
			f.Add("States", int(st), errors.New("is no state"))
		}
	}
	for _, kind := range q.Types {
		f.Text("Types", string(kind), 1, 64)
	}
	f.moment("Since", q.Since)
	f.moment("Until", q.Until)
	f.moment("From", q.From)
	f.moment("To", q.To)
	for _, d := range []struct {
		field string
		least time.Duration
	}{{"Slower", q.Slower}, {"LateBy", q.LateBy}} {
		if d.least < 0 {
			f.Add(d.field, d.least, errors.New("is negative"))
		}
	}
	f.upTo("Examine", q.Examine, mostExamined)
	f.upTo("Limit", q.Limit, mostFound)
	return f.Err()
}

// ValidateAfter, for authors of stores, returns what is wrong with the run as one behind which
// RunReader.Waiting goes on: a FieldError, where its Scheduled is before 1970 or after the year
// 9999.
func (r *Run) ValidateAfter() error {
	f := Faults{Of: "run to go on behind"}
	f.moment("Scheduled", r.Scheduled)
	return f.Err()
}

// Complete, for authors of stores, fills in what zero stands for, and leaves out what no run
// can have: times are as a store keeps them. It reports whether the search can choose any run.
func (q *RunSearch) Complete() bool {
	completeSearch(&q.Examine, &q.Limit, &q.Before)
	return (q.Since.IsZero() || q.Until.IsZero() || q.Since.Before(q.Until)) && (q.From.IsZero() || q.To.IsZero() || q.From.Before(q.To))
}

// What consoles ask of a store about jobs.

// JobReader is what a Store is as well that lists jobs in several orders and counts them. Both
// stores of this module are.
type JobReader interface {
	// SearchJobs returns jobs that the search chooses, in its order. Errors are those of
	// JobSearch.Validate.
	SearchJobs(ctx context.Context, q JobSearch) ([]Job, error)
	// CountJobs counts the jobs of each app, in order of App.
	CountJobs(ctx context.Context) ([]JobCount, error)
	// JobValues returns what jobs have in a field, of that which begins with the prefix,
	// regardless of case: each value once, in order, none that is empty, at most limit. The
	// field is one of FieldApp, FieldHandler, FieldAuthor and FieldTag; any other is an
	// error. Nothing begins with a prefix that CanBeSought says cannot be looked for.
	JobValues(ctx context.Context, field, prefix string, limit int) ([]string, error)
	// Schedules returns the jobs whose schedules are neither stopped nor absent, in order of
	// ID, with IDs greater than after, at most limit. Of each it has ID, App, Key, Name,
	// Schedule, NotBefore, NotAfter, MaxRuns, Runs and Next, and nothing else.
	Schedules(ctx context.Context, after int64, limit int) ([]Job, error)
}

// JobSearch chooses jobs. Zero fields choose all, and so do empty lists.
type JobSearch struct {
	// Apps chooses jobs of one of these apps, at most 1,000.
	Apps []string
	// Tags chooses jobs that have all of these, at most 16.
	Tags []string
	// Handler and Author choose by the whole field, and so does StopReason among stopped jobs.
	Handler, Author, StopReason string
	// Text is a part of Name, Key, Handler or a tag, regardless of case, in at most 256 bytes.
	Text string
	// Stopped chooses by Job.Stopped, where it is not nil.
	Stopped *bool
	// Order is ByID, which is the default, ByName, or ByNext, which leaves
	// out jobs without a Next.
	Order JobOrder
	// After is the keyset: the job behind which to go on, of which its ID and, by the order,
	// its Name or Next count. The zero value is none.
	After Job
	// Limit is how many are returned, at most 1,000; zero means 100.
	Limit int
}

// Validate returns what is wrong with the search: a FieldError each, joined.
func (q *JobSearch) Validate() error {
	f := Faults{Of: "search for jobs"}
	if n := len(q.Apps); n > mostChoices {
		f.Add("Apps", n, coded{"too-long", fmt.Errorf("has %d entries, at most %d", n, mostChoices)})
	}
	if n := len(q.Tags); n > mostTags {
		f.Add("Tags", n, coded{"too-long", fmt.Errorf("has %d entries, at most %d", n, mostTags)})
	}
	for _, app := range q.Apps {
		f.Text("Apps", app, 1, 64)
	}
	for _, tag := range q.Tags {
		f.Text("Tags", tag, 1, mostTag)
	}
	f.Text("Handler", q.Handler, 0, 255)
	f.Text("Author", q.Author, 0, 64)
	f.Text("StopReason", q.StopReason, 0, mostField)
	f.Text("Text", q.Text, 0, mostSought)
	f.Text("After", q.After.Name, 0, 255)
	f.moment("After", q.After.Next)
	f.OneOf("Order", string(q.Order), string(ByID), string(ByName), string(ByNext))
	f.upTo("Limit", q.Limit, mostFound)
	return f.Err()
}

// Complete, for authors of stores, fills in what zero stands for.
func (q *JobSearch) Complete() {
	if q.Limit == 0 {
		q.Limit = found
	}
}
