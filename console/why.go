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

// whyShown is how many faults a head says at most.
const whyShown = 3

// whyView is what a head says: the gravest faults, how many more there are, and how things are.
type whyView struct {
	Faults []causeLine
	More   int
	Is     *causeLine  // how things are, where that is known
	Mute   *store.Mute // of the job
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

// whyJob is why the request's job runs, or does not.
func (q *request) whyJob(w finding.World) whyView {
	w = q.withTroubles(w)
	return q.headOf(finding.WhyJob(w, q.job.ID), &w)
}

// whyRun is why a run that has not ended is where it is.
func (q *request) whyRun(w finding.World, r xxljob.Run) whyView {
	w = q.withTroubles(w)
	r.HandleMsg, r.TriggerMsg = "", ""
	v := q.headOf(finding.WhyRun(w, r), &w)
	for i := range v.Faults {
		if v.Faults[i].Run == r.ID { // this page
			v.Faults[i].Run = 0
		}
	}
	return v
}

func (q *request) headOf(found []finding.Finding, w *finding.World) (v whyView) {
	for _, f := range found {
		switch {
		case f.Fault() && len(v.Faults) < whyShown:
			v.Faults = append(v.Faults, q.causeLine(f, w))
		case f.Fault():
			v.More++
		case v.Is == nil:
			l := q.causeLine(f, w)
			v.Is = &l
		}
	}
	return v
}

// detailOf is what else is seen, in the user's language as far as that is not what somebody has said.
func (q *request) detailOf(f finding.Finding) string {
	switch f.Cause {
	case finding.Unsaid: // the title says it
		return ""
	case finding.FallingBehind:
		return q.text("finding.detail.falling-behind", "took", q.span(f.Took), "every", q.span(f.Every))
	case finding.NoExecutor:
		var said []string
		if f.Enabled > 0 {
			said = append(said, q.text("finding.detail.no-executor", "n", f.Enabled))
		}
		if f.Since.IsZero() {
			said = append(said, q.text("finding.detail.never"))
		}
		return strings.Join(said, " · ")
	}
	return f.Detail
}

// causeLine is a finding as a line.
func (q *request) causeLine(f finding.Finding, w *finding.World) causeLine {
	l := causeLine{Finding: f, Muting: f.Key(), Title: string(f.Cause), Help: f.Remedy(), About: f.App, More: max(len(f.Jobs)-1, 0)}
	for _, kind := range []string{"finding.", "trouble."} {
		if key := kind + string(f.Cause); q.look.language.Has(key) {
			l.Title = q.text(key)
			break
		}
	}
	if key := "finding.do." + string(f.Cause); q.look.language.Has(key) {
		l.Help = q.text(key)
	}
	l.Detail = q.detailOf(f)
	if len(f.Jobs) > 0 {
		l.Job, l.About = f.Jobs[0], cmp.Or(f.Name, "#"+strconv.FormatInt(f.Jobs[0], 10))
	}
	if len(f.Runs) > 0 {
		l.Run = f.Runs[0]
	}
	secret := slices.ContainsFunc(w.Jobs, func(j xxljob.Job) bool { return j.Secret && slices.Contains(f.Jobs, j.ID) })
	if f.Error != "" && f.Cause != finding.Stopped && f.Trouble == nil {
		l.Error = q.unless(secret, f.App, FieldResult, f.Error)
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
