package console

// The page that says how all is set, for who operates it. Nothing is changed there.

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/lang"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/internal/release"
)

// settingsPage has groups of facts.
type settingsPage struct{ Groups []factGroup }

// factGroup is what belongs together. Name is a part of keys of texts, and so are those of its facts.
type factGroup struct {
	Name  string
	Facts []stated
}

// stated is a name and what there is to say; several lines for a list.
type stated struct {
	Name  string
	Lines []string
}

// settingGroups are which facts of the scheduler stand together. Those of apps and jobs that not everybody
// sees are for admins.
func settingGroups(admin bool) []struct {
	name  string
	facts []string
} {
	list := []struct {
		name  string
		facts []string
	}{
		{"what", []string{"node", "app"}},
		{"times", []string{"zone", "catchup", "misfire", "overdue", "stopgrace", "calltimeout"}},
		{"kept", []string{"runretention", "changeretention", "loginstore", "logrun", "logjob"}},
		{"cluster", []string{"shards", "lease", "lostafter", "dead", "pruneafter"}},
		{"limits", []string{"maxheld", "maxplanned", "registrations"}},
	}
	if admin {
		list = append(list, struct {
			name  string
			facts []string
		}{"doors", []string{"rules", "jobsapi", "insecure", "routers"}})
	}
	return list
}

func (q *request) settings() error {
	said := q.factsOf()
	var p settingsPage
	for _, g := range settingGroups(q.user.Admin) {
		group := factGroup{Name: g.name}
		if g.name == "what" {
			group.Facts = q.ownFacts()
		}
		for _, name := range g.facts {
			if value, known := said[name]; known {
				group.Facts = append(group.Facts, stated{name, q.factLines(name, value)})
			}
		}
		if len(group.Facts) > 0 {
			p.Groups = append(p.Groups, group)
		}
	}
	return q.show("settings", http.StatusOK, p)
}

// ownFacts are those that the console knows without a scheduler.
func (q *request) ownFacts() []stated {
	version, goVersion := release.Versions()
	facts := []stated{{"version", []string{version}}, {"go", []string{goVersion}}, {"store", []string{storeName(q.Store)}}}
	if s, has := q.Store.(interface{ SchemaVersion() int }); has {
		facts = append(facts, stated{"schema", []string{lang.Number(int64(s.SchemaVersion()))}})
	}
	users := "host"
	if q.accounts != nil {
		users = "store"
	}
	return append(facts, stated{"users", []string{q.text("fact.users." + users)}}, stated{"readonly", []string{q.yesOrNo(q.ReadOnly)}})
}

// storeName is the package that a store is of, as "postgres".
func storeName(s xxljob.Store) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(fmt.Sprintf("%T", s), "*"), ".")
	return name
}

func (q *request) yesOrNo(is bool) string {
	if is {
		return q.text("fact.yes")
	}
	return q.text("fact.no")
}

// size is a number of bytes: by the largest unit of which it is a whole number, so that what is said is what
// was set.
func (q *request) size(n int64) string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if of := int64(1) << (40 - 10*i); n >= of && n%of == 0 {
			return lang.Number(n/of) + " " + unit
		}
	}
	return q.text("job.script.size", "n", n)
}

// factLines are what a fact says, in the viewer's language.
func (q *request) factLines(name string, value any) []string {
	switch v := value.(type) {
	case time.Duration:
		return []string{q.exact(v)}
	case bool:
		return []string{q.yesOrNo(v)}
	case int:
		return q.factLines(name, int64(v))
	case int64:
		if strings.HasPrefix(name, "log") {
			return []string{q.size(v)}
		}
		return []string{lang.Number(v)}
	case []string:
		if len(v) == 0 {
			return []string{"–"}
		}
		lines := make([]string, len(v))
		for i, line := range v {
			lines[i] = web.CutTo(line, mostInACell)
		}
		return lines
	case string:
		if key := "option.catchup." + v; name == "catchup" && q.look.Language.Has(key) {
			return []string{q.text(key)}
		}
		return []string{v}
	}
	return nil
}
