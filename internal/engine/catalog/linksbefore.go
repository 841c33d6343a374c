package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Links that were made before what a caller may lead to was checked, or by who has lost the right
// since. Input: the definitions that hand something on (ChildParam), and who has written them last.
// Output: one line of the log that names those of which it is not known that their editor might. They go on as
// they are: whoever relies on one looks at it, and has somebody with the rights save it.

const (
	// linksFirst is when they are looked for, once, behind a start: by the node of the first shard.
	linksFirst = time.Minute
	linksDone  = 24 * time.Hour
	// linksAtOnce is how many definitions are looked at before a pause, and linksSaid how many are named.
	linksAtOnce = 1000
	linksPause  = 10 * time.Second
	linksSaid   = 20
)

// linkSearch is how far they were looked for.
type linkSearch struct {
	rest  []store.Job // the definitions that are left
	found int
	some  []string // the first of those that were found
}

// LinksDuty looks for them. accounts are nil where the store keeps no users.
func (d *Catalog) LinksDuty(accounts store.AccountStore) loop.Duty {
	var s *linkSearch // nil before it has begun
	done, backoff := false, loop.Backoff{Log: d.Logger, What: "looking for links of jobs that nobody might make"}
	return loop.Duty{Aside: true, After: linksFirst, Once: func(ctx context.Context) (time.Duration, error) {
		if done {
			return linksDone, nil
		}
		if _, mine := d.Leases.Epoch(0); !mine {
			s = nil // another node looks at all of them, unless this one comes to have the first shard
			return linksFirst, nil
		}
		if s == nil {
			links, err := d.handing(ctx)
			if backoff.Failed(ctx, err) {
				return linksFirst, nil
			}
			s = &linkSearch{rest: links}
		}
		n := min(len(s.rest), linksAtOnce)
		list, err := d.doubtfulLinks(ctx, accounts, s.rest[:n])
		if backoff.Failed(ctx, err) {
			return linksFirst, nil
		}
		s.rest, s.found = s.rest[n:], s.found+len(list)
		s.some = append(s.some, list[:min(len(list), linksSaid-len(s.some))]...)
		if len(s.rest) > 0 {
			return linksPause, nil
		}
		if s.found > 0 {
			d.Logger.Warn("xxljob: some jobs hand a parameter or a result on to a script or to another app, and it is not known that whoever saved them last might do so; they go on: look at them, and have somebody save them who may write scripts and run the jobs of both apps",
				"links", s.found, "some", s.some)
		}
		done, s = true, nil
		return linksDone, nil
	}}
}

// handing are the definitions that hand something on.
func (d *Catalog) handing(ctx context.Context) ([]store.Job, error) {
	links, err := d.Store.Links(ctx)
	return slices.DeleteFunc(links, func(j store.Job) bool {
		return j.ChildParam == "" || len(j.Children)+len(j.ChildKeys) == 0
	}), err
}

// doubtfulLinks are those among the links of these definitions whose last editor had, or has by now, no
// right to them, as far as is known.
func (d *Catalog) doubtfulLinks(ctx context.Context, accounts store.AccountStore, of []store.Job) (list []string, err error) {
	for i := range of {
		p := &of[i]
		var need []store.Job // children to which not everybody may lead who may edit the parent
		err := d.eachNamed(ctx, p.Children, p.ChildKeys, func(child *store.Job) {
			if child.App != p.App || child.IsScript() {
				need = append(need, store.Job{ID: child.ID, App: child.App, Key: child.Key, GlueType: child.GlueType})
			}
		})
		if err != nil {
			return nil, err
		}
		if len(need) == 0 {
			continue
		}
		by, err := d.lastEditor(ctx, p.ID)
		if err != nil {
			return nil, err
		}
		if by == "" || by == store.Scheduler {
			continue // the host
		}
		rights := store.Grants{}
		if u, err := userOf(ctx, accounts, by); err != nil {
			return nil, err
		} else if u != nil {
			rights = u.Grants
		}
		for i := range need {
			if c := &need[i]; !mayLeadBy(rights, p, c) {
				list = append(list, fmt.Sprintf("%s to %s by %s", refOf(p), refOf(c), by))
			}
		}
	}
	return list, nil
}

// lastEditor is who has written the job's definition last; "" for the host, and where the record does
// not say it any more.
func (d *Catalog) lastEditor(ctx context.Context, id int64) (string, error) {
	changes, err := d.Store.Changes(ctx, id, 100)
	for i := range changes {
		if c := &changes[i]; c.Verb == "update" || c.Verb == "add" || c.Verb == "ensure" {
			return c.Actor, err
		}
	}
	return "", err
}

// userOf is the user of the name, nil where there is none, or it is a program's.
func userOf(ctx context.Context, accounts store.AccountStore, name string) (*store.User, error) {
	if accounts == nil || strings.HasPrefix(name, "app:") {
		return nil, nil
	}
	if at := strings.LastIndex(name, " of "); at > 0 && strings.HasPrefix(name, "token ") {
		name = name[at+len(" of "):] // the console says so whose token was shown
	}
	u, err := accounts.User(ctx, name)
	if errs.IsNotFound(err) {
		return nil, nil
	}
	return &u, err
}

// mayLeadBy reports whether somebody with these rights may have a job lead to another.
func mayLeadBy(g store.Grants, parent, child *store.Job) bool {
	role := func(app string) string {
		if r, named := g.Apps[app]; named {
			return r
		}
		return g.Apps["*"]
	}
	runs := role(child.App) == "operator" || role(child.App) == "editor"
	return g.Admin || role(parent.App) == "editor" && runs && (g.Scripts || !child.IsScript())
}
