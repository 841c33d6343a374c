package console

// The record of changes.

import (
	"net/http"
	"slices"

	"github.com/xxljob/xxljob"
)

const changesOnAPage = 50

// changesPage is the list of entries.
type changesPage struct {
	Changes []xxljob.Change
	Chips   []chip
	Filter  changeFilter
	Older   string
	First   string
	Partial bool
}

// changeFilter is which entries are wanted, as the address of the page says.
type changeFilter struct{ Actor, App, Verb, Object, ID string }

func (q *request) changes() error {
	if q.record == nil {
		return notOffered("xxljob.ChangeRecord")
	}
	f := changeFilter{Actor: q.query("actor"), App: q.query("app"), Verb: q.query("verb"), Object: q.query("object"), ID: q.query("id")}
	apps, all, err := q.visibleApps()
	if err != nil {
		return err
	}
	p := changesPage{Filter: f, Chips: q.chips("changes", []string{"actor", "app", "verb", "object", "id"})}
	search := xxljob.ChangeSearch{Actor: f.Actor, Verb: f.Verb, Object: f.Object, ObjectID: f.ID, Apps: apps, Limit: changesOnAPage}
	if f.App != "" {
		search.Apps = []string{f.App}
	}
	if err := q.cursor("before", "id", &search.Before); err != nil {
		return err
	}
	if q.user.Admin {
		search.Apps = nil // also what belongs to no app
		if f.App != "" {
			search.Apps = []string{f.App}
		}
	} else if search.Apps, err = q.ownApps(apps, all, f.App); err != nil || len(search.Apps) == 0 {
		if err != nil {
			return err
		}
		return q.show("changes", http.StatusOK, p)
	}
	found, err := q.record.SearchChanges(q.ctx, search)
	if err != nil {
		return asked(err)
	}
	p.Changes = found.Changes
	if q.query("before") != "" {
		p.First = q.with(map[string]string{"before": ""})
	}
	if found.SearchedTo > 1 {
		p.Partial = len(found.Changes) < changesOnAPage
		p.Older = q.with(map[string]string{"before": cursorOf("id", found.SearchedTo)})
	}
	return q.show("changes", http.StatusOK, p)
}

// ownApps are the apps of a search by who is no admin: what belongs to no app, as logins do, is
// not for them.
func (q *request) ownApps(apps []string, all bool, one string) ([]string, error) {
	if all {
		var err error
		if apps, err = q.appNames(); err != nil {
			return nil, err
		}
	}
	if one == "" {
		return apps, nil
	}
	if slices.Contains(apps, one) {
		return []string{one}, nil
	}
	return nil, nil
}
