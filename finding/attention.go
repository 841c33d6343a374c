package finding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Attention returns what needs somebody's attention, the gravest first, and of one kind what is so
// for longest first. It is empty where all is well.
func Attention(w World) []Finding {
	a := attention{look: lookAt(&w)}
	a.cluster()
	a.troubles()
	a.apps()
	a.stopped()
	a.outcomes()
	a.waits()
	a.alarms()
	slices.SortStableFunc(a.found, func(x, y Finding) int {
		return cmp.Or(cmp.Compare(gravity(x), gravity(y)), x.Since.Compare(y.Since), strings.Compare(x.App, y.App), slices.Compare(x.Jobs, y.Jobs))
	})
	return a.found
}

// gravities are the causes in the order in which they matter.
var gravities = []Cause{ShardUnowned, NodeSilent, NodeFailing, Cause(store.TroubleClock), Cause(store.TroubleLockedRows), Cause(store.TroubleRefused), NoExecutor, NoHandler,
	Cause(store.TroubleUnknownRouter), Failing, Stopped, TimingOut, Losing, Refused, FallingBehind, Overdue, Cause(store.TroubleStuckRuns), NeverFires, AlarmsUndelivered,
	Cause(store.TroubleUntold), Flapping}

// gravity is where a finding stands; a trouble of a cause that is not in the list comes before runs
// that fail.
func gravity(f Finding) int {
	if i := slices.Index(gravities, f.Cause); i >= 0 {
		return i
	}
	return slices.Index(gravities, NoHandler)
}

type attention struct {
	*look
	found   []Finding
	dark    map[string]bool // apps that nobody serves
	blocked map[int64]bool  // jobs whose runs wait for a cause that was found
	byCause map[string]int  // where in found jobs are gathered that have one cause
	single  bool            // it is about one job, of which a single failure is told
}

func (a *attention) add(f Finding) { a.found = append(a.found, f) }

// cluster finds shards without a node, and nodes that do not do their part.
func (a *attention) cluster() {
	var unowned []string
	var ids []int
	for _, s := range a.Shards {
		if _, lives := a.live[s.Owner]; !lives {
			unowned, ids = append(unowned, fmt.Sprint(s.ID)), append(ids, s.ID)
		}
	}
	if len(unowned) > 0 {
		a.add(Finding{Cause: ShardUnowned, Shards: ids, Detail: "shards " + named(unowned, 10)})
	}
	for _, n := range a.Nodes {
		switch {
		case n.Left:
		case n.Away:
			a.add(Finding{Cause: NodeSilent, Detail: cmp.Or(n.ID, n.Incarnation)})
		case n.Failing:
			a.add(Finding{Cause: NodeFailing, Detail: cmp.Or(n.ID, n.Incarnation)})
		}
	}
}

// named are the first of a list, and how many more there are.
func named(list []string, most int) string {
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}

// troubles are what schedulers say of themselves, but for apps without executors, which are found
// here by what the store says: those that another node has seen too.
func (a *attention) troubles() {
	seen := map[string]bool{}
	for _, t := range a.Troubles {
		f := Finding{Cause: Cause(t.Cause), App: t.App, Since: t.Since, Detail: t.Detail, Trouble: &t, Waiting: t.Late}
		if t.JobID != 0 {
			f.Jobs = []int64{t.JobID}
			if j := a.jobs[t.JobID]; j != nil {
				f.Name, f.App = j.Name, j.App
			}
		}
		if t.Cause == store.TroubleNoExecutor && t.JobID == 0 || seen[f.Key()] {
			continue
		}
		if seen[f.Key()] = true; t.Cause == store.TroubleNoExecutor {
			f.Cause, f.Trouble, f.Waiting, f.Error = NoHandler, nil, 0, t.Detail
			f.Detail = ""
			a.block(t.JobID)
		}
		if t.Cause == store.TroubleUnknownRouter || t.Cause == store.TroubleUnknownZone || t.Cause == store.TroubleUnknownSchedule {
			a.block(t.JobID)
		}
		a.add(f)
	}
}

func (a *attention) block(job int64) {
	if a.blocked == nil {
		a.blocked = map[int64]bool{}
	}
	a.blocked[job] = true
}

// apps finds apps that nobody serves, and handlers that none of their executors has.
func (a *attention) apps() {
	a.dark = map[string]bool{}
	wanted := map[string]string{} // app: why it needs an executor
	enabled := map[string]int{}
	for _, c := range a.Counts {
		if c.Enabled > 0 {
			wanted[c.App] = fmt.Sprintf("enabled jobs: %d", c.Enabled)
			enabled[c.App] = c.Enabled
		}
	}
	late := map[string][]*store.Run{}
	for i := range a.Waiting {
		r := &a.Waiting[i]
		if a.Now.Sub(r.Scheduled) > a.patience() {
			late[r.App] = append(late[r.App], r)
		}
	}
	for app := range late {
		if wanted[app] == "" {
			wanted[app] = "no enabled jobs, and due runs"
		}
	}
	for app, why := range wanted {
		if a.served[app] {
			continue
		}
		a.dark[app] = true
		f := Finding{Cause: NoExecutor, App: app, Since: a.gone[app].Gone, Enabled: enabled[app], Detail: why}
		if a.gone[app].By == "" {
			f.Detail += neverOne
		}
		a.waitFor(&f, late[app])
		a.add(f)
	}
	for _, j := range a.Jobs {
		if has, known := a.hasHandler(&j); known && !has && !j.Stopped && !j.Schedule.IsManual() && !a.dark[j.App] && !a.blocked[j.ID] {
			a.block(j.ID)
			a.add(Finding{Cause: NoHandler, App: j.App, Jobs: []int64{j.ID}, Name: j.Name, Detail: j.Handler})
		}
	}
}

// waitFor sets which runs wait because of a finding.
func (a *attention) waitFor(f *Finding, runs []*store.Run) {
	f.Waiting += len(runs)
	for _, r := range runs {
		if late := a.Now.Sub(r.Scheduled); late > f.Late {
			f.Late = late
		}
		if f.Since.IsZero() || r.Scheduled.Before(f.Since) && f.Cause != NoExecutor {
			f.Since = r.Scheduled
		}
		if len(f.Runs) < MostRuns {
			f.Runs = append(f.Runs, r.ID)
		}
	}
}

// stopped finds jobs whose schedules cannot be worked out, and those that have none to come.
func (a *attention) stopped() {
	for _, j := range a.Jobs {
		f := Finding{App: j.App, Jobs: []int64{j.ID}, Name: j.Name, Since: j.Updated}
		switch {
		case stoppedByError(&j):
			f.Cause, f.Error = Stopped, firstLine(j.StopReason)
		case !j.Stopped && j.Next.IsZero() && j.WaitRun == 0 && !j.Schedule.IsManual() && len(j.After)+len(j.AfterKeys) == 0:
			f.Cause = NeverFires
		default:
			continue
		}
		a.add(f)
	}
}

// stoppedByError reports whether a job has stopped since its schedule cannot be evaluated.
func stoppedByError(j *store.Job) bool {
	return j.Stopped && j.StopReason != "" && j.StopReason != store.StopPruned && j.StopReason != store.StopFinished && !strings.HasPrefix(j.StopReason, store.StopFinished+":")
}

// outcomes finds jobs whose last triggers have ended badly, and those that fail more often than
// before.
func (a *attention) outcomes() {
	byJob := map[int64][]*store.Run{}
	var ids []int64
	for i := range a.Ended {
		r := &a.Ended[i]
		if byJob[r.JobID] == nil {
			ids = append(ids, r.JobID)
		}
		byJob[r.JobID] = append(byJob[r.JobID], r)
	}
	slices.Sort(ids)
	a.byCause = map[string]int{}
	for _, id := range ids {
		if j := a.jobs[id]; j == nil || j.Stopped || a.blocked[id] { // removed, seen to, or known already
			continue
		}
		list := triggersOf(byJob[id])
		if f, bad := a.failing(a.jobs[id], list); bad {
			a.gather(f)
		} else if f, bad := flapping(a.jobs[id], list); bad {
			a.add(f)
		}
	}
}

// causes are the findings of states in which runs end badly.
var causes = map[store.State]Cause{store.StateFailed: Failing, store.StateTimedOut: TimingOut, store.StateLost: Losing, store.StateRefused: Refused,
	store.StateDiscarded: Failing, store.StateKilled: Failing}

// enough is how many triggers of a job have to fail in a row, by how often it is due: of one that is
// due every six hours or less often, or just once, a single one is enough.
func (a *attention) enough(j *store.Job, list []trigger) int {
	switch every := a.every(j, list); {
	case a.single:
		return 1
	case every >= 6*time.Hour:
		return 1
	case every >= time.Hour:
		return 2
	}
	return 3
}

// every is how far triggers of a job are apart, by its schedule or, where it has none, by those that
// there were; zero where that is not known.
func (a *attention) every(j *store.Job, list []trigger) time.Duration {
	if !j.Schedule.IsManual() {
		switch next, err := j.Schedule.Upcoming(a.Now, 2); {
		case err != nil:
			return 0
		case len(next) < 2: // it is due once
			return 1<<63 - 1
		default:
			return next[1].Sub(next[0])
		}
	}
	if len(list) < 2 {
		return 0
	}
	n := min(len(list), 6) - 1
	return list[0].last.Instant().Sub(list[n].last.Instant()) / time.Duration(n)
}

// failing is the finding of a job whose newest triggers have all ended badly.
func (a *attention) failing(j *store.Job, list []trigger) (f Finding, bad bool) {
	n := 0
	for n < len(list) && list[n].bad != nil {
		n++
	}
	if n == 0 || n < a.enough(j, list) {
		return f, false
	}
	newest := list[0].bad
	f = Finding{Cause: causes[newest.State], App: j.App, Jobs: []int64{j.ID}, Name: j.Name, Since: list[n-1].bad.Ended, Bad: n, Of: len(list), Error: errorOf(newest), Secret: j.Secret}
	if newest.State == store.StateRefused && a.dark[j.App] {
		return f, false // its cause is there already
	}
	if strings.HasPrefix(f.Error, "job handler [") && strings.HasSuffix(f.Error, "] not found.") {
		f.Cause = NoHandler
	}
	for _, t := range list[:n] {
		if len(f.Runs) < MostRuns {
			f.Runs = append(f.Runs, t.bad.ID)
		}
	}
	return f, true
}

// gather puts jobs together that have one cause: one app, one kind of end, one error. Those that are
// secret stay by themselves.
func (a *attention) gather(f Finding) {
	key := string(f.Cause) + "\x00" + f.App + "\x00" + Signature(f.Error)
	i, ok := a.byCause[key]
	switch {
	case f.Secret || f.Error == "":
		a.add(f)
		return
	case !ok:
		a.byCause[key] = len(a.found)
		a.add(f)
		return
	}
	had := &a.found[i]
	had.Jobs = append(had.Jobs, f.Jobs...)
	had.Bad, had.Of = had.Bad+f.Bad, had.Of+f.Of
	if f.Since.Before(had.Since) {
		had.Since = f.Since
	}
	had.Runs = append(had.Runs, f.Runs...)
	slices.SortFunc(had.Runs, func(x, y int64) int { return cmp.Compare(y, x) })
	had.Runs = had.Runs[:min(len(had.Runs), MostRuns)]
}

// flapping is the finding of a job of whose newest ten triggers three or more have failed, more than
// twice as many as of the ten before.
func flapping(j *store.Job, list []trigger) (f Finding, bad bool) {
	const half = 10
	if len(list) < half {
		return f, false
	}
	f = Finding{Cause: Flapping, App: j.App, Jobs: []int64{j.ID}, Name: j.Name, Of: min(len(list), 2*half), Secret: j.Secret}
	now, before := 0, 0
	for i, t := range list[:f.Of] {
		switch {
		case t.bad == nil:
			continue
		case i < half:
			now++
			f.Since = t.bad.Ended
		default:
			before++
		}
		if f.Error == "" {
			f.Error = errorOf(t.bad)
		}
		f.Runs = append(f.Runs, t.bad.ID)
	}
	f.Bad = now + before
	return f, now >= 3 && now > 2*before
}

// errorOf is why a run has ended badly, in its first line.
func errorOf(r *store.Run) string {
	if text := firstLine(r.HandleMsg); text != "" {
		return text
	}
	msg := strings.Split(strings.TrimSpace(r.TriggerMsg), "\n")
	return strings.TrimSpace(msg[len(msg)-1])
}

// waits finds due runs that have waited for too long, and jobs that fall behind.
func (a *attention) waits() {
	running := map[int64]bool{}
	for i := range a.Running {
		running[a.Running[i].JobID] = true
	}
	for i := range a.Ended { // one may begin at this moment
		if r := &a.Ended[i]; a.Now.Sub(r.Ended) <= a.patience() {
			running[r.JobID] = true
		}
	}
	late := map[int64][]*store.Run{}
	var ids []int64
	for i := range a.Waiting {
		r := &a.Waiting[i]
		if a.Now.Sub(r.Scheduled) <= a.patience() || a.dark[r.App] || a.blocked[r.JobID] {
			continue
		}
		if late[r.JobID] == nil {
			ids = append(ids, r.JobID)
		}
		late[r.JobID] = append(late[r.JobID], r)
	}
	slices.Sort(ids)
	overdue := map[string]int{} // by app: where in found its finding is
	for _, id := range ids {
		runs := late[id]
		f := Finding{Cause: Overdue, App: runs[0].App, Jobs: []int64{id}, Name: runs[0].JobName}
		if took, every := a.pace(id, runs); every > 0 && took > every && running[id] {
			f.Cause, f.Took, f.Every = FallingBehind, took.Round(time.Second), every.Round(time.Second)
			f.Detail = fmt.Sprintf("a run takes %v, one is due each %v", f.Took, f.Every)
			a.waitFor(&f, runs)
			a.add(f)
			continue
		}
		if i, ok := overdue[f.App]; ok {
			had := &a.found[i]
			had.Jobs = append(had.Jobs, id)
			a.waitFor(had, runs)
			continue
		}
		overdue[f.App] = len(a.found)
		a.waitFor(&f, runs)
		a.add(f)
	}
}

// pace is how long runs of a job take, and how far its instants are apart: medians of what is known.
func (a *attention) pace(job int64, waiting []*store.Run) (took, every time.Duration) {
	var durations, gaps []time.Duration
	for i := range a.Ended {
		if r := &a.Ended[i]; r.JobID == job && !r.Started.IsZero() && !r.Ended.IsZero() {
			durations = append(durations, r.Ended.Sub(r.Started))
		}
	}
	for i := range a.Running { // one that lasts for longer than all before it
		if r := &a.Running[i]; r.JobID == job && !r.Started.IsZero() {
			durations = append(durations, a.Now.Sub(r.Started))
		}
	}
	instants := make([]time.Time, len(waiting))
	for i, r := range waiting {
		instants[i] = r.Scheduled
	}
	slices.SortFunc(instants, time.Time.Compare)
	for i := 1; i < len(instants); i++ {
		gaps = append(gaps, instants[i].Sub(instants[i-1]))
	}
	return median(durations), median(gaps)
}

func median(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// alarmsFor is for how long an alarm that could not be delivered is worth a line.
const alarmsFor = time.Hour

// alarms finds alarms of runs that could not be delivered, by app.
func (a *attention) alarms() {
	at := map[string]int{}
	for i := range a.Ended {
		r := &a.Ended[i]
		if r.AlarmStatus != store.AlarmFailed || a.Now.Sub(r.Ended) > alarmsFor {
			continue
		}
		k, ok := at[r.App]
		if !ok {
			k = len(a.found)
			at[r.App] = k
			a.add(Finding{Cause: AlarmsUndelivered, App: r.App, Since: r.Ended})
		}
		f := &a.found[k]
		if r.Ended.Before(f.Since) {
			f.Since = r.Ended
		}
		if f.Bad++; len(f.Runs) < MostRuns {
			f.Runs = append(f.Runs, r.ID)
		}
		f.Of = f.Bad
	}
}
