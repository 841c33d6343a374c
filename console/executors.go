package console

// Executors: which apps have somebody who runs their jobs, which nodes and addresses live and since when,
// what each has and does, and which node has which shards. All of it is of one reading of the cluster,
// which those share who look at the same time; each sees the part of his apps.

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/finding"
	"github.com/xxljob/xxljob/internal/release"
	"github.com/xxljob/xxljob/store"
)

const (
	executorsOnAPage = 50
	aboutsOfACause   = 3
)

// executorsPage is what it shows: apps, nodes or shards; or one app.
type executorsPage struct {
	Tab    string // "", "nodes" or "shards"
	Tabs   []string
	Text   string // that is looked for in names
	Causes []clusterCause
	Apps   []appLine
	Nodes  []nodeLine
	Shards []shardLine
	Of     *oneApp
	All    int // lines there are
	From   int
	Newer  string
	Older  string
	Cut    bool // more runs are under way, or wait, than were counted
	Empty  bool
}

// clusterCause is what keeps executors, nodes or shards from their part: one line for all that it is about.
type clusterCause struct {
	Title, Help string
	N           int
	Abouts      []about
	Detail      string
	Trouble     bool // the page of troubles has more of it
}

// about is an app or a job that a cause is about.
type about struct {
	App string
	Job int64
	Has string // its text
}

// appLine is an app. Status is "dark" where jobs or due runs want an executor and there is none, "served",
// or "idle" where nobody wants one.
type appLine struct {
	App, Title, Status string
	Nodes, Addresses   int // that live
	Silent             int // addresses that have not been refreshed for too long
	Handlers           []string
	Jobs, Enabled      int
	Running, Waiting   int
	Gone               time.Time // since when nobody serves it
	By                 string    // who serves it, or has last
}

// oneApp is an app with all that serves it.
type oneApp struct {
	appLine
	Places  []placeLine
	Longest []runLine  // under way
	Cause   *causeLine // that keeps its runs from being run
}

// placeLine is an executor of an app: one inside a node, or one at an address.
type placeLine struct {
	Kind, Where, Status string
	Address             string // that of its runs
	Node                bool
	Seen                time.Time // when it joined, or was last heard of
	Handlers            []string
	Running             int
	Former              bool // two processes take turns at the address
}

// nodeLine is a node. Status is "live", "failing", "resting", "silent" or "left".
type nodeLine struct {
	store.Node
	Status  string
	Apps    []string
	Shards  int
	Running int
	Own     *xxljob.Stats // of the node that the console belongs to
}

// shardLine is a shard. Status is that of the node that has it, "free" where none has.
type shardLine struct {
	store.Shard
	Node, Status string
	Waiting      int
	Late         time.Duration
}

// executors shows them.
func (q *request) executors() error {
	if err := q.ValidQuery([]string{"app", "text"}); err != nil {
		return err
	}
	b := executorsPage{Tab: q.Query("tab"), Tabs: []string{"", "nodes", "shards"}, Text: q.Query("text")}
	if !slices.Contains(b.Tabs, b.Tab) {
		return web.BadRequest(fmt.Errorf("tab %q", b.Tab))
	}
	if from := q.Query("from"); from != "" {
		n, err := strconv.Atoi(from)
		if err != nil || n < 0 {
			return web.BadRequest(fmt.Errorf("from %q", from))
		}
		b.From = n
	}
	world, err := shared(q, "executors", func(ctx context.Context) (finding.World, error) { return finding.ReadCluster(ctx, q.Store) })
	if err != nil {
		return asked(err)
	}
	seen := q.seenOf(world)
	seen.Groups = slices.DeleteFunc(slices.Clone(seen.Groups), func(g store.Group) bool { return !allowed(q.user, see, g.App) })
	c := q.clusterOf(&seen)
	b.Cut = len(world.Running) == clusterRead || len(world.Waiting) == clusterRead
	poll := q.With(map[string]string{"seen": ""})
	if app := q.Query("app"); app != "" {
		if b.Of = c.oneApp(app); b.Of == nil {
			return errNotThere
		}
		b.Of.Places = paged(&b, q, b.Of.Places, func(p *placeLine) string { return p.Where })
		return q.showLive("executors", poll, time.Time{}, b)
	}
	if _, all := visible(q.user, nil); len(c.apps) == 0 && (!all || len(c.nodes)+len(world.Shards) == 0) {
		return q.showLive("executors", "", time.Time{}, executorsPage{Empty: true})
	}
	b.Causes = c.causes()
	q.told.found = c.found
	switch b.Tab {
	case "nodes":
		b.Nodes = paged(&b, q, c.nodes, func(n *nodeLine) string { return n.Name() })
	case "shards":
		b.Shards = paged(&b, q, c.shards(), func(s *shardLine) string { return s.Node })
	default:
		b.Apps = paged(&b, q, c.apps, func(a *appLine) string { return a.App + "\n" + a.Title })
	}
	return q.showLive("executors", poll, time.Time{}, b)
}

// clusterRead is how many runs under way, and how many that wait, finding.ReadCluster reads at most.
const clusterRead = 1000

// paged are the lines of the page that is asked for, of those whose names have the text.
func paged[L any](b *executorsPage, q *request, list []L, name func(*L) string) []L {
	if b.Text != "" {
		want := strings.ToLower(b.Text)
		list = slices.DeleteFunc(list, func(l L) bool { return !strings.Contains(strings.ToLower(name(&l)), want) })
	}
	b.All = len(list)
	from := min(b.From, len(list))
	to := min(from+executorsOnAPage, len(list))
	if from > 0 {
		before := ""
		if from > executorsOnAPage {
			before = strconv.Itoa(from - executorsOnAPage)
		}
		b.Newer = q.With(map[string]string{"from": before, "seen": ""})
	}
	if to < len(list) {
		b.Older = q.With(map[string]string{"from": strconv.Itoa(to), "seen": ""})
	}
	return list[from:to]
}

// cluster is a reading of the cluster as lines of what the user may see.
type cluster struct {
	q     *request
	w     *finding.World
	found []finding.Finding
	apps  []appLine // dark ones first
	nodes []nodeLine
	at    map[string]int    // runs under way by their address
	of    map[[2]string]int // and by app and address
	names map[string]*nodeLine
}

// clusterOf works out the lines.
func (q *request) clusterOf(w *finding.World) *cluster {
	c := &cluster{q: q, w: w, at: map[string]int{}, of: map[[2]string]int{}, names: map[string]*nodeLine{}}
	for _, f := range finding.Attention(*w) {
		switch f.Cause {
		case finding.ShardUnowned, finding.NodeSilent, finding.NodeFailing, finding.NoExecutor, finding.NoHandler:
			c.found = append(c.found, f)
		default:
			if f.Trouble != nil {
				c.found = append(c.found, f)
			}
		}
	}
	for i := range w.Running {
		r := &w.Running[i]
		at := cmp.Or(r.Address, store.LocalAddress(r.Owner))
		c.at[at]++
		c.of[[2]string{r.App, at}]++
	}
	c.readNodes()
	c.readApps()
	return c
}

// readNodes are the nodes, those first that do not do their part.
func (c *cluster) readNodes() {
	shards := map[string]int{}
	for i := range c.w.Shards {
		shards[c.w.Shards[i].Owner]++
	}
	var own xxljob.Stats
	if c.q.Scheduler != nil {
		own = c.q.Scheduler.Stats()
	}
	for _, n := range c.w.Nodes {
		l := nodeLine{Node: n, Status: "live", Shards: shards[n.Incarnation], Running: c.at[store.LocalAddress(n.Incarnation)]}
		switch {
		case n.Left:
			l.Status = "left"
		case n.Away:
			l.Status = "silent"
		case n.Failing:
			l.Status = "failing"
		case n.Resting:
			l.Status = "resting"
		}
		l.Attached = slices.DeleteFunc(slices.Clone(n.Attached), func(a store.Attachment) bool { return !allowed(c.q.user, see, a.App) })
		for _, a := range l.Attached {
			l.Apps = append(l.Apps, a.App)
		}
		if n.Incarnation == own.Incarnation {
			l.Own = &own
		}
		c.nodes = append(c.nodes, l)
	}
	order := []string{"silent", "failing", "resting", "live", "left"}
	slices.SortStableFunc(c.nodes, func(a, b nodeLine) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Status), slices.Index(order, b.Status)), strings.Compare(a.ID, b.ID), a.Joined.Compare(b.Joined))
	})
	for i := range c.nodes {
		c.names[c.nodes[i].Incarnation] = &c.nodes[i]
	}
}

// takesPart reports whether the executors of a node are there for new runs.
func (n *nodeLine) takesPart() bool { return n.Status == "live" || n.Status == "failing" }

// readApps are the apps, those first that nobody serves though somebody should.
func (c *cluster) readApps() {
	at := map[string]*appLine{}
	of := func(app string) *appLine {
		if at[app] == nil {
			at[app] = &appLine{App: app, Status: "idle"}
		}
		return at[app]
	}
	for _, g := range c.w.Groups {
		l := of(g.App)
		if g.Title != g.App {
			l.Title = g.Title
		}
		if g.Manual {
			l.Addresses += len(g.Addresses)
		}
	}
	for _, n := range c.w.Counts {
		l := of(n.App)
		l.Enabled, l.Jobs = n.Enabled, n.Enabled+n.Stopped+n.Manual
	}
	for i := range c.nodes {
		for _, a := range c.nodes[i].Attached {
			if l := of(a.App); c.nodes[i].takesPart() {
				l.Nodes++
				l.Handlers = append(l.Handlers, a.Handlers...)
			}
		}
	}
	for _, r := range c.w.Registrations {
		if l := of(r.App); c.w.Lives(r) {
			l.Addresses++
		} else {
			l.Silent++
		}
	}
	for i := range c.w.Running {
		of(c.w.Running[i].App).Running++
	}
	for i := range c.w.Waiting {
		of(c.w.Waiting[i].App).Waiting++
	}
	for _, s := range c.w.Served {
		if l := at[s.App]; l != nil {
			l.Gone, l.By = s.Gone, string(s.By)
		}
	}
	for _, f := range c.found {
		if f.Cause == finding.NoExecutor {
			of(f.App).Status = "dark"
		}
	}
	for _, l := range at {
		if l.Status == "idle" && (l.Nodes+l.Addresses > 0 || l.By != "" && l.Gone.IsZero()) {
			l.Status = "served"
		}
		slices.Sort(l.Handlers)
		l.Handlers = slices.Compact(l.Handlers)
		c.apps = append(c.apps, *l)
	}
	order := []string{"dark", "served", "idle"}
	slices.SortFunc(c.apps, func(a, b appLine) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Status), slices.Index(order, b.Status)), strings.Compare(a.App, b.App))
	})
}

// causes are what is wrong, a line each kind.
func (c *cluster) causes() (list []clusterCause) {
	at := map[finding.Cause]int{}
	for _, f := range c.found {
		i, there := at[f.Cause]
		if !there {
			i = len(list)
			at[f.Cause] = i
			l := c.q.causeLine(f, c.w)
			list = append(list, clusterCause{Title: l.Title, Help: l.Help, Trouble: f.Trouble != nil})
			if f.App == "" && len(f.Jobs) == 0 {
				list[i].Detail = l.Detail
			}
		}
		had := &list[i]
		had.N++
		switch {
		case f.App == "" && len(f.Jobs) == 0 && had.N > 1 && had.N <= aboutsOfACause:
			had.Detail += " · " + c.q.detailOf(f)
		case len(had.Abouts) == aboutsOfACause:
		case len(f.Jobs) > 0:
			had.Abouts = append(had.Abouts, about{App: f.App, Job: f.Jobs[0], Has: cmp.Or(f.Name, "#"+strconv.FormatInt(f.Jobs[0], 10))})
		case f.App != "":
			had.Abouts = append(had.Abouts, about{App: f.App, Has: f.App})
		}
	}
	return list
}

// More is how many more there are than are named.
func (c *clusterCause) More() int { return max(0, c.N-max(len(c.Abouts), 1)) }

// oneApp is an app with its executors; nil where there is none that the user could see.
func (c *cluster) oneApp(app string) *oneApp {
	i := slices.IndexFunc(c.apps, func(a appLine) bool { return a.App == app })
	if i < 0 {
		return nil
	}
	o := &oneApp{appLine: c.apps[i]}
	for _, f := range c.found {
		if f.App == app && f.Cause == finding.NoExecutor {
			l := c.q.causeLine(f, c.w)
			o.Cause = &l
			c.q.told.found = append(c.q.told.found, f)
		}
	}
	for i := range c.nodes {
		n := &c.nodes[i]
		for _, a := range n.Attached {
			if a.App == app {
				o.Places = append(o.Places, placeLine{Kind: "attached", Where: n.Name(), Address: store.LocalAddress(n.Incarnation), Node: true, Status: n.Status, Seen: n.Joined, Handlers: a.Handlers, Running: c.of[[2]string{app, store.LocalAddress(n.Incarnation)}]})
			}
		}
	}
	for _, g := range c.w.Groups {
		if g.App == app && g.Manual {
			for _, addr := range g.Addresses {
				o.Places = append(o.Places, placeLine{Kind: "entered", Where: addr, Address: addr, Status: "unsaid", Running: c.of[[2]string{app, addr}]})
			}
		}
	}
	for _, r := range c.w.Registrations {
		if r.App != app {
			continue
		}
		p := placeLine{Kind: "registered", Where: r.Address, Address: r.Address, Status: "live", Seen: r.Updated, Running: c.of[[2]string{app, r.Address}], Former: r.FormerBootID != "" && c.w.Now.Sub(r.FormerSeen) < store.Quarter}
		if !c.w.Lives(r) {
			p.Status = "silent"
		}
		o.Places = append(o.Places, p)
	}
	o.Longest = longest(slices.DeleteFunc(slices.Clone(c.w.Running), func(r xxljob.Run) bool { return r.App != app }))
	return o
}

// shards are the shards, those first that no live node has.
func (c *cluster) shards() (list []shardLine) {
	type due struct {
		n    int
		late time.Duration
	}
	waiting := map[int]due{}
	for i := range c.w.Waiting {
		r := &c.w.Waiting[i]
		d := waiting[r.Shard]
		waiting[r.Shard] = due{d.n + 1, max(d.late, c.w.Now.Sub(r.Scheduled))}
	}
	for _, s := range c.w.Shards {
		l := shardLine{Shard: s, Status: "free", Waiting: waiting[s.ID].n, Late: waiting[s.ID].late}
		if n := c.names[s.Owner]; n != nil {
			l.Node, l.Status = n.Name(), n.Status
			if n.Status == "left" {
				l.Status = "free"
			}
		}
		list = append(list, l)
	}
	slices.SortStableFunc(list, func(a, b shardLine) int {
		return strings.Compare(strconv.FormatBool(a.Status == "live"), strconv.FormatBool(b.Status == "live"))
	})
	return list
}

// First are the first of a list of names, and how many more there are.
func (p *page) First(names []string, most int) (list []string) { return names[:min(len(names), most)] }

// Beyond is how many more there are.
func (p *page) Beyond(names []string, most int) int { return max(0, len(names)-most) }

// clusterSign is that of how an app, a node or a shard is.
func clusterSign(status string) string {
	switch status {
	case "served", "live":
		return "on"
	case "resting", "left", "idle":
		return "off"
	case "unsaid":
		return "planned"
	}
	return "broken"
}

// Sign is the sign of how it is.
func (a appLine) Sign() string   { return clusterSign(a.Status) }
func (l placeLine) Sign() string { return clusterSign(l.Status) }
func (n nodeLine) Sign() string  { return clusterSign(n.Status) }
func (s shardLine) Sign() string { return clusterSign(s.Status) }

// Address is that of the runs of a node's executors.
func (n nodeLine) Address() string { return store.LocalAddress(n.Incarnation) }

// Name is what a node is called.
func (n nodeLine) Name() string { return cmp.Or(n.ID, n.Incarnation) }

// clockView is how far a node's clock is from the store's, and in which words.
type clockView struct {
	Key string
	By  time.Duration
}

// Release is that of the node's program; "" where it has not said so.
func (n nodeLine) Release() string {
	if n.Own != nil {
		version, _ := release.Versions()
		return version
	}
	return n.Version
}

// Clock is that of a node: of the one that the console belongs to as it is now, of others as they have said
// last; nil of those that have not, or are gone.
func (n nodeLine) Clock() *clockView {
	offset := n.ClockOffset
	switch {
	case n.Own != nil:
		offset = n.Own.ClockOffset
	case n.Version == "" || n.Left:
		return nil
	}
	switch by := offset.Truncate(time.Millisecond); {
	case by > 0:
		return &clockView{"executors.clock.behind", by}
	case by < 0:
		return &clockView{"executors.clock.ahead", -by}
	}
	return &clockView{Key: "executors.clock.same"}
}
