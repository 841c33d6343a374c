package console

// The record of changes.

import (
	"net/http"
	"slices"
	"strings"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

const changesOnAPage = 50

// changesPage is the list of entries.
type changesPage struct {
	Changes []xxljob.Change
	Objects []string // kinds to choose from
	Verbs   []string
	Apps    []string
	Chips   []chip
	Filter  changeFilter
	Older   string
	First   string
	Partial bool
}

// changeFilter is which entries are wanted, as the address of the page says.
type changeFilter struct{ Actor, App, Verb, Object, ID, Since, Until string }

// changeFilters are the names of the filters in the address.
var changeFilters = []string{"actor", "app", "verb", "object", "id", "since", "until"}

func (q *request) changes() error {
	if q.record == nil {
		return notOffered("xxljob.ChangeRecord")
	}
	if q.query("form") != "" {
		return q.tidyFilter("changes", changeFilters)
	}
	f := changeFilter{Actor: q.query("actor"), App: q.query("app"), Verb: q.query("verb"), Object: q.query("object"), ID: q.query("id"), Since: q.query("since"), Until: q.query("until")}
	if f.ID != "" && f.Object == "" {
		f.Object = store.ObjectJob // an ID alone is a job's
	}
	search, err := q.changeSearch(f)
	if err != nil {
		return err
	}
	p := changesPage{Filter: f, Chips: q.filterChips("changes", changeFilters)}
	q.offerChoices(&p)
	known, sees, err := q.changeApps(f.App, &search)
	if err != nil {
		return err
	}
	p.Apps = known
	if q.query("before") != "" {
		p.First = q.with(map[string]string{"before": ""})
	}
	if sees {
		found, err := q.record.SearchChanges(q.ctx, search)
		if err != nil {
			return asked(err)
		}
		if p.Changes = found.Changes; found.SearchedTo > 1 {
			p.Partial = len(found.Changes) < changesOnAPage
			p.Older = q.with(map[string]string{"before": cursorOf("id", found.SearchedTo)})
		}
	}
	return q.show("changes", http.StatusOK, p)
}

// changeSearch is the filter as the store takes it, but for the apps.
func (q *request) changeSearch(f changeFilter) (s xxljob.ChangeSearch, err error) {
	s = xxljob.ChangeSearch{Actor: f.Actor, Verb: f.Verb, Object: f.Object, ObjectID: f.ID, Limit: changesOnAPage}
	if s.Since, err = momentOf(f.Since); err != nil {
		return s, err
	}
	if s.Until, err = momentOf(f.Until); err != nil {
		return s, err
	}
	return s, q.cursor("before", "id", &s.Before)
}

// changeApps sets the apps of a search: for an admin the one that is asked for, or none, which is
// all entries, also of no app; for others those that they see. sees is false where that is
// nothing.
func (q *request) changeApps(one string, s *xxljob.ChangeSearch) (known []string, sees bool, err error) {
	apps, all, err := q.visibleApps()
	if err != nil {
		return nil, false, err
	}
	if known = apps; all {
		if known, err = q.appNames(); err != nil {
			return nil, false, err
		}
	}
	switch {
	case q.user.Admin && one == "":
		return known, true, nil
	case one == "":
		s.Apps = known
	case q.user.Admin || slices.Contains(known, one):
		s.Apps = []string{one}
	}
	return known, len(s.Apps) > 0, nil
}

// offerChoices fills in what there is to choose from.
func (q *request) offerChoices(p *changesPage) {
	for _, key := range q.look.language.Keys() {
		if verb, is := strings.CutPrefix(key, "verb."); is {
			p.Verbs = append(p.Verbs, verb)
		}
		if object, is := strings.CutPrefix(key, "object."); is {
			p.Objects = append(p.Objects, object)
		}
	}
}
