package xxljob

// What consoles ask of a store about jobs. See storereads.go.

import (
	"context"
	"fmt"

	"github.com/xxljob/xxljob/store"
)

// JobReader is what a Store is as well that lists jobs in several orders and counts them. Both
// stores of this module are.
type JobReader interface {
	// SearchJobs returns jobs that the search chooses, in its order. Errors are those of
	// JobSearch.Validate.
	SearchJobs(ctx context.Context, q JobSearch) ([]Job, error)
	// CountJobs counts the jobs of each app, in order of App.
	CountJobs(ctx context.Context) ([]store.JobCount, error)
	// JobValues returns what jobs have in a field, of that which begins with the prefix,
	// regardless of case: each value once, in order, none that is empty, at most limit. The
	// field is one of store.FieldApp, FieldHandler, FieldAuthor and FieldTag; any other is an
	// error. Nothing begins with a prefix that store.CanBeSought says cannot be looked for.
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
	// Order is store.ByID, which is the default, store.ByName, or store.ByNext, which leaves
	// out jobs without a Next.
	Order store.JobOrder
	// After is the keyset: the job behind which to go on, of which its ID and, by the order,
	// its Name or Next count. The zero value is none.
	After Job
	// Limit is how many are returned, at most 1,000; zero means 100.
	Limit int
}

// Validate returns what is wrong with the search: a FieldError each, joined.
func (q *JobSearch) Validate() error {
	f := faults{what: "search for jobs"}
	if n := len(q.Apps); n > mostChoices {
		f.add("Apps", n, coded{"too-long", fmt.Errorf("has %d entries, at most %d", n, mostChoices)})
	}
	if n := len(q.Tags); n > mostTags {
		f.add("Tags", n, coded{"too-long", fmt.Errorf("has %d entries, at most %d", n, mostTags)})
	}
	for _, app := range q.Apps {
		f.text("Apps", app, 1, 64)
	}
	for _, tag := range q.Tags {
		f.text("Tags", tag, 1, mostTag)
	}
	f.text("Handler", q.Handler, 0, 255)
	f.text("Author", q.Author, 0, 64)
	f.text("StopReason", q.StopReason, 0, mostField)
	f.text("Text", q.Text, 0, mostSought)
	f.text("After", q.After.Name, 0, 255)
	f.moment("After", q.After.Next)
	f.oneOf("Order", string(q.Order), string(store.ByID), string(store.ByName), string(store.ByNext))
	f.upTo("Limit", q.Limit, mostFound)
	return f.err()
}

// Complete, for authors of stores, fills in what zero stands for.
func (q *JobSearch) Complete() {
	if q.Limit == 0 {
		q.Limit = found
	}
}
