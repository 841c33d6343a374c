package console

// Why a job or a run is where it is, as the heads of their pages say it.

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/finding"
	"github.com/xxljob/xxljob/store"
)

// whyShown is how many faults a head says at most, and shardsNamed how many shards a line names.
const (
	whyShown    = 3
	shardsNamed = 10
)

// whyView is what a head says: the gravest faults, how many more there are, and how things are.
type whyView struct {
	Faults []causeLine
	More   int
	Is     *causeLine  // how things are, where that is known
	Mute   *store.Mute // of the job
}

// Stopped reports whether the head says why the job has stopped by itself, which need not be said twice.
func (v whyView) Stopped() bool {
	return slices.ContainsFunc(v.Faults, func(l causeLine) bool { return l.Cause == finding.Stopped })
}

// withTroubles adds what the scheduler says of itself, as far as the user may see it.
func (q *request) withTroubles(w finding.World) finding.World {
	w.Troubles = nil
	for _, t := range q.troublesSeen() {
		t.Trouble.Remedy = t.Remedy
		w.Troubles = append(w.Troubles, t.Trouble)
	}
	return w
}

// reasons are why a job or a run is where it is, and what its head says of its job beside that: what is
// kept for others who look, and not all that was looked at.
type reasons struct {
	found []finding.Finding
	world finding.World
}

// reasonsOf are reasons by a world that was read for a job.
func reasonsOf(w finding.World, found []finding.Finding) reasons {
	k := reasons{found, finding.World{Now: w.Now, Jobs: w.Jobs, Ended: w.Ended}}
	for i := range k.world.Jobs {
		k.world.Jobs[i].Param, k.world.Jobs[i].GlueSource = "", ""
	}
	return k
}

// whyJob is why the request's job runs, or does not.
func (q *request) whyJob(w finding.World) reasons {
	w = q.withTroubles(w)
	hideErrors(&w, func(r *xxljob.Run) bool { return r.Secret })
	return reasonsOf(w, finding.WhyJob(w, q.job.ID))
}

// whyRun is why a run that has not ended is where it is.
func (q *request) whyRun(w finding.World, r xxljob.Run) reasons {
	w = q.withTroubles(w)
	r.HandleMsg, r.TriggerMsg = "", ""
	return reasonsOf(w, finding.WhyRun(w, r))
}

// headOfRun is the head of a run's page, which leads to no page that is this one.
func (q *request) headOfRun(k reasons, run int64) whyView {
	v := q.headOf(k)
	for i := range v.Faults {
		if v.Faults[i].Run == run {
			v.Faults[i].Run = 0
		}
	}
	return v
}

func (q *request) headOf(k reasons) (v whyView) {
	for _, f := range k.found {
		switch {
		case f.Fault() && len(v.Faults) < whyShown:
			v.Faults = append(v.Faults, q.causeLine(f, &k.world))
		case f.Fault():
			v.More++
		case v.Is == nil:
			l := q.causeLine(f, &k.world)
			v.Is = &l
		}
	}
	for _, l := range v.Faults {
		q.told.found = append(q.told.found, l.Finding)
	}
	return v
}

// detailOf is what else is seen, in the user's language as far as that is not what somebody has said.
func (q *request) detailOf(f finding.Finding) string {
	switch f.Cause {
	case finding.Unsaid: // the title says it
		return ""
	case finding.ShardUnowned:
		var ids []string
		for _, id := range f.Shards[:min(len(f.Shards), shardsNamed)] {
			ids = append(ids, strconv.Itoa(id))
		}
		if len(f.Shards) > shardsNamed {
			ids = append(ids, "…")
		}
		return q.text("finding.detail.shards", "n", len(f.Shards), "list", strings.Join(ids, ", "))
	case finding.FallingBehind:
		return q.text("finding.detail.falling-behind", "took", q.look.Span(f.Took), "every", q.look.Span(f.Every))
	case finding.NoExecutor:
		if f.Trouble != nil {
			break
		}
		var said []string
		if f.Enabled > 0 {
			said = append(said, q.text("finding.detail.no-executor", "n", f.Enabled))
		}
		if f.Since.IsZero() {
			said = append(said, q.text("finding.detail.never"))
		}
		return strings.Join(said, " · ")
	}
	if f.Trouble != nil {
		return q.sawOf(f.Trouble)
	}
	return f.Detail
}

// errorOf is the error of a finding. It is a line of what a run has ended with: where the host hides
// something of that, it is what is left of the line there, and nothing where not all of it was read: the
// page of the run has it.
func (q *request) errorOf(f *finding.Finding, w *finding.World) string {
	if q.Redact == nil {
		return f.Error
	}
	for i := range w.Ended {
		r := &w.Ended[i]
		if isBad(r.State) && slices.Contains(f.Jobs, r.JobID) && finding.WhyRun(finding.World{}, *r)[0].Error == f.Error && q.hidesErrorOf(r) {
			if isCut(r.HandleMsg) {
				return ""
			}
			return q.causeOf(*r)
		}
	}
	return f.Error
}

// causeLine is a finding as a line.
func (q *request) causeLine(f finding.Finding, w *finding.World) causeLine {
	l := causeLine{Finding: f, Muting: f.Key(), Title: string(f.Cause), Help: f.Remedy(), About: f.App, More: max(len(f.Jobs)-1, 0)}
	for _, kind := range []string{"finding.", "trouble."} {
		if key := kind + string(f.Cause); q.look.Language.Has(key) {
			l.Title = q.text(key)
			break
		}
	}
	if key := "finding.do." + string(f.Cause); q.look.Language.Has(key) {
		l.Help = q.text(key)
	}
	if f.Cause == notReadyHere {
		l.Title, l.Help, l.Muting = q.text("troubles.notready"), q.text("troubles.notready.do"), ""
	}
	l.Detail = q.detailOf(f)
	if len(f.Runs) > 0 {
		l.Run = f.Runs[0]
	}
	if len(f.Apps) > 0 { // each of them is muted by itself, on its page
		l.Named, l.Muting = f.Apps[:min(len(f.Apps), aboutsOfACause)], ""
		l.More, l.Run = len(f.Apps)-len(l.Named), 0
	}
	if len(f.Jobs) > 0 {
		l.Job, l.About = f.Jobs[0], cmp.Or(f.Name, "#"+strconv.FormatInt(f.Jobs[0], 10))
	}
	acts := l.Job != 0 && q.may(operate, f.App)
	l.Again = acts && l.Run != 0 && slices.ContainsFunc(w.Ended, func(r xxljob.Run) bool { return r.ID == l.Run })
	l.Stops = acts && f.Cause != finding.Stopped && !slices.ContainsFunc(w.Jobs, func(j xxljob.Job) bool { return j.ID == l.Job && j.Stopped })
	secret := slices.ContainsFunc(w.Jobs, func(j xxljob.Job) bool { return j.Secret && slices.Contains(f.Jobs, j.ID) }) ||
		slices.ContainsFunc(w.Ended, func(r xxljob.Run) bool { return r.Secret && isBad(r.State) && slices.Contains(f.Jobs, r.JobID) })
	if f.Error != "" && f.Cause != finding.Stopped && f.Trouble == nil {
		l.Error = q.unless(secret, f.App, FieldResult, q.errorOf(&f, w))
		if words := q.lackIn(l.Error); words != "" {
			l.Error, l.Detail = "", words
		}
	}
	if f.Cause == finding.Stopped {
		l.Error = q.whyStopped(&f, w)
	}
	if l.Job != 0 && len(f.Jobs) == 1 {
		for i := range w.Ended {
			if r := &w.Ended[i]; r.JobID == l.Job && len(l.Marks) < marksOfCause {
				l.Marks = append(l.Marks, mark{r.ID, stateKey(r.State), r.Scheduled})
			}
		}
		slices.Reverse(l.Marks)
	}
	return l
}
