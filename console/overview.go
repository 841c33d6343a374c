package console

// The overview: what needs attention, how runs have ended and how late they were, what runs now and
// what is due next. It is read once for all who look at it, and each sees the part of his apps.

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/lang"
	"github.com/xxljob/xxljob/finding"
	"github.com/xxljob/xxljob/store"
)

const (
	causesShown  = 12
	mutesShown   = 100
	marksOfCause = 20
	longestShown = 5
	mostAppsRead = 1000 // of a user who sees some apps, by their names
	nextShown    = 8
	chartOf      = 24 * time.Hour
	lateFrom     = 5 * time.Second // how long a run has waited that is said to be late
	usualLate    = time.Second     // what is later than that is worth a colour
	partTime     = 2 * time.Second // how long a part may take beside what needs attention
	overviewFor  = 2 * time.Second // how old it may be that a viewer is shown who asks again and again
)

// overviewPage is what it shows.
type overviewPage struct {
	Causes  []causeLine
	Muted   []mutedLine
	Count   int       // of all causes
	More    int       // that are not shown
	Mutes   int       // that there are
	Unshown int       // of these
	Back    time.Time // how far back bad ends were looked for; zero: as far as they are kept
	Tiles   []tile
	Chart   *chart
	Running []runLine // the longest that are under way
	Next    []xxljob.Job
	Soon    *soon
	Said    string // what has just been done
	Empty   bool   // there is no job that the user could see

	// Faults are why a part could not be read, by its name: "reports", "next", "mutes".
	// The others are there all the same.
	Faults map[string]any
}

// causeLine is one cause, in the user's language. Error is as the user may see it.
type causeLine struct {
	finding.Finding
	Title, Help string
	Muting      string   // the key under which it is muted, which tells nothing of the error; "" where it cannot be
	About       string   // the name of its app or its first job
	Named       []string // the first of its apps, where it is of several
	More        int      // further jobs, or apps
	Job, Run    int64    // where it leads: the job, if it is one; and its newest run
	Marks       []mark   // of the last runs of the job, the oldest first
	Again       bool     // its newest run may be run again
	Stops       bool     // its job may be stopped
}

// OnTroubles reports whether the page of troubles has more of it.
func (l causeLine) OnTroubles() bool { return l.Trouble != nil || l.Cause == notReadyHere }

// mutedLine is a mute, and what it is about. Job is zero for a cause.
type mutedLine struct {
	store.Mute
	Title, About string
	Job          int64
}

// tile is a figure, what is usual beside it, and where it leads.
type tile struct {
	Key, Value, Note, Href string
	Bad                    bool
}

// overview shows it.
func (q *request) overview() error {
	apps, all, err := q.visibleApps()
	if err != nil {
		return err
	}
	of, err := q.spanAsked()
	if err != nil {
		return err
	}
	sight := sightKey(apps, all)
	apps = apps[:min(len(apps), mostAppsRead)]
	if !all && len(apps) == 0 {
		return q.showLive("overview", "", time.Time{}, overviewPage{Empty: true})
	}
	read, at, err := sharedFor(q, overviewFor, "overview "+of.Key+" "+sight, func(ctx context.Context) (overviewRead, error) {
		return q.under(ctx).readOverview(apps, of)
	})
	if err != nil {
		return asked(err)
	}
	since := at.At
	if len(read.faults) > 0 { // which are told by the number of the request
		since = time.Time{}
	}
	return q.showLiveMade("overview", withRange("overview", q.Query("range")), since, func() any { return q.overviewOf(&read, of) })
}

// overviewRead is what is read for who sees some apps.
type overviewRead struct {
	world   finding.World // of all apps
	day     []store.Report
	reports []store.Report // of the range
	changes []xxljob.Change
	next    []xxljob.Job
	mutes   []store.Mute
	faults  map[string]error
}

// readOverview reads it. What needs attention is read together for all, whatever they see. The other
// parts may be missing, each for itself. Mutes come first: what is slow takes its time from all that
// comes behind it, and without them what somebody has muted would be told as new.
func (q *request) readOverview(apps []string, of span) (r overviewRead, err error) {
	r.faults = map[string]error{}
	part := func(name string, read func(*request) error) {
		ctx, cancel := q.within(partTime)
		defer cancel()
		if err := read(q.under(ctx)); err != nil {
			r.faults[name] = err
		}
	}
	part("mutes", func(q *request) (err error) {
		if q.mutes != nil {
			r.mutes, err = q.mutes.Mutes(q.byTrusted(q.ctx))
		}
		return err
	})
	if r.world, _, err = sharedFor(q, overviewFor, "overview", q.readWorld); err != nil {
		return r, err
	}
	part("reports", func(q *request) (err error) {
		if r.day, err = q.reportsIn(apps, spans[1], r.world.Now); err != nil {
			return err
		}
		if r.reports = r.day; of.Key != spans[1].Key {
			if r.reports, err = q.reportsIn(apps, of, r.world.Now); err != nil {
				return err
			}
		}
		r.changes, err = q.changedIn(apps, of.begin(r.world.Now))
		return err
	})
	part("next", func(q *request) (err error) {
		r.next, err = q.briefly().dueNext(apps)
		return err
	})
	return r, nil
}

// overviewOf is what the page shows of what was read.
func (q *request) overviewOf(r *overviewRead, of span) overviewPage {
	b := overviewPage{Said: q.said(), Back: r.world.Back, Faults: map[string]any{}}
	for name, err := range r.faults {
		b.Faults[name] = q.whyOf(err)
	}
	if r.faults["reports"] == nil {
		b.Chart = q.chartIn(of, r)
	}
	seen := q.seenOf(r.world)
	found := q.attentionHere(seen)
	mutes := q.muted(r.mutes)
	open, muted := q.apart(found, mutes, &seen)
	q.told.unready = true
	q.told.found = slices.DeleteFunc(slices.Clone(found), func(f finding.Finding) bool { // what is not shown the line above the page tells
		return slices.ContainsFunc(open[min(len(open), causesShown):], func(o finding.Finding) bool {
			return o.Key() == f.Key() || o.Cause == f.Cause && slices.Contains(o.Apps, f.App)
		})
	})
	b.Muted, b.Mutes, b.Unshown = muted, len(mutes), len(mutes)-len(muted)
	b.Next, b.Soon, b.Running = r.next[:min(len(r.next), nextShown)], soonOf(r.next, r.world.Now), longest(seen.Running)
	b.Tiles = q.tiles(&seen, found, r.day)
	if b.Faults["reports"] != nil {
		for i := range b.Tiles {
			if t := &b.Tiles[i]; t.Key == "hour" || t.Key == "late" {
				t.Value, t.Note, t.Bad = "–", "", false
			}
		}
	}
	for _, f := range open[:min(len(open), causesShown)] {
		b.Causes = append(b.Causes, q.causeLine(f, &seen))
	}
	b.Count, b.More = len(open), len(open)-len(b.Causes)
	q.counts = &counts{of: map[string]count{"overview": {N: b.Count}}}
	b.Empty = len(b.Faults) == 0 && len(found) == 0 && len(r.next) == 0 && len(seen.Ended) == 0 && !slices.ContainsFunc(seen.Counts, func(c store.JobCount) bool { return c.Enabled+c.Stopped+c.Manual > 0 })
	return b
}

// apart are the findings that nobody has muted, those of several apps together, and the first mutes, each
// with what it is about.
func (q *request) apart(found []finding.Finding, mutes []store.Mute, w *finding.World) (open []finding.Finding, muted []mutedLine) {
	about := map[string]*finding.Finding{}
	for i := range found {
		if m := finding.Muted(mutes, found[i]); m != nil {
			about[m.Key] = &found[i]
		} else {
			open = append(open, found[i])
		}
	}
	for i := range mutes[:min(len(mutes), mutesShown)] {
		l := mutedLine{Mute: mutes[i], Title: q.muteTitle(&mutes[i]), About: mutes[i].App, Job: mutes[i].JobID}
		if f := about[l.Key]; f != nil {
			c := q.causeLine(*f, w)
			l.Title, l.About, l.Job = c.Title, c.About, c.Job
		} else if l.Job != 0 {
			l.About = "#" + strconv.FormatInt(l.Job, 10)
		}
		muted = append(muted, l)
	}
	return finding.Together(open), muted
}

// seenOf is the part of the cluster that the user may see, with what the scheduler says of itself.
// Nodes and shards are everybody's: where one is missing, jobs of all apps stand still.
func (q *request) seenOf(w finding.World) finding.World {
	sees := func(app string) bool { return allowed(q.user, see, app) }
	w.Ended = slices.DeleteFunc(slices.Clone(w.Ended), func(r xxljob.Run) bool { return !sees(r.App) })
	w.Waiting = slices.DeleteFunc(slices.Clone(w.Waiting), func(r xxljob.Run) bool { return !sees(r.App) })
	w.Running = slices.DeleteFunc(slices.Clone(w.Running), func(r xxljob.Run) bool { return !sees(r.App) })
	w.Jobs = slices.DeleteFunc(slices.Clone(w.Jobs), func(j xxljob.Job) bool { return !sees(j.App) })
	w.Counts = slices.DeleteFunc(slices.Clone(w.Counts), func(c store.JobCount) bool { return !sees(c.App) })
	w.Registrations = slices.DeleteFunc(slices.Clone(w.Registrations), func(r xxljob.Registration) bool { return !sees(r.App) })
	return q.withTroubles(w)
}

// attention is what needs attention. An error that the host hides, or that tells what another job has
// given, is of its job alone, as that of a job that is secret is: neither what it is put together with nor the key of a mute confirms a guess.
func (q *request) attention(w finding.World) []finding.Finding {
	hideErrors(&w, func(r *xxljob.Run) bool { return r.Secret || q.Redact != nil && q.hidesErrorOf(r) })
	found := finding.Attention(w)
	for i := range w.Troubles { // of an app that has executors for all that the store knows
		t := &w.Troubles[i]
		if !slices.ContainsFunc(found, func(f finding.Finding) bool { return isTrouble(&f, t) }) {
			found = append([]finding.Finding{{Cause: finding.Cause(t.Cause), App: t.App, Since: t.Since, Detail: t.Detail, Trouble: t, Waiting: t.Late}}, found...)
		}
	}
	return found
}

// isCut reports whether no more than the beginning of a text was read, as lists have it: what the host
// would hide of the whole nobody knows.
func isCut(text string) bool { return utf8.RuneCountInString(text) >= textOfARun }

// hidesErrorOf reports whether the host hides something of what a run has ended with: of its texts, or of
// the line of them that is shown as its error; or may, where not all of it was read.
func (q *request) hidesErrorOf(r *xxljob.Run) bool {
	if isCut(r.HandleMsg) {
		return true
	}
	first, _, _ := strings.Cut(strings.TrimSpace(r.HandleMsg), "\n")
	last := strings.TrimSpace(r.TriggerMsg)
	last = last[strings.LastIndexByte(last, '\n')+1:]
	return slices.ContainsFunc([]string{r.HandleMsg, r.TriggerMsg, strings.TrimSpace(first), strings.TrimSpace(last)}, func(text string) bool {
		return text != "" && q.redacted(r.App, FieldResult, text) != text
	})
}

// withRange is the address of the page with a range.
func withRange(page, key string) string {
	if key == "" {
		return page
	}
	return page + "?range=" + key
}

// reportsIn are the reports of a range, of all of the apps together.
func (q *request) reportsIn(apps []string, s span, now time.Time) ([]store.Report, error) {
	reader, ok := q.Store.(store.ReportReader)
	if !ok {
		return nil, nil
	}
	begin := s.begin(now)
	found, err := reader.Reports(q.ctx, store.ReportQuery{Apps: apps, From: begin, To: begin.Add(s.of), Length: s.every, Together: true, Examine: 200_000})
	return found.Reports, err
}

// dueNext are the jobs that are due next.
func (q *request) dueNext(apps []string) ([]xxljob.Job, error) {
	reader, ok := q.Store.(store.JobReader)
	if !ok {
		return nil, nil
	}
	on := false
	return reader.SearchJobs(q.ctx, store.JobSearch{Apps: apps, Stopped: &on, Order: store.ByNext, Limit: soonJobs})
}

// longest are the runs that are under way for longest.
func longest(runs []xxljob.Run) (list []runLine) {
	runs = slices.Clone(runs)
	slices.SortFunc(runs, func(a, b xxljob.Run) int { return a.Started.Compare(b.Started) })
	parts, told := map[int64]int{}, map[int64]bool{}
	for i := range runs {
		if runs[i].Sharding.Total > 0 {
			parts[runs[i].TriggerID]++
		}
	}
	for _, r := range runs {
		l := runLine{Run: r}
		if n := parts[r.TriggerID]; r.Sharding.Total > 0 && n >= foldFrom {
			if told[r.TriggerID] {
				continue
			}
			l.Parts, told[r.TriggerID] = n, true
		}
		if list = append(list, l); len(list) == longestShown {
			break
		}
	}
	return list
}

// runLine is a run that is under way, or that part of a broadcast that has been for longest, where so many
// parts are.
type runLine struct {
	xxljob.Run
	Parts int
}

// tiles are the six figures on top.
func (q *request) tiles(w *finding.World, found []finding.Finding, reports []store.Report) []tile {
	failing := 0
	for _, f := range found {
		switch f.Cause {
		case finding.Failing, finding.TimingOut, finding.Losing, finding.Refused, finding.NoHandler:
			failing += len(f.Jobs)
		}
	}
	var hour, quarter, day store.Report
	for i := range reports {
		day.Add(&reports[i])
		if age := w.Now.Sub(reports[i].From); age < 75*time.Minute {
			hour.Add(&reports[i])
			if age < 30*time.Minute {
				quarter.Add(&reports[i])
			}
		}
	}
	list := []tile{{Key: "failing", Value: strconv.Itoa(failing), Href: "runs?state=bad", Bad: failing > 0}}
	runs, bad := ends(&hour)
	dayRuns, dayBad := ends(&day)
	list = append(list, tile{Key: "hour", Value: lang.Number(runs), Href: "runs",
		Note: q.text("overview.hour.note", "share", share(bad, runs), "usual", share(dayBad, dayRuns)), Bad: bad > 0 && bad*dayRuns > 2*dayBad*runs})
	t := tile{Key: "running", Value: strconv.Itoa(len(w.Running)), Href: "runs?state=open"}
	if long := longest(w.Running); len(long) > 0 {
		t.Note = q.text("overview.running.note", "d", q.look.Span(max(0, w.Now.Sub(long[0].Started)).Truncate(time.Second)))
	}
	list = append(list, t)
	late, oldest := 0, time.Duration(0)
	for i := range w.Waiting {
		if d := w.Now.Sub(w.Waiting[i].Scheduled); d > lateFrom {
			late, oldest = late+1, max(oldest, d)
		}
	}
	t = tile{Key: "overdue", Value: strconv.Itoa(late), Href: "runs?state=waiting", Bad: late > 0}
	if late > 0 {
		t.Note = q.text("overview.overdue.note", "d", q.look.Span(oldest.Truncate(time.Second)))
	}
	list = append(list, t)
	p99, _ := quarter.Lateness.Quantile(0.99)
	p50, _ := quarter.Lateness.Quantile(0.5)
	usual, _ := day.Lateness.Quantile(0.99)
	t = tile{Key: "late", Value: "–", Href: "runs?late=1", Bad: p99 > usualLate && p99 > usual}
	if quarter.Lateness.Count() > 0 {
		t.Value, t.Note = q.look.Span(p99), q.text("overview.late.note", "p50", q.look.Span(p50), "usual", q.look.Span(usual))
	}
	list = append(list, t)
	return append(list, q.executorsTile(w, found))
}

// executorsTile is how many executors live, and which apps have none.
func (q *request) executorsTile(w *finding.World, found []finding.Finding) tile {
	n, dark := 0, 0
	for i := range w.Nodes {
		if !w.Nodes[i].Left && !w.Nodes[i].Away && slices.ContainsFunc(w.Nodes[i].Attached, func(a store.Attachment) bool { return allowed(q.user, see, a.App) }) {
			n++
		}
	}
	for i := range w.Registrations {
		if w.Lives(w.Registrations[i]) {
			n++
		}
	}
	for _, f := range found {
		if f.Cause == finding.NoExecutor {
			dark++
		}
	}
	t := tile{Key: "executors", Value: strconv.Itoa(n), Href: "executors", Bad: dark > 0}
	if dark > 0 {
		t.Note = q.text("overview.executors.note", "n", dark)
	}
	return t
}

// ends are how many runs of a report have ended, without those that nobody wanted to run, and how
// many of them badly.
func ends(r *store.Report) (all, bad int64) {
	for s, n := range r.Ended {
		switch st := xxljob.State(s); {
		case st == xxljob.StateSkipped || st == xxljob.StateCancelled || st == xxljob.StateDiscarded:
			continue
		case isBad(st):
			bad += n
		}
		all += n
	}
	return all, bad
}

// share is a part of a whole in percent, as "0.3 %".
func share(part, all int64) string {
	if all == 0 {
		return "–"
	}
	p := float64(part) * 100 / float64(all)
	digits := 0
	if p > 0 && p < 10 {
		digits = 1
	}
	return strconv.FormatFloat(p, 'f', digits, 64) + " %"
}

// chart is how runs have ended and how late they were, a bar for each quarter of an hour. Lengths
// are those of its drawing.
type chart struct {
	Bars  []bar
	Late  string   // the line of the p99, as points
	Hours []string // the times of the day below it, six hours apart
	Most  int64
	Width int
	Key   string // of the range
	Begin string // as the address of a list has it
	Ticks []tick
	// Changes and Joined are how many definitions were changed, and how many nodes have joined.
	Changes, Joined int
}

// bar is a part of the range: a quarter of an hour in that of a day.
type bar struct {
	X                    int
	Good, Bad, Other     int // heights
	YGood, YBad, YOther  int
	From, To             time.Time
	Ended, Failed, Rests int64
	P50, P99             time.Duration
	Since, Until         string // as the address of a list has them
}

const (
	barWidth    = 10 // with the gap
	chartHeight = 90
)

// chartOf draws reports; nil where the store has none for anybody.
func (q *request) chartOf(reports []store.Report, s span, now time.Time) *chart {
	if _, ok := q.Store.(store.ReportReader); !ok {
		return nil
	}
	begin := s.begin(now)
	n := int(s.of / s.every)
	c := &chart{Width: n * barWidth, Key: s.Key}
	by := map[time.Time]*store.Report{}
	for i := range reports {
		r := &reports[i]
		by[r.From.UTC()] = r
		all, _ := ends(r)
		c.Most = max(c.Most, all)
	}
	points := []byte{}
	for i := range n {
		from := begin.Add(time.Duration(i) * s.every).UTC()
		b := bar{X: i * barWidth, From: from, To: from.Add(s.every), Since: from.Format(time.RFC3339), Until: from.Add(s.every).Format(time.RFC3339)}
		if r := by[from]; r != nil {
			all, bad := ends(r)
			killed := r.Ended[xxljob.StateKilled] + r.Ended[xxljob.StateSnoozed]
			b.Ended, b.Failed, b.Rests = all, bad, killed
			b.Good, b.Bad, b.Other = c.height(all-bad-killed), c.height(bad), c.height(killed)
			b.P50, _ = r.Lateness.Quantile(0.5)
			b.P99, _ = r.Lateness.Quantile(0.99)
			if r.Lateness.Count() > 0 {
				points = append(points, strconv.Itoa(b.X+barWidth/2)+","+strconv.Itoa(lateY(b.P99))+" "...)
			}
		}
		b.YBad = chartHeight - b.Bad
		b.YOther = b.YBad - b.Other
		b.YGood = b.YOther - b.Good
		c.Bars = append(c.Bars, b)
	}
	c.Hours = q.hours(s, begin)
	c.Late = string(points)
	return c
}

// height is that of so many runs: of any at all, one.
func (c *chart) height(n int64) int {
	if n <= 0 {
		return 0
	}
	return max(1, int(n*(chartHeight-6)/max(c.Most, 1)))
}

// lateY is where a lateness is drawn: a millisecond at the bottom, five minutes on top, each tenfold
// the same step.
func lateY(d time.Duration) int {
	ms := max(float64(d.Milliseconds()), 1)
	return chartHeight - int(math.Min(math.Log10(ms)/math.Log10(300_000), 1)*(chartHeight-6))
}
