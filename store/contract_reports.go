package store

// What consoles and dashboards ask of a store about how runs end over time.

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ReportReader is what a Store is as well that counts how runs end. Both stores of this module
// are. Each end counts in the transaction that stores it, once, whichever way the run ends; so
// the reports are equal to a count of the runs that have ended since the store counts, as long
// as these are kept. What was counted stays when runs are dropped. In Postgres, runs count that
// end after the migration which made the reports (16), at nodes of a version that knows them:
// while nodes are updated one by one, what others end is missing.
type ReportReader interface {
	// Reports returns reports that the query chooses, in order of From and App, none that
	// counts nothing. Errors are those of ReportQuery.Validate.
	Reports(ctx context.Context, q ReportQuery) (ReportsFound, error)
}

// ReportQuery chooses reports. Zero fields choose all, and so does an empty list.
type ReportQuery struct {
	// Apps are at most 1,000.
	Apps []string
	// From and To bound the instants of the runs: From <= instant < To. Both are needed, and
	// are on a quarter of an hour of UTC. Of reports of a day (see QuartersKept) those
	// are returned whose day begins within them.
	From, To time.Time
	// Length is how much each report spans, counted from From on: a multiple of
	// Quarter; zero means that. A report of a day counts in the span that it begins in;
	// where it does not fit, its own Length is longer.
	Length time.Duration
	// Together adds up the apps.
	Together bool
	// Examine is how many counts of a quarter of an hour and an app are read at most. It is at
	// most 200,000 itself; zero means 20,000.
	Examine int
}

// ReportsFound is what a query has found.
type ReportsFound struct {
	Reports []Report
	// Until is how far the reports go: all of the query's before it are there, and complete.
	// It is the query's To, or where another query goes on, with Until as From; it is then a
	// multiple of Length behind From. Of several apps a store may stop before it has read as
	// many counts as it may.
	Until time.Time
}

// Validate returns what is wrong with the query: a FieldError each, joined.
func (q *ReportQuery) Validate() error {
	f := Faults{Of: "query for reports"}
	if n := len(q.Apps); n > mostChoices {
		f.Add("Apps", n, fmt.Errorf("has %d entries, at most %d", n, mostChoices))
	}
	for _, app := range q.Apps {
		f.Text("Apps", app, 1, 64)
	}
	for _, at := range []struct {
		field string
		time.Time
	}{{"From", q.From}, {"To", q.To}} {
		switch {
		case at.IsZero():
			f.Add(at.field, at.Time, errors.New("is missing"))
		case at.UTC().Year() < 1970 || at.UTC().Year() > 9999:
			f.moment(at.field, at.Time)
		case !QuarterOf(at.Time).Equal(at.Time):
			f.Add(at.field, at.Time, errors.New("is not on a quarter of an hour"))
		}
	}
	if !q.From.IsZero() && !q.To.IsZero() && q.From.After(q.To) {
		f.Add("To", q.To, errors.New("is before From"))
	}
	if q.Length < 0 || q.Length%Quarter != 0 {
		f.Add("Length", q.Length, fmt.Errorf("is no multiple of %v", Quarter))
	}
	f.upTo("Examine", q.Examine, mostExamined)
	return f.Err()
}

// Complete, for authors of stores, fills in what zero stands for.
func (q *ReportQuery) Complete() {
	if q.Length == 0 {
		q.Length = Quarter
	}
	if q.Examine == 0 {
		q.Examine = examined
	}
}

// Cut, for authors of stores, returns the end of the reports of a query, of which the row at the
// given time, behind From, cannot be read any more: the last multiple of Length before it. It
// is an error, a FieldError, if there is none.
func (q *ReportQuery) Cut(next time.Time) (time.Time, error) {
	whole := next.Sub(q.From) / q.Length
	if whole == 0 {
		f := Faults{Of: "query for reports"}
		f.Add("Length", q.Length, fmt.Errorf("one report of it adds up more than %d counts: want a shorter one, fewer apps, or a greater Examine", q.Examine))
		return time.Time{}, f.Err()
	}
	return q.From.UTC().Add(whole * q.Length), nil
}

// CountEnd, for authors of stores, counts the end of the run in the report that count returns for
// its app and the time at which its trigger was due (Run.Due), for instance Tally.Count. A run that has not ended counts
// nowhere.
func (r *Run) CountEnd(count func(app string, instant time.Time) *Report) {
	if !r.State.Ended() || int(r.State) >= States {
		return // what is no state is some other program's
	}
	report := count(r.App, r.Due())
	report.Ended[r.State]++
	switch r.State {
	case StateSucceeded, StateFailed, StateTimedOut, StateKilled, StateLost, StateSnoozed:
		if !r.Started.IsZero() {
			report.Lateness.Observe(r.Lateness())
			report.Duration.Observe(r.Ended.Sub(r.Started))
		}
	}
}
