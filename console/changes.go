package console

// The record of changes.

import (
	"net/http"
	"slices"
	"strings"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
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
	Pages   web.Pager
	GoOn    string // where a search goes on that has stopped early
	Partial bool
	Names   map[int64]string // of the jobs that the entries are about
}

// changeFilter is which entries are wanted, as the address of the page says.
type changeFilter struct{ Actor, App, Verb, Object, ID, Since, Until string }

// changeFilters are the names of the filters in the address.
var changeFilters = []string{"actor", "app", "verb", "object", "id", "since", "until"}

func (q *request) changes() error {
	if q.record == nil {
		return notOffered("xxljob.ChangeRecord")
	}
	if err := q.ValidQuery(changeFilters); err != nil {
		return err
	}
	if q.Query("form") != "" {
		return q.tidyFilter("changes", changeFilters)
	}
	f := changeFilter{Actor: q.Query("actor"), App: q.Query("app"), Verb: q.Query("verb"), Object: q.Query("object"), ID: q.Query("id"), Since: q.Query("since"), Until: q.Query("until")}
	if f.ID != "" && f.Object == "" {
		f.Object = store.ObjectJob // an ID alone is a job's
	}
	search, err := q.changeSearch(f)
	if err != nil {
		return err
	}
	p := changesPage{Filter: f}
	if p.Chips, err = q.filterChips("changes", changeFilters); err != nil {
		return err
	}
	q.offerChoices(&p)
	known, sees, err := q.changeApps(f.App, &search)
	if err != nil {
		return err
	}
	p.Apps = known
	place := ""
	if sees {
		var next int64
		if p.Changes, next, err = q.searchChanges(search); err != nil {
			return asked(err)
		}
		found, err := q.jobsOfChanges(p.Changes)
		if err != nil {
			return err
		}
		q.learnSecrets(p.Changes, found)
		p.Names = q.namesOf(found)
		if next > 1 {
			p.Partial, place = len(p.Changes) < changesOnAPage, web.CursorOf("id", next)
		}
	}
	p.Pages = q.Pager("before", place)
	p.GoOn = p.Pages.GoOn(p.Partial)
	return q.show("changes", http.StatusOK, p)
}

// jobsOfChanges are the jobs that entries are about, as far as these are there, without their texts.
func (q *request) jobsOfChanges(list []xxljob.Change) (map[int64]xxljob.Job, error) {
	var ids []int64
	for i := range list {
		if id := list[i].JobID; id != 0 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return q.briefly().jobsByID(ids)
}

// namesOf are the names of those of the jobs that the user sees.
func (q *request) namesOf(found map[int64]xxljob.Job) map[int64]string {
	names := map[int64]string{}
	for id, j := range found {
		if allowed(q.user, see, j.App) {
			names[id] = j.Name
		}
	}
	return names
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
	return s, q.Cursor("before", "id", &s.Before)
}

// changeApps sets the apps of a search: the one that is asked for, or those that the user sees.
// For who sees all apps, or all but some, there are none: entries are also of apps that are not
// there any more, which nobody can list. sees is false where the user sees nothing.
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
	case one != "" && allowed(q.user, see, one):
		s.Apps = []string{one}
	case one != "":
		return known, false, nil
	case !q.user.Admin && ranks[q.user.Apps["*"]] < see:
		s.Apps = known
		return known, len(known) > 0, nil
	}
	return known, true, nil
}

// siftReads is how often the record is searched for a page of which something is left out.
const siftReads = 5

// searchChanges is a page of a search, without what the user does not see: entries of no app are
// for admins. Logins are there where they are asked for, or what somebody has done. next is where it
// goes on, 1 for nowhere.
func (q *request) searchChanges(s xxljob.ChangeSearch) (list []xxljob.Change, next int64, err error) {
	logins := s.Object != "" || s.Verb != "" || s.Actor != ""
	for range siftReads {
		found, err := q.record.SearchChanges(q.ctx, s)
		if err != nil {
			return nil, 0, err
		}
		for _, c := range found.Changes {
			if len(list) == changesOnAPage {
				return list, list[changesOnAPage-1].ID, nil
			}
			if c.Object == store.ObjectLogin && !logins {
				continue
			}
			if q.user.Admin || c.App != "" && allowed(q.user, see, c.App) {
				list = append(list, c)
			}
		}
		if s.Before, next = found.SearchedTo, found.SearchedTo; next <= 1 || len(list) == changesOnAPage || len(found.Changes) < s.Limit {
			return list, next, nil
		}
	}
	return list, next, nil
}

// offerChoices fills in what there is to choose from.
func (q *request) offerChoices(p *changesPage) {
	for _, key := range q.look.Language.Keys() {
		if verb, is := strings.CutPrefix(key, "verb."); is {
			p.Verbs = append(p.Verbs, verb)
		}
		if object, is := strings.CutPrefix(key, "object."); is {
			p.Objects = append(p.Objects, object)
		}
	}
}
