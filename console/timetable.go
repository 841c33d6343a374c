package console

// The timetable: what is due when, as schedules say, and backwards what was due against what was run, so
// that an instant without a run is seen. It is read by pages of jobs; the chart is of the jobs that are due
// first. Everything that is worked out of a schedule has a bound, and what lies beyond is said.

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/look"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
)

const (
	jobsOfATimetable = 25
	slotsOfAJob      = 24 // instants backwards
	runsOfASlots     = 2 * slotsOfAJob
	openOfATimetable = 1000
	aheadOfAJob      = 300 // instants ahead that are counted
	aheadShown       = 3
	aheadOfAll       = 20_000 // instants of the chart
	fullestShown     = 3
	namesOfAnInstant = 3
	oftenShown       = 3
	holesShown       = 2
)

// timeRange is how far ahead and how far back the page looks, and how much of that a bar of the chart is.
type timeRange struct {
	Key       string
	of, every time.Duration
}

var timeRanges = []timeRange{{"1h", time.Hour, time.Minute}, {"6h", 6 * time.Hour, 5 * time.Minute}, {"24h", 24 * time.Hour, 15 * time.Minute}, {"7d", 7 * 24 * time.Hour, time.Hour}}

// timetablePage is what it shows.
type timetablePage struct {
	Filter  jobFilter
	Apps    []string // to choose from
	Range   timeRange
	Ranges  []timeRange
	Chips   []chip
	Ahead   *ahead
	Jobs    []timeLine
	Pages   web.Pager
	Partial bool
	Begin   time.Time // of what is looked at, backwards
	End     time.Time
}

// ahead is how many jobs are due when, of those that are due first.
type ahead struct {
	Bars          []soonBar
	Hours         []time.Time
	N             int
	Width, Height int
	Fullest       []fullest
	Minute        fullest  // the fullest
	Often         []string // names of jobs that are due more often than is counted, and are in no bar
	OftenN        int
	More          bool // jobs than were looked at
}

// fullest is a second or a minute in which many jobs are due.
type fullest struct {
	At    time.Time
	N     int
	Names []string // of the first of them
}

// More is how many jobs there are that are not named.
func (f fullest) More() int { return max(0, f.N-len(f.Names)) }

// timeLine is a job. Slots are its instants before now, the oldest first.
type timeLine struct {
	xxljob.Job
	Words   string
	Slots   []string
	Counts  []slotCount
	Holes   []time.Time // instants without a run, of which HolesN there are
	HolesN  int
	Judged  time.Time // from when on runs are compared with instants, where that is not the whole range
	Cut     bool      // there are more instants in the range
	Lasts   bool      // it goes by how long its runs last: these are its slots
	Due     []time.Time
	DueN    int
	DueMore bool
	Never   bool   // nothing of the schedule is left
	Broken  string // why its schedule cannot be worked out
	fault   error
	Changes []clockChange
}

// slotCount is how many instants have come to the same. Key is that of a state, or "late", "none" of one
// without a run, or "unplanned" of one that is due and not planned.
type slotCount struct {
	Key string
	N   int
}

// SlotWords is what became of the instants of a job, in words.
func (p *page) SlotWords(l timeLine) string {
	var list tally
	for _, c := range l.Counts {
		list.add(p.T(slotKey(c.Key)), c.N)
	}
	return list.String()
}

// slotKey is the key of the word of a slot.
func slotKey(key string) string {
	switch key {
	case "late", "none", "unplanned":
		return "timetable.slot." + key
	}
	return "state." + key
}

// timetable shows it.
func (q *request) timetable() error {
	reader, f, err := q.asksForJobs()
	if err != nil {
		return err
	}
	if q.Query("order") == "" {
		f.Order, f.order = orderOf("next")
	}
	f.State, f.Type, f.Failing, f.rows = "on", "", "", jobsOfATimetable
	p := timetablePage{Filter: f, Ranges: timeRanges, Chips: q.chips("jobs", []string{"text", "app", "tag", "handler", "author"})}
	i := slices.IndexFunc(timeRanges, func(r timeRange) bool { return r.Key == cmp.Or(q.Query("range"), "1h") })
	if i < 0 {
		return &web.Problem{Status: http.StatusUnprocessableEntity, Key: "problem.timetable.range"}
	}
	p.Range = timeRanges[i]
	search, sight, err := q.searchOf(&f)
	if err != nil {
		return err
	}
	if p.Apps = sight.apps; sight.all && !q.IsPart() {
		if p.Apps, err = q.appNames(); err != nil {
			return err
		}
	}
	if sight.nothing {
		return q.showLive("timetable", "", time.Time{}, p)
	}
	if err := q.Cursor("after", f.Order, &search.After); err != nil {
		return err
	}
	key := fmt.Sprintf("timetable %s %#v %s", sightKey(sight.apps, sight.all), f, p.Range.Key)
	listed, err := shared(q, fmt.Sprintf("%s-jobs-%q", key, q.Query("after")), func(ctx context.Context) (timesListed, error) {
		return q.under(store.WithShortTexts(ctx, 0)).listTimes(reader, &f, search, p.Range)
	})
	if err != nil {
		return asked(err)
	}
	if p.Ahead = listed.ahead; p.Ahead == nil { // the page does not begin with the jobs that are due first
		of := search
		of.After, of.Order, of.Limit = xxljob.Job{}, store.ByNext, soonJobs
		if p.Ahead, err = shared(q, key+" ahead", func(ctx context.Context) (*ahead, error) {
			jobs, err := reader.SearchJobs(store.WithShortTexts(ctx, 0), of)
			return aheadOf(jobs, p.Range, time.Now()), err
		}); err != nil {
			return asked(err)
		}
	}
	next := ""
	if last := listed.found.after; last != nil {
		next = web.CursorOf(f.Order, last)
	}
	p.Pages, p.Partial = q.Pager("after", next), listed.found.examined > 0
	p.Begin, p.End = listed.now.Add(-p.Range.of), listed.now.Add(p.Range.of)
	for _, l := range listed.lines {
		if l.Words = l.Schedule.DescribeIn(q.look.Language.Tag); l.fault != nil {
			l.Broken = q.text("fault.invalid.conf", "why", why(l.fault))
		}
		p.Jobs = append(p.Jobs, l)
	}
	poll := ""
	if q.Query("after") == "" {
		poll = q.With(map[string]string{"seen": ""})
	}
	return q.showLive("timetable", poll, time.Time{}, p)
}

// timesListed is a page of jobs as it was read, which those share who look at the same.
type timesListed struct {
	ahead *ahead // where the page begins with the jobs that it is of, which are read once for both
	found jobsFound
	lines []timeLine
	now   time.Time
}

// listTimes reads a page of jobs, and the runs of their last instants.
func (q *request) listTimes(reader xxljob.JobReader, f *jobFilter, search xxljob.JobSearch, of timeRange) (l timesListed, err error) {
	if l.now, err = q.storeNow(); err != nil {
		return l, err
	}
	if f.order == store.ByNext && search.After.ID == 0 {
		search.Limit = soonJobs
		soon, err := reader.SearchJobs(q.ctx, search)
		if err != nil {
			return l, err
		}
		l.ahead, l.found.jobs = aheadOf(soon, of, time.Now()), soon
		if len(soon) > f.rows {
			l.found.jobs, l.found.after = soon[:f.rows], &soon[f.rows-1]
		}
	} else if l.found, err = q.findJobs(reader, f, search); err != nil {
		return l, err
	}
	jobs := l.found.jobs
	l.found.jobs = nil
	if last := l.found.after; last != nil {
		l.found.after = &xxljob.Job{ID: last.ID, Name: last.Name, Next: last.Next}
	}
	runs, ok := q.Store.(xxljob.RunReader)
	ids, byJob := make([]int64, len(jobs)), map[int64][]xxljob.Run{}
	for i := range jobs {
		ids[i] = jobs[i].ID
	}
	whole := ok
	if ok && len(ids) > 0 {
		ended, err := runs.LastRuns(q.ctx, ids, runsOfASlots)
		if err != nil {
			return l, err
		}
		open, err := runs.SearchRuns(q.ctx, xxljob.RunSearch{JobIDs: ids, States: []xxljob.State{xxljob.StatePlanned, xxljob.StateStarted, xxljob.StateDispatched}, Limit: openOfATimetable})
		if err != nil {
			return l, err
		}
		whole = len(open.Runs) < openOfATimetable
		for _, r := range slices.Concat(open.Runs, ended) {
			byJob[r.JobID] = append(byJob[r.JobID], r)
		}
	}
	for i := range jobs {
		line := timeLine{Job: jobs[i]}
		line.lookAhead(l.now, of.of)
		if ok {
			line.lookBack(byJob[jobs[i].ID], l.now, of.of, whole)
		}
		l.lines = append(l.lines, line)
	}
	return l, nil
}

// lookAhead works out when the job is due within the range, and what changes of clocks in it make of that.
func (l *timeLine) lookAhead(now time.Time, of time.Duration) {
	j, end := &l.Job, now.Add(of)
	list, err := dueBefore(j, end, aheadOfAJob+1)
	if err != nil {
		l.fault = err
		return
	}
	l.Never = j.Next.IsZero() && j.WaitRun == 0 && !j.Schedule.IsManual()
	l.Lasts = j.Schedule.Type == xxljob.ScheduleFixDelay
	l.DueN, l.DueMore = min(len(list), aheadOfAJob), len(list) > aheadOfAJob
	l.Due = list[:min(len(list), aheadShown)]
	if zone := look.Zone(j.Schedule.Zone); zone != nil && j.Schedule.GoesByClocks() {
		if _, change := now.In(zone).ZoneBounds(); !change.IsZero() && change.Before(end) {
			for _, c := range clockChanges(j.Schedule, zone, now) {
				c.Near = slices.DeleteFunc(c.Near, func(n nearInstant) bool { return n.Note == "" })
				if c.At.Before(end) {
					l.Changes = append(l.Changes, c)
				}
			}
		}
	}
}

// dueBefore are the instants of a job from its next one on, before an end, at most so many: those that
// its schedule, its bounds and its number of runs leave.
func dueBefore(j *xxljob.Job, end time.Time, most int) (list []time.Time, err error) {
	for at := j.Next; !at.IsZero() && at.Before(end) && len(list) < most; {
		if !j.NotAfter.IsZero() && at.After(j.NotAfter) || j.MaxRuns > 0 && j.Runs+len(list) >= j.MaxRuns {
			break
		}
		list = append(list, at)
		if j.Schedule.Type == xxljob.ScheduleFixDelay {
			break // the next one goes by when the run ends
		}
		next, err := j.Schedule.Next(at)
		if err != nil {
			return list, err
		}
		at = next
	}
	return list, nil
}

// lookBack compares what was due with what was run. whole says that all runs are given that have not ended.
func (l *timeLine) lookBack(runs []xxljob.Run, now time.Time, of time.Duration, whole bool) {
	j := &l.Job
	from := now.Add(-of)
	begin := from
	if j.Updated.After(begin) { // what was due before goes by another definition
		begin = j.Updated
	}
	ended, oldest := 0, time.Time{}
	for i := range runs {
		if runs[i].State.Ended() {
			ended++
			if at := runs[i].Due(); oldest.IsZero() || at.Before(oldest) {
				oldest = at
			}
		}
	}
	if ended == runsOfASlots && oldest.After(begin) { // of those before nothing is known
		begin = oldest.Add(-time.Millisecond)
	}
	last := map[[2]int64]*xxljob.Run{} // by instant and part: of what was tried again the last attempt counts
	var spans []*xxljob.Run
	for i := range runs {
		r := &runs[i]
		if r.Count > 0 && r.Type != xxljob.TriggerRetry {
			spans = append(spans, r)
		}
		if key := [2]int64{r.Due().UnixMilli(), int64(r.Sharding.Index)}; (r.Born || r.Count > 0) && (last[key] == nil || last[key].ID < r.ID) {
			last[key] = r
		}
	}
	at := map[int64]string{}
	for key, r := range last {
		if became := outcomeOf(r, now); worse(became, at[key[0]]) {
			at[key[0]] = became
		}
	}
	if l.Lasts {
		var instants []int64
		for ms := range at {
			if t := time.UnixMilli(ms); !t.Before(from) && t.Before(now) {
				instants = append(instants, ms)
			}
		}
		slices.Sort(instants)
		for _, ms := range instants[max(0, len(instants)-slotsOfAJob):] {
			l.slot(at[ms], time.UnixMilli(ms))
		}
		l.count()
		return
	}
	if j.Schedule.IsManual() {
		return
	}
	var due []time.Time
	t := now
	if j.Schedule.Type == xxljob.ScheduleFixRate && !j.Next.IsZero() { // it is counted from the last one
		every, err := j.Schedule.Every()
		if err != nil {
			return
		}
		if begin.After(from) { // and the first one was due so long after the definition
			begin = begin.Add(every / 2)
		}
		if t = j.Next; t.Before(now) {
			t = t.Add((now.Sub(t) + every - 1) / every * every)
		} else {
			t = t.Add(-t.Sub(now) / every * every)
		}
	}
	for len(due) <= slotsOfAJob {
		before, err := j.Schedule.Previous(t)
		if err != nil || before.IsZero() || !before.After(begin) || before.Before(j.NotBefore) {
			break
		}
		if t = before; j.NotAfter.IsZero() || !t.After(j.NotAfter) {
			due = append(due, t)
		}
	}
	if l.Cut = len(due) > slotsOfAJob; l.Cut {
		due = due[:slotsOfAJob]
	} else if begin.After(from) {
		l.Judged = begin
	}
	for _, t := range slices.Backward(due) {
		key := at[t.UnixMilli()]
		if key == "" {
			if i := slices.IndexFunc(spans, func(r *xxljob.Run) bool { return !t.Before(r.First) && !t.After(r.Last) }); i >= 0 {
				if key = outcomeOf(spans[i], now); key == "succeeded" {
					key = "late"
				}
			}
		}
		switch {
		case key != "":
		case !j.Next.IsZero() && !t.Before(j.Next):
			if now.Sub(t) <= lateFrom {
				continue // it is being planned
			}
			key = "unplanned"
		case !whole:
			continue
		default:
			key = "none"
		}
		l.slot(key, t)
	}
	l.count()
}

// HolesBeyond is how many more holes there are than are told.
func (l timeLine) HolesBeyond() int { return l.HolesN - len(l.Holes) }

// slot adds what became of an instant.
func (l *timeLine) slot(key string, at time.Time) {
	l.Slots = append(l.Slots, key)
	if key == "none" || key == "unplanned" {
		if l.HolesN++; len(l.Holes) < holesShown {
			l.Holes = append(l.Holes, at)
		}
	}
}

// count counts the slots, the worst first.
func (l *timeLine) count() {
	for _, key := range l.Slots {
		i := slices.IndexFunc(l.Counts, func(c slotCount) bool { return c.Key == key })
		if i < 0 {
			i = len(l.Counts)
			l.Counts = append(l.Counts, slotCount{Key: key})
		}
		l.Counts[i].N++
	}
	slices.SortFunc(l.Counts, func(a, b slotCount) int { return cmp.Compare(rankOf(a.Key), rankOf(b.Key)) })
}

// outcomeOf is what became of an instant, by a run of it.
func outcomeOf(r *xxljob.Run, now time.Time) string {
	switch {
	case r.State == xxljob.StateSucceeded && r.Lateness() > lateFrom, r.State == xxljob.StatePlanned && now.Sub(r.Scheduled) > lateFrom:
		return "late"
	case r.State == xxljob.StateSucceeded && (r.Type == xxljob.TriggerMisfire):
		return "late"
	}
	return stateKey(r.State)
}

// outcomesByRank are outcomes, the worst first. Of the parts of a broadcast the worst counts.
var outcomesByRank = []string{"none", "unplanned", "lost", "failed", "timed_out", "refused", "skipped", "killed", "late", "discarded", "cancelled", "started", "dispatched", "planned", "snoozed", "succeeded"}

func rankOf(key string) int { return slices.Index(outcomesByRank, key) }

// worse reports whether an outcome says more of an instant than the one that is known.
func worse(key, known string) bool { return known == "" || rankOf(key) < rankOf(known) }

// aheadOf counts the instants of jobs that are due first.
func aheadOf(jobs []xxljob.Job, of timeRange, now time.Time) *ahead {
	begin := now.UTC().Truncate(of.every)
	end := begin.Add(of.of)
	n := int(of.of / of.every)
	a := &ahead{Width: n * barWidth, Height: soonHeight, More: len(jobs) == soonJobs && jobs[len(jobs)-1].Next.Before(end)}
	bars, seconds, minutes := make([]int, n), map[int64][]int{}, map[int64][]int{}
	for i := range jobs {
		list, _ := dueBefore(&jobs[i], end, aheadOfAJob+1)
		if len(list) > aheadOfAJob {
			if a.OftenN++; len(a.Often) < oftenShown {
				a.Often = append(a.Often, jobs[i].Name)
			}
			continue
		}
		if a.N+len(list) > aheadOfAll {
			a.More = true
			break
		}
		a.N += len(list)
		for _, at := range list {
			bars[max(0, int(at.Sub(begin)/of.every))]++
			s := at.Unix()
			seconds[s] = append(seconds[s], i)
			minutes[s/60] = append(minutes[s/60], i)
		}
	}
	for _, f := range fullestOf(jobs, seconds, fullestShown) {
		f.At = time.Unix(f.At.Unix(), 0).UTC()
		a.Fullest = append(a.Fullest, f)
	}
	if list := fullestOf(jobs, minutes, 1); len(list) > 0 && (len(a.Fullest) == 0 || list[0].N > a.Fullest[0].N) {
		a.Minute = list[0]
		a.Minute.At = time.Unix(a.Minute.At.Unix()*60, 0).UTC()
	}
	most := max(slices.Max(bars), 1)
	for i, k := range bars {
		h := k * (soonHeight - 2) / most
		if k > 0 {
			h = max(h, 1)
		}
		at := begin.Add(time.Duration(i) * of.every)
		full := slices.ContainsFunc(a.Fullest, func(f fullest) bool { return !f.At.Before(at) && f.At.Before(at.Add(of.every)) })
		a.Bars = append(a.Bars, soonBar{X: i * barWidth, Y: soonHeight - h, H: h, N: k, At: at, Full: full})
	}
	for i := range 5 {
		a.Hours = append(a.Hours, begin.Add(time.Duration(i)*of.of/4))
	}
	return a
}

// fullestOf are the times in which several jobs are due, the fullest first. What a time is, is the caller's:
// it stands in At as if it were seconds.
func fullestOf(jobs []xxljob.Job, at map[int64][]int, most int) (list []fullest) {
	for t, due := range at {
		if len(due) > 1 {
			list = append(list, fullest{At: time.Unix(t, 0), N: len(due)})
		}
	}
	slices.SortFunc(list, func(a, b fullest) int { return cmp.Or(cmp.Compare(b.N, a.N), a.At.Compare(b.At)) })
	list = list[:min(len(list), most)]
	for i := range list {
		for _, k := range at[list[i].At.Unix()] {
			if name := jobs[k].Name; len(list[i].Names) < namesOfAnInstant && !slices.Contains(list[i].Names, name) {
				list[i].Names = append(list[i].Names, name)
			}
		}
	}
	return list
}

// hour is a time below a chart: with the day where the range is of several.
func (r timeRange) hour() string {
	if r.of > 24*time.Hour {
		return "01-02 15:04"
	}
	return "15:04"
}

// Below are the times below the chart.
func (p *page) Below(b timetablePage) (list []string) {
	for _, t := range b.Ahead.Hours {
		list = append(list, t.In(p.q.look.Zone).Format(b.Range.hour()))
	}
	return list
}

// RangeOf is the address of the page with another range, and perhaps one more value, from its beginning.
func (p *page) RangeOf(key string, more ...string) string {
	values := map[string]string{"range": key, "after": "", web.Trail: "", "seen": ""}
	for i := 0; i+1 < len(more); i += 2 {
		values[more[i]] = more[i+1]
	}
	return p.q.With(values)
}

// Brief is a moment to the second, with its day where that is not today, and its year where it is of another.
func (p *page) Brief(t time.Time) template.HTML {
	layout, in := "01-02 15:04:05", t.In(p.q.look.Zone)
	switch now := p.Now.In(p.q.look.Zone); {
	case in.Format(time.DateOnly) == now.Format(time.DateOnly):
		layout = "15:04:05"
	case in.Year() != now.Year():
		layout = time.DateTime
	}
	return p.timeTag(t, in.Format(layout), " data-rel")
}
